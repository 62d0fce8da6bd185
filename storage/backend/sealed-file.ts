import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import { DiskError, type Disk } from '../../raft/index.ts'
import { StorageError } from '../errors.ts'
import { ByteReader, ByteWriter } from './bytes.ts'

// Sealed file: magic[4] | version u8 | length u32 | payload[length] | crc u32, big-endian; crc32 (zlib) of everything
// before it. This frame is the same in every version, so that a newer file is told from a damaged one.
const frameBytes = 4 + 1 + 4 + 4

export interface SealedFormat {
  /** Four ASCII characters. */
  readonly magic: string
  /** The newest version this program reads and the one it writes. */
  readonly version: number
}

export function sealBytes(format: SealedFormat, payload: Uint8Array): Buffer {
  const writer = new ByteWriter(frameBytes + payload.length)
  writer.bytes(Buffer.from(format.magic, 'latin1')).u8(format.version).u32(payload.length).bytes(payload)
  return writer.u32(crc32(writer.finish())).finish()
}

/** @throws StorageError ERR_CORRUPT when damaged or cut short, ERR_FORMAT when whole but of a newer version. */
export function unsealBytes(format: SealedFormat, frame: Uint8Array, what: string): Buffer {
  const reader = new ByteReader(frame, what)
  if (reader.bytes(4).toString('latin1') !== format.magic) throw new StorageError('ERR_CORRUPT', `${what}: bad magic`)
  const version = reader.u8()
  const payload = reader.bytes(reader.u32())
  const crc = reader.u32()
  reader.end()
  if (crc !== crc32(frame.subarray(0, frame.length - 4))) {
    throw new StorageError('ERR_CORRUPT', `${what}: checksum mismatch`)
  }
  if (version > format.version) {
    throw new StorageError('ERR_FORMAT', `${what}: written in format ${version}, this program knows ${format.version}`)
  }
  return payload
}

/** Replaces `path` durably: a crash leaves the old file or the new one, never a mixture. */
export async function writeSealedFile(
  disk: Disk,
  path: string,
  format: SealedFormat,
  payload: Uint8Array,
): Promise<void> {
  const temporary = `${path}.tmp`
  await disk.removeTree(temporary)
  await writeDurable(disk, temporary, sealBytes(format, payload))
  await disk.rename(temporary, path)
  await disk.syncDirectory(dirname(path))
}

/**
 * Undefined when there is no such file. What is read is durable: a writer that was killed may have left its rename in
 * the page cache only, and what is built on this file must not outlive it in a loss of power.
 */
export async function readSealedFile(disk: Disk, path: string, format: SealedFormat): Promise<Buffer | undefined> {
  let frame: Uint8Array
  try {
    frame = await disk.readFile(path)
  } catch (error) {
    if (error instanceof DiskError && error.code === 'ENOENT') return undefined
    throw error
  }
  const payload = unsealBytes(format, frame, path)
  await disk.syncDirectory(dirname(path))
  return payload
}

async function writeDurable(disk: Disk, path: string, bytes: Uint8Array): Promise<void> {
  const file = await disk.open(path, 'create')
  try {
    await file.write([bytes], 0)
    await file.sync()
  } finally {
    await file.close()
  }
}
