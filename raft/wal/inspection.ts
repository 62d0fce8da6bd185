import { Buffer } from 'node:buffer'
import { crc32 } from 'node:zlib'
import { MalformedError, bufferOf } from '../binary.ts'
import { DiskError } from '../env.ts'
import type { Disk } from '../env.ts'
import { RaftError } from '../errors.ts'
import type { LogSummary } from '../seams.ts'
import type { Entry, HardState, SnapshotMeta } from '../types.ts'
import { batchHeaderBytes, decodeBatchHeader, decodeRecords, decodeSegmentHeader, nextBatchMagic } from './format.ts'
import { formatVersion, segmentHeaderBytes } from './format.ts'
import type { SegmentHeader, WalMetadata } from './format.ts'
import { LogReplay } from './replay.ts'

/** What a log directory holds. Entries begin at snapshot.index + 1. */
export interface WalInspection {
  readonly metadata: WalMetadata
  readonly hardState: HardState
  readonly snapshot: SnapshotMeta
  readonly entries: readonly Entry[]
  /** Oldest first; never empty. */
  readonly segments: readonly SegmentState[]
  readonly tail: WalTail
}

export interface SegmentState {
  readonly sequence: number
  readonly path: string
  /** Highest entry index in this segment or before it: what a marker must cover before it may go. */
  readonly lastIndex: number
  readonly bytes: number
}

/** Where writing goes on. */
export interface WalTail {
  readonly header: SegmentHeader
  readonly position: number
  /** Where the last whole batch begins. */
  readonly lastBatchPosition: number
  readonly nextBatch: number
  readonly chain: number
  /** Bytes behind `position`, from there, that are not zero: the rest of a torn batch. */
  readonly dirtyBytes: number
}

export function segmentPath(directory: string, sequence: number): string {
  return `${directory}/${sequence.toString(16).padStart(16, '0')}.wal`
}

/**
 * Reads a log without changing a byte.
 *
 * @returns undefined when there is no log: no directory, or one without a named segment.
 * @throws RaftError ERR_CORRUPT when it is damaged beyond a torn tail, ERR_FORMAT when a newer version wrote it.
 * @throws DiskError when it cannot be read.
 */
export async function inspectWal(options: {
  readonly disk: Disk
  readonly directory: string
}): Promise<WalInspection | undefined> {
  const { disk, directory } = options
  const sequences = await listSegments(disk, directory)
  const firstSequence = sequences[0]
  if (firstSequence === undefined) return undefined

  let replay: LogReplay | undefined
  let tail: WalTail | undefined
  const segments: SegmentState[] = []
  for (const [i, sequence] of sequences.entries()) {
    const path = segmentPath(directory, sequence)
    if (sequence !== firstSequence + i) throw new RaftError('ERR_CORRUPT', `log segment missing before ${path}`)
    const bytes = bufferOf(await disk.readFile(path))
    const header = readHeader(path, bytes, sequence)
    if (tail && (header.firstBatch !== tail.nextBatch || header.chain !== tail.chain)) {
      throw new RaftError(
        'ERR_CORRUPT',
        `${path} does not continue batch ${tail.nextBatch - 1}: the log before it is damaged`,
      )
    }
    replay ??= new LogReplay(header.previousIndex)
    const read = readBatches(path, bytes, header, replay)
    // A segment gets its name only when its first batch is durable.
    if (read.nextBatch === header.firstBatch) throw new RaftError('ERR_CORRUPT', `${path} has no valid first batch`)
    if (i === sequences.length - 1) checkTorn(path, bytes, header, read)
    tail = { header, ...read, dirtyBytes: dirtyBytes(bytes, read.position) }
    segments.push({
      sequence,
      path,
      lastIndex: Math.max(read.highestIndex, segments.at(-1)?.lastIndex ?? 0),
      bytes: bytes.length,
    })
  }
  if (!replay || !tail) return undefined
  return { ...replay.finish(), segments, tail }
}

