import { Buffer } from 'node:buffer'
import { crc32 } from 'node:zlib'
import { ByteReader, MalformedError, bufferOf, writeId, writeUint64 } from './binary.ts'
import { RaftError } from './errors.ts'
import { frameBytesMax } from './limits.ts'
import { membershipSize, readMembership, writeMembership } from './membership-codec.ts'
import type { Entry, Message, MessageType } from './types.ts'

/** What travels between two members: FORMATS.md, "Peer frame". */
export type Frame = Message | SnapshotChunk

export interface SnapshotChunk {
  readonly type: 'snapshotChunk'
  readonly sequence: number
  readonly last: boolean
  readonly data: Uint8Array
}

const version = 1
/** Length and CRC. */
export const framePrefixBytes = 8
const headerBytes = framePrefixBytes + 2 + 24

const types: readonly MessageType[] = [
  'propose',
  'append',
  'appendResponse',
  'preVote',
  'vote',
  'preVoteResponse',
  'voteResponse',
  'heartbeat',
  'heartbeatResponse',
  'snapshot',
  'readIndex',
  'readIndexResponse',
  'timeoutNow',
  'transferLeader',
]
const typeCode = new Map<string, number>(types.map((type, i) => [type, i + 1]))
const chunkCode = 32

/** @throws RaftError ERR_OVERLOADED when it would be longer than frameBytesMax. */
export function encodeFrame(frame: Frame): Buffer {
  const length = headerBytes + bodySize(frame)
  if (length - framePrefixBytes > frameBytesMax) throw new RaftError('ERR_OVERLOADED', `a frame of ${length} bytes`)
  const buffer = Buffer.allocUnsafe(length)
  buffer.writeUInt32BE(length - framePrefixBytes, 0)
  buffer.writeUInt8(version, framePrefixBytes)
  buffer.writeUInt8(frame.type === 'snapshotChunk' ? chunkCode : (typeCode.get(frame.type) ?? 0), framePrefixBytes + 1)
  const message = frame.type === 'snapshotChunk' ? { from: 0n, to: 0n, term: 0 } : frame
  let at = writeId(buffer, message.from, framePrefixBytes + 2)
  at = writeId(buffer, message.to, at)
  at = writeUint64(buffer, message.term, at)
  writeBody(buffer, frame, at)
  buffer.writeUInt32BE(crc32(buffer.subarray(framePrefixBytes)), 4)
  return buffer
}

function entriesSize(entries: readonly Entry[]): number {
  let size = 4
  for (const entry of entries) size += 21 + entry.data.length
  return size
}

function bodySize(frame: Frame): number {
  switch (frame.type) {
    case 'propose':
      return entriesSize(frame.entries)
    case 'append':
      return 24 + entriesSize(frame.entries)
    case 'appendResponse':
      return 25
    case 'preVote':
    case 'vote':
      return 33
    case 'preVoteResponse':
    case 'voteResponse':
      return 17
    case 'heartbeat':
    case 'heartbeatResponse':
    case 'readIndexResponse':
      return 16
    case 'snapshot':
      return 16 + membershipSize(frame.snapshot.membership)
    case 'readIndex':
    case 'transferLeader':
      return 8
    case 'timeoutNow':
      return 0
    case 'snapshotChunk':
      return 9 + frame.data.length
  }
}

function writeEntries(buffer: Buffer, entries: readonly Entry[], offset: number): number {
  let at = buffer.writeUInt32BE(entries.length, offset)
  for (const entry of entries) {
    at = writeUint64(buffer, entry.index, at)
    at = writeUint64(buffer, entry.term, at)
    at = buffer.writeUInt8(entry.type === 'confChange' ? 1 : 0, at)
    at = buffer.writeUInt32BE(entry.data.length, at)
    buffer.set(entry.data, at)
    at += entry.data.length
  }
  return at
}

function writeBody(buffer: Buffer, frame: Frame, offset: number): void {
  let at = offset
  const numbers = (...values: number[]) => {
    for (const value of values) at = writeUint64(buffer, value, at)
  }
  const flag = (value: boolean) => {
    at = buffer.writeUInt8(value ? 1 : 0, at)
  }
  switch (frame.type) {
    case 'propose':
      writeEntries(buffer, frame.entries, at)
      return
    case 'append':
      numbers(frame.previousIndex, frame.previousTerm, frame.commit)
      writeEntries(buffer, frame.entries, at)
      return
    case 'appendResponse':
      numbers(frame.index, frame.hintIndex, frame.hintTerm)
      return flag(frame.reject)
    case 'preVote':
    case 'vote':
      numbers(frame.lastIndex, frame.lastTerm, frame.commit, frame.commitTerm)
      return flag(frame.transfer)
    case 'preVoteResponse':
    case 'voteResponse':
      numbers(frame.commit, frame.commitTerm)
      return flag(frame.reject)
    case 'heartbeat':
    case 'heartbeatResponse':
      numbers(frame.commit)
      writeId(buffer, frame.readId, at)
      return
    case 'snapshot':
      numbers(frame.snapshot.index, frame.snapshot.term)
      writeMembership(buffer, frame.snapshot.membership, at)
      return
    case 'readIndex':
      writeId(buffer, frame.readId, at)
      return
    case 'readIndexResponse':
      at = writeId(buffer, frame.readId, at)
      return numbers(frame.index)
    case 'timeoutNow':
      return
    case 'transferLeader':
      writeId(buffer, frame.transferee, at)
      return
    case 'snapshotChunk':
      numbers(frame.sequence)
      flag(frame.last)
      buffer.set(frame.data, at)
      return
  }
}

