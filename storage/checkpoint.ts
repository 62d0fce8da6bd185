import { join } from 'node:path'
import type { Disk, Index, MemberId, Term } from '../raft/index.ts'
import type { StateRecord } from './backend.ts'
import { ByteReader, ByteWriter } from './backend/bytes.ts'
import { readSealedFile, writeSealedFile, type SealedFormat } from './backend/sealed-file.ts'
import { StorageError } from './errors.ts'

/** The state beside rows at the moment entry `index` had been applied. */
export type Checkpoint = StateRecord & { readonly index: Index; readonly term: Term }

const format: SealedFormat = { magic: 'TRCP', version: 1 }
const alarmTypes = ['NOSPACE', 'CORRUPT'] as const

/** The newest durable checkpoint of a state directory; undefined when none was ever completed. */
export async function readCheckpoint(disk: Disk, directory: string): Promise<Checkpoint | undefined> {
  const path = join(directory, 'CHECKPOINT')
  const payload = await readSealedFile(disk, path, format)
  if (payload === undefined) return undefined
  const reader = new ByteReader(payload, path)
  const checkpoint = readCheckpointPayload(reader)
  reader.end()
  return checkpoint
}

/** The caller has made the rows it stands for durable before. */
export async function writeCheckpoint(disk: Disk, directory: string, checkpoint: Checkpoint): Promise<void> {
  await writeSealedFile(disk, join(directory, 'CHECKPOINT'), format, encodeCheckpoint(checkpoint))
}

/** Payload version 1: see storage/FORMATS.md; also the head of a snapshot stream. */
export function encodeCheckpoint(checkpoint: Checkpoint): Buffer {
  const { membership, leases, alarms } = checkpoint
  const writer = new ByteWriter(64 + 16 * leases.length)
  writer.u64(checkpoint.index).u64(checkpoint.term).u64(checkpoint.revision).u64(checkpoint.compactRevision)
  writer.u64(checkpoint.keyCount)
  writeIds(writer, membership.voters)
  writeIds(writer, membership.learners)
  writer.u32(leases.length)
  for (const lease of leases) writer.id(lease.id).u64(lease.ttlSeconds)
  writer.u16(alarms.length)
  for (const alarm of alarms) writer.id(alarm.member).u8(alarmTypes.indexOf(alarm.type))
  return writer.finish()
}

export function readCheckpointPayload(reader: ByteReader): Checkpoint {
  const index = reader.u64()
  const term = reader.u64()
  const revision = reader.u64()
  const compactRevision = reader.u64()
  const keyCount = reader.u64()
  const membership = { voters: readIds(reader), learners: readIds(reader) }
  const leases = Array.from({ length: reader.u32() }, () => ({
    id: BigInt.asIntN(64, reader.id()),
    ttlSeconds: reader.u64(),
  }))
  const alarms = Array.from({ length: reader.u16() }, () => ({ member: reader.id(), type: readAlarmType(reader) }))
  return { index, term, revision, compactRevision, keyCount, membership, leases, alarms }
}

function readAlarmType(reader: ByteReader): (typeof alarmTypes)[number] {
  const number = reader.u8()
  const type = alarmTypes[number]
  if (type === undefined) throw new StorageError('ERR_CORRUPT', `checkpoint: alarm type ${number} is not known`)
  return type
}

function writeIds(writer: ByteWriter, ids: readonly MemberId[]): void {
  writer.u16(ids.length)
  for (const id of ids) writer.id(id)
}

function readIds(reader: ByteReader): MemberId[] {
  return Array.from({ length: reader.u16() }, () => reader.id())
}