/** The same in short: how `trireme up` finds the most up-to-date of its replicas. Undefined when there is no log. */
export async function summarizeWal(options: {
  readonly disk: Disk
  readonly directory: string
}): Promise<LogSummary | undefined> {
  const inspection = await inspectWal(options)
  return inspection && summaryOf(inspection)
}

export function summaryOf(inspection: WalInspection): LogSummary {
  const { hardState, snapshot, entries } = inspection
  const last = entries.at(-1) ?? snapshot
  return {
    term: hardState.term,
    vote: hardState.vote,
    commit: hardState.commit,
    firstIndex: snapshot.index + 1,
    lastIndex: last.index,
    lastTerm: last.term,
  }
}

async function listSegments(disk: Disk, directory: string): Promise<number[]> {
  try {
    const names = await disk.list(directory)
    return names
      .filter((name) => /^[0-9a-f]{16}\.wal$/.test(name))
      .map((name) => Number.parseInt(name.slice(0, 16), 16))
  } catch (error) {
    if (error instanceof DiskError && error.code === 'ENOENT') return []
    throw error
  }
}

function readHeader(path: string, bytes: Buffer, sequence: number): SegmentHeader {
  const header = decodeSegmentHeader(bytes.subarray(0, segmentHeaderBytes))
  if (header === 'newer') {
    throw new RaftError('ERR_FORMAT', `${path} has format ${bytes[8]}, this program knows up to ${formatVersion}`)
  }
  if (header === 'damaged' || header.sequence !== sequence)
    throw new RaftError('ERR_CORRUPT', `${path} has no valid header`)
  return header
}

interface BatchesRead {
  readonly position: number
  readonly lastBatchPosition: number
  readonly nextBatch: number
  readonly chain: number
  readonly highestIndex: number
}

/** Replays batches up to the first one that is not whole. */
function readBatches(path: string, bytes: Buffer, header: SegmentHeader, replay: LogReplay): BatchesRead {
  let position = segmentHeaderBytes
  let lastBatchPosition = position
  let nextBatch = header.firstBatch
  let chain = header.chain
  let highestIndex = header.previousIndex
  for (;;) {
    const batch = decodeBatchHeader(bytes, position, header.salt)
    const from = position + batchHeaderBytes
    if (batch?.number !== nextBatch || from + batch.payloadLength > bytes.length) break
    const payload = bytes.subarray(from, from + batch.payloadLength)
    if (crc32(payload, chain) !== batch.chain) break
    try {
      decodeRecords(payload, (record) => {
        replay.add(record)
        highestIndex = Math.max(highestIndex, replay.lastIndex)
      })
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error
      throw new RaftError('ERR_CORRUPT', `${path} at ${position}: a whole batch does not parse: ${error.message}`)
    }
    lastBatchPosition = position
    position = from + batch.payloadLength
    nextBatch++
    chain = batch.chain
  }
  return { position, lastBatchPosition, nextBatch, chain, highestIndex }
}

/** A bad batch is torn, and never was acknowledged, unless a later batch is there: that one was begun only afterwards. */
function checkTorn(path: string, bytes: Buffer, header: SegmentHeader, read: BatchesRead): void {
  let at = nextBatchMagic(bytes, read.position)
  while (at !== -1) {
    const later = decodeBatchHeader(bytes, at, header.salt)
    if (later && later.number > read.nextBatch) {
      throw new RaftError(
        'ERR_CORRUPT',
        `${path} at ${read.position}: batch ${read.nextBatch} is damaged, batch ${later.number} behind it is there`,
      )
    }
    at = nextBatchMagic(bytes, at + 1)
  }
}

const zeros = Buffer.alloc(64 * 1024)

function dirtyBytes(bytes: Buffer, from: number): number {
  let end = bytes.length
  while (end > from) {
    const start = Math.max(from, end - zeros.length)
    const part = bytes.subarray(start, end)
    if (!part.equals(zeros.subarray(0, part.length))) {
      while (end > start && bytes[end - 1] === 0) end--
      return end - from
    }
    end = start
  }
  return 0
}