/**
 * Reads one whole frame. Entry and chunk data are views of `bytes`.
 * @throws RaftError ERR_CORRUPT, ERR_FORMAT when a newer version wrote it.
 */
export function decodeFrame(bytes: Uint8Array): Frame {
  const buffer = bufferOf(bytes)
  if (buffer.length < headerBytes || buffer.readUInt32BE(0) !== buffer.length - framePrefixBytes) {
    throw new RaftError('ERR_CORRUPT', `not a whole frame in ${buffer.length} bytes`)
  }
  if (buffer.readUInt32BE(4) !== crc32(buffer.subarray(framePrefixBytes))) {
    throw new RaftError('ERR_CORRUPT', 'a frame whose CRC is wrong')
  }
  const reader = new ByteReader(buffer, framePrefixBytes)
  try {
    const written = reader.uint8()
    if (written > version) throw new RaftError('ERR_FORMAT', `a frame of version ${written}`)
    const frame = readFrame(reader.uint8(), reader)
    reader.end()
    return frame
  } catch (error) {
    if (!(error instanceof MalformedError)) throw error
    throw new RaftError('ERR_CORRUPT', `a frame that does not parse: ${error.message}`)
  }
}

function readEntries(reader: ByteReader): Entry[] {
  const count = reader.uint32()
  const entries: Entry[] = []
  // A false count runs into the end of the frame before it costs anything.
  for (let i = 0; i < count; i++) {
    const index = reader.uint64()
    const term = reader.uint64()
    const type = reader.flag() ? 'confChange' : 'normal'
    entries.push({ index, term, type, data: reader.bytes(reader.uint32()) })
  }
  return entries
}

// Fields are read in the order in which they are written: object literals evaluate from top to bottom.
function readFrame(code: number, reader: ByteReader): Frame {
  const addressed = { from: reader.id(), to: reader.id(), term: reader.uint64() }
  if (code === chunkCode) {
    const sequence = reader.uint64()
    const last = reader.flag()
    return { type: 'snapshotChunk', sequence, last, data: reader.bytes(reader.remaining) }
  }
  const type = types[code - 1]
  if (type === undefined) throw new MalformedError(`frame type ${code}`)
  switch (type) {
    case 'propose':
      return { type, ...addressed, entries: readEntries(reader) }
    case 'append':
      return {
        type,
        ...addressed,
        previousIndex: reader.uint64(),
        previousTerm: reader.uint64(),
        commit: reader.uint64(),
        entries: readEntries(reader),
      }
    case 'appendResponse':
      return {
        type,
        ...addressed,
        index: reader.uint64(),
        hintIndex: reader.uint64(),
        hintTerm: reader.uint64(),
        reject: reader.flag(),
      }
    case 'preVote':
    case 'vote':
      return {
        type,
        ...addressed,
        lastIndex: reader.uint64(),
        lastTerm: reader.uint64(),
        commit: reader.uint64(),
        commitTerm: reader.uint64(),
        transfer: reader.flag(),
      }
    case 'preVoteResponse':
    case 'voteResponse':
      return { type, ...addressed, commit: reader.uint64(), commitTerm: reader.uint64(), reject: reader.flag() }
    case 'heartbeat':
    case 'heartbeatResponse':
      return { type, ...addressed, commit: reader.uint64(), readId: reader.id() }
    case 'snapshot': {
      const index = reader.uint64()
      const term = reader.uint64()
      return { type, ...addressed, snapshot: { index, term, membership: readMembership(reader) } }
    }
    case 'readIndex':
      return { type, ...addressed, readId: reader.id() }
    case 'readIndexResponse':
      return { type, ...addressed, readId: reader.id(), index: reader.uint64() }
    case 'timeoutNow':
      return { type, ...addressed }
    case 'transferLeader':
      return { type, ...addressed, transferee: reader.id() }
  }
}
