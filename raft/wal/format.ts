import { Buffer } from 'node:buffer'
import { crc32 } from 'node:zlib'
import { assert } from '../assert.ts'
import { ByteReader, MalformedError, writeId, writeUint64 } from '../binary.ts'
import { membershipSize, readMembership, writeMembership } from '../membership-codec.ts'
import type { Entry, HardState, MemberId, SnapshotMeta } from '../types.ts'

/** Encoding and decoding of what FORMATS.md calls segment header, batch and record. No I/O. */

export const formatVersion = 1
export const segmentHeaderBytes = 48
export const batchHeaderBytes = 24

const segmentMagic = Buffer.from('TRIREWAL', 'latin1')
const batchMagic = 0x54424348
const batchMagicBytes = Buffer.from('TBCH', 'latin1')

const recordType = { metadata: 1, hardState: 2, entry: 3, marker: 4 } as const
const recordHeaderBytes = 5
const entryHeaderBytes = 17
/** Entry data up to this size is copied beside its header; larger data is handed to the disk as it is. */
const copyBytesMax = 4096

export interface WalMetadata {
  readonly clusterId: bigint
  readonly memberId: MemberId
}

export interface WalMarker {
  /** checkpoint: the log goes on. install: a leader's snapshot replaced log and state. */
  readonly kind: 'checkpoint' | 'install'
  readonly snapshot: SnapshotMeta
}

/** One append. Written in this order: a marker stands before the entries that follow it. */
export interface WalRecords {
  readonly metadata?: WalMetadata | undefined
  readonly hardState?: HardState | undefined
  readonly marker?: WalMarker | undefined
  readonly entries?: readonly Entry[] | undefined
}

export interface SegmentHeader {
  readonly salt: number
  readonly sequence: number
  readonly firstBatch: number
  readonly previousIndex: number
  readonly chain: number
}

export function encodeSegmentHeader(header: SegmentHeader): Buffer {
  const buffer = Buffer.alloc(segmentHeaderBytes)
  segmentMagic.copy(buffer, 0)
  buffer.writeUInt8(formatVersion, 8)
  buffer.writeUInt32BE(header.salt, 12)
  writeUint64(buffer, header.sequence, 16)
  writeUint64(buffer, header.firstBatch, 24)
  writeUint64(buffer, header.previousIndex, 32)
  buffer.writeUInt32BE(header.chain, 40)
  buffer.writeUInt32BE(crc32(buffer.subarray(0, 44)), 44)
  return buffer
}

/** 'newer' is known by its version byte alone, so that any later layout is refused and not called damaged. */
export function decodeSegmentHeader(buffer: Buffer): SegmentHeader | 'damaged' | 'newer' {
  if (buffer.length < segmentHeaderBytes || !buffer.subarray(0, 8).equals(segmentMagic)) return 'damaged'
  if (buffer.readUInt8(8) > formatVersion) return 'newer'
  if (buffer.readUInt8(8) !== formatVersion || buffer.readUInt32BE(44) !== crc32(buffer.subarray(0, 44)))
    return 'damaged'
  const reader = new ByteReader(buffer, 12)
  try {
    return {
      salt: reader.uint32(),
      sequence: reader.uint64(),
      firstBatch: reader.uint64(),
      previousIndex: reader.uint64(),
      chain: reader.uint32(),
    }
  } catch (error) {
    if (error instanceof MalformedError) return 'damaged'
    throw error
  }
}

/** Bytes of the records in a batch's payload. */
export function recordsSize(records: WalRecords): number {
  let size = 0
  if (records.metadata) size += recordHeaderBytes + 16
  if (records.hardState) size += recordHeaderBytes + 24
  if (records.marker) size += recordHeaderBytes + 17 + membershipSize(records.marker.snapshot.membership)
  for (const entry of records.entries ?? []) size += recordHeaderBytes + entryHeaderBytes + entry.data.length
  return size
}

export interface EncodedBatch {
  readonly chunks: readonly Uint8Array[]
  readonly length: number
  /** The payload's CRC, with which the next batch's begins. */
  readonly chain: number
}

