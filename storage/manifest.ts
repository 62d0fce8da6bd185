import { join } from 'node:path'
import type { Disk, MemberId } from '../raft/index.ts'
import { ByteReader, ByteWriter } from './backend/bytes.ts'
import { readSealedFile, writeSealedFile, type SealedFormat } from './backend/sealed-file.ts'

const format: SealedFormat = { magic: 'TRMF', version: 1 }

/** What must exist under a data directory. Outside the replica directories, so that it outlives any of them. */
export interface Manifest {
  readonly clusterId: bigint
  readonly members: readonly ManifestMember[]
}

export interface ManifestMember {
  readonly id: MemberId
  /** Its directory under the data directory. */
  readonly name: string
}

/** @throws StorageError ERR_CORRUPT, ERR_FORMAT */
export async function readManifest(disk: Disk, directory: string): Promise<Manifest | undefined> {
  const path = join(directory, 'MANIFEST')
  const payload = await readSealedFile(disk, path, format)
  if (payload === undefined) return undefined
  const reader = new ByteReader(payload, path)
  const clusterId = reader.id()
  const members = Array.from({ length: reader.u16() }, () => ({
    id: reader.id(),
    name: reader.bytes(reader.u8()).toString('utf8'),
  }))
  reader.end()
  return { clusterId, members }
}

export async function writeManifest(disk: Disk, directory: string, manifest: Manifest): Promise<void> {
  const writer = new ByteWriter().id(manifest.clusterId).u16(manifest.members.length)
  for (const { id, name } of manifest.members) {
    const bytes = Buffer.from(name, 'utf8')
    writer.id(id).u8(bytes.length).bytes(bytes)
  }
  await writeSealedFile(disk, join(directory, 'MANIFEST'), format, writer.finish())
}