/** Lays out one batch. Large entry data is referenced, not copied: it must not change until the write is done. */
export function encodeBatch(
  groups: readonly WalRecords[],
  position: { readonly number: number; readonly chain: number; readonly salt: number },
): EncodedBatch {
  let payloadLength = 0
  let copied = batchHeaderBytes
  for (const records of groups) {
    const size = recordsSize(records)
    payloadLength += size
    copied += size
    for (const entry of records.entries ?? []) if (entry.data.length > copyBytesMax) copied -= entry.data.length
  }
  const scratch = Buffer.allocUnsafe(copied)
  const chunks: Uint8Array[] = []
  let from = 0
  let at = batchHeaderBytes
  const record = (type: number, length: number) => {
    at = scratch.writeUInt8(type, at)
    at = scratch.writeUInt32BE(length, at)
  }
  for (const { metadata, hardState, marker, entries } of groups) {
    if (metadata) {
      record(recordType.metadata, 16)
      at = writeId(scratch, metadata.clusterId, at)
      at = writeId(scratch, metadata.memberId, at)
    }
    if (hardState) {
      record(recordType.hardState, 24)
      at = writeUint64(scratch, hardState.term, at)
      at = writeId(scratch, hardState.vote, at)
      at = writeUint64(scratch, hardState.commit, at)
    }
    if (marker) {
      const { index, term, membership } = marker.snapshot
      record(recordType.marker, 17 + membershipSize(membership))
      at = scratch.writeUInt8(marker.kind === 'install' ? 1 : 0, at)
      at = writeUint64(scratch, index, at)
      at = writeUint64(scratch, term, at)
      at = writeMembership(scratch, membership, at)
    }
    for (const entry of entries ?? []) {
      record(recordType.entry, entryHeaderBytes + entry.data.length)
      at = writeUint64(scratch, entry.index, at)
      at = writeUint64(scratch, entry.term, at)
      at = scratch.writeUInt8(entry.type === 'confChange' ? 1 : 0, at)
      if (entry.data.length <= copyBytesMax) {
        scratch.set(entry.data, at)
        at += entry.data.length
      } else {
        chunks.push(scratch.subarray(from, at), entry.data)
        from = at
      }
    }
  }
  if (at > from) chunks.push(scratch.subarray(from, at))
  assert(at === copied, `batch laid out in ${at} bytes, sized ${copied}`)

  let chain = crc32(scratch.subarray(batchHeaderBytes, chunks[0]?.length ?? at), position.chain)
  for (let i = 1; i < chunks.length; i++) chain = crc32(chunks[i] ?? scratch, chain)
  scratch.writeUInt32BE(batchMagic, 0)
  scratch.writeUInt32BE(payloadLength, 4)
  writeUint64(scratch, position.number, 8)
  scratch.writeUInt32BE(chain, 16)
  scratch.writeUInt32BE(crc32(scratch.subarray(0, 20), position.salt), 20)
  return { chunks, length: batchHeaderBytes + payloadLength, chain }
}

export interface BatchHeader {
  readonly payloadLength: number
  readonly number: number
  readonly chain: number
}

/** The batch header at `offset`, if its own CRC holds. Says nothing of the payload. */
export function decodeBatchHeader(segment: Buffer, offset: number, salt: number): BatchHeader | undefined {
  if (offset + batchHeaderBytes > segment.length || segment.readUInt32BE(offset) !== batchMagic) return undefined
  if (segment.readUInt32BE(offset + 20) !== crc32(segment.subarray(offset, offset + 20), salt)) return undefined
  const number = segment.readUInt32BE(offset + 8) * 0x1_0000_0000 + segment.readUInt32BE(offset + 12)
  if (!Number.isSafeInteger(number)) return undefined
  return { payloadLength: segment.readUInt32BE(offset + 4), number, chain: segment.readUInt32BE(offset + 16) }
}

/** The first place at or behind `from` that could be a batch header; -1 when there is none. */
export function nextBatchMagic(segment: Buffer, from: number): number {
  return segment.indexOf(batchMagicBytes, from)
}

export type WalRecord =
  | { readonly type: 'metadata'; readonly metadata: WalMetadata }
  | { readonly type: 'hardState'; readonly hardState: HardState }
  | { readonly type: 'entry'; readonly entry: Entry }
  | { readonly type: 'marker'; readonly marker: WalMarker }

/**
 * Calls `visit` for every record of a payload. Entry data is a view of `payload`.
 * @throws MalformedError when it does not parse.
 */
export function decodeRecords(payload: Buffer, visit: (record: WalRecord) => void): void {
  const reader = new ByteReader(payload)
  while (reader.remaining > 0) {
    const type = reader.uint8()
    const body = new ByteReader(reader.bytes(reader.uint32()))
    visit(decodeRecord(type, body))
    body.end()
  }
}

function decodeRecord(type: number, body: ByteReader): WalRecord {
  switch (type) {
    case recordType.metadata:
      return { type: 'metadata', metadata: { clusterId: body.id(), memberId: body.id() } }
    case recordType.hardState:
      return { type: 'hardState', hardState: { term: body.uint64(), vote: body.id(), commit: body.uint64() } }
    case recordType.entry: {
      const index = body.uint64()
      const term = body.uint64()
      const kind = body.flag() ? 'confChange' : 'normal'
      return { type: 'entry', entry: { index, term, type: kind, data: body.bytes(body.remaining) } }
    }
    case recordType.marker: {
      const kind = body.flag() ? 'install' : 'checkpoint'
      const index = body.uint64()
      const term = body.uint64()
      return { type: 'marker', marker: { kind, snapshot: { index, term, membership: readMembership(body) } } }
    }
    default:
      throw new MalformedError(`record type ${type}`)
  }
}
