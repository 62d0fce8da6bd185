import { Buffer } from 'node:buffer'
import { dirname } from 'node:path'
import { assert } from '../assert.ts'
import type { Disk, DiskFile, Logger, Random } from '../env.ts'
import { RaftError } from '../errors.ts'
import { walBatchBytesMax, walFirstSegmentBytes, walQueueBytesMax, walSegmentBytes } from '../limits.ts'
import type { Entry, HardState, Index, SnapshotMeta } from '../types.ts'
import { encodeBatch, encodeSegmentHeader, recordsSize, segmentHeaderBytes } from './format.ts'
import type { EncodedBatch, SegmentHeader, WalMetadata, WalRecords } from './format.ts'
import { inspectWal, segmentPath } from './inspection.ts'
import type { SegmentState, WalInspection } from './inspection.ts'
import { SegmentFiles, zeroFill } from './segment-files.ts'

export interface WalOptions {
  readonly disk: Disk
  readonly directory: string
  readonly log: Logger
  /** Salts of segments. */
  readonly random: Random
  /** Must equal what an existing log says. */
  readonly metadata: WalMetadata
  /** What a new log begins with; an existing one does not look at it. */
  readonly initial: WalInitial
  readonly firstSegmentBytes?: number
  readonly segmentBytes?: number
}

/** A first start: hardState zero, snapshot at 0 with the bootstrap membership. A rebuilt replica: what it was given. */
export interface WalInitial {
  readonly hardState: HardState
  readonly snapshot: SnapshotMeta
  readonly entries?: readonly Entry[]
}

export interface WalRecovered {
  readonly metadata: WalMetadata
  readonly hardState: HardState
  readonly snapshot: SnapshotMeta
  readonly entries: readonly Entry[]
}

/** Apart from the log itself, so that the entries can be forgotten once the core has them. */
export interface OpenedWal {
  readonly wal: Wal
  readonly recovered: WalRecovered
}

/**
 * The log opened for writing. One owner, one process: the caller holds the directory's lock.
 *
 * Appends are made durable in the order of the calls, many in one write when they queue up behind a running one.
 * Any error of the disk breaks the log for ever: what a failed sync left on disk is not known, so nothing may follow it.
 */
export class Wal {
  readonly #metadata: WalMetadata
  readonly #disk: Disk
  readonly #directory: string
  readonly #segmentBytes: number
  readonly #random: Random
  readonly #files: SegmentFiles
  readonly #segments: SegmentState[]
  readonly #queue: Waiting[] = []
  #queueBytes = 0
  #file: DiskFile
  #header: SegmentHeader
  #position: number
  #nextBatch: number
  #chain: number
  #hardState: HardState
  #marker: SnapshotMeta
  #lastIndex: Index
  #bytesSinceMarker: number
  #writing: Promise<void> | undefined
  #releasing: Promise<void> = Promise.resolve()
  #failure: unknown
  #closed = false

  constructor(options: WalOptions, inspection: WalInspection, file: DiskFile, files: SegmentFiles) {
    const { metadata, hardState, snapshot, entries, segments, tail } = inspection
    this.#metadata = metadata
    this.#disk = options.disk
    this.#directory = options.directory
    this.#segmentBytes = options.segmentBytes ?? walSegmentBytes
    this.#random = options.random
    this.#files = files
    this.#segments = [...segments]
    this.#file = file
    this.#header = tail.header
    this.#position = tail.position
    this.#nextBatch = tail.nextBatch
    this.#chain = tail.chain
    this.#hardState = hardState
    this.#marker = snapshot
    this.#lastIndex = entries.at(-1)?.index ?? snapshot.index
    this.#bytesSinceMarker = recordsSize({ entries })
  }

  /** Bytes of records written since the newest marker: what a restart would have to replay. */
  get bytesSinceMarker(): number {
    return this.#bytesSinceMarker
  }

  get segmentCount(): number {
    return this.#segments.length
  }

  /**
   * Resolves once the records are on stable storage. Entries go on from the last index or overwrite from theirs.
   * Their data must not change any more.
   * @throws RaftError ERR_OVERLOADED above walQueueBytesMax waiting, ERR_STOPPED after close(); DiskError for ever after
   * the first one.
   */
  append(records: WalRecords): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    if (this.#closed) return Promise.reject(new RaftError('ERR_STOPPED', 'the log is closed'))
    const bytes = recordsSize(records)
    if (this.#queueBytes + bytes > walQueueBytesMax) {
      return Promise.reject(new RaftError('ERR_OVERLOADED', `${this.#queueBytes} bytes wait for the log`))
    }
    this.#queueBytes += bytes
    return new Promise((resolve, reject) => {
      this.#queue.push({ records, bytes, resolve, reject })
      this.#writing ??= this.#drain()
    })
  }

  /**
   * Removes the segments whose every entry is at or below `through`.
   * @param through - At or below a marker that append() has made durable.
   */
  release(through: Index): Promise<void> {
    assert(through <= this.#marker.index, `release through ${through}, marker at ${this.#marker.index}`)
    this.#releasing = this.#releasing.then(() => this.#release(through))
    return this.#releasing
  }

  /** Writes out what waits, then closes. Never rejects for an earlier failure. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#writing
    await Promise.allSettled([this.#releasing])
    await this.#files.settle()
    await this.#file.close()
  }

  /** One write runs at a time; what queues up meanwhile goes together in the next. */
  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      const group = this.#takeGroup()
      try {
        await this.#write(group.map((waiting) => waiting.records))
      } catch (error) {
        this.#failure = error
        for (const waiting of [...group, ...this.#queue.splice(0)]) waiting.reject(error)
        this.#queueBytes = 0
        break
      }
      for (const waiting of group) {
        this.#queueBytes -= waiting.bytes
        waiting.resolve()
      }
    }
    this.#writing = undefined
  }

  #takeGroup(): Waiting[] {
    let bytes = 0
    let count = 0
    for (const waiting of this.#queue) {
      if (count > 0 && bytes + waiting.bytes > walBatchBytesMax) break
      bytes += waiting.bytes
      count++
    }
    return this.#queue.splice(0, count)
  }

  async #write(groups: readonly WalRecords[]): Promise<void> {
    let batch = encodeBatch(groups, this.#place())
    const space = this.#segments.at(-1)?.bytes ?? 0
    if (this.#position + batch.length > space) {
      await this.#cut(batch.length)
      batch = encodeBatch(groups, this.#place())
    }
    await this.#file.write(batch.chunks, this.#position)
    this.#passed(batch)
    for (const records of groups) this.#note(records)
    const segment = this.#segments.at(-1)
    if (segment && this.#position > segment.bytes / 2) this.#files.prepare(this.#segmentBytes)
  }

  #place(): { number: number; chain: number; salt: number } {
    return { number: this.#nextBatch, chain: this.#chain, salt: this.#header.salt }
  }

  #passed(batch: EncodedBatch): void {
    this.#position += batch.length
    this.#nextBatch++
    this.#chain = batch.chain
  }

  #note(records: WalRecords): void {
    if (records.hardState) this.#hardState = records.hardState
    if (records.marker) {
      const { kind, snapshot } = records.marker
      this.#marker = snapshot
      if (kind === 'install') this.#lastIndex = snapshot.index
      this.#bytesSinceMarker = 0
    }
    const last = records.entries?.at(-1)
    if (last) this.#lastIndex = last.index
    this.#bytesSinceMarker += recordsSize({ entries: records.entries })
    const segment = this.#segments.pop()
    assert(segment !== undefined, 'a log has a segment')
    this.#segments.push({ ...segment, lastIndex: Math.max(segment.lastIndex, this.#lastIndex) })
  }

  /** Goes on in a new segment with room for `batchBytes` behind its own first batch. */
  async #cut(batchBytes: number): Promise<void> {
    const sequence = this.#header.sequence + 1
    const header: SegmentHeader = {
      salt: saltOf(this.#random),
      sequence,
      firstBatch: this.#nextBatch,
      previousIndex: this.#lastIndex,
      chain: this.#chain,
    }
    const first = firstBatch(header, { metadata: this.#metadata, hardState: this.#hardState, snapshot: this.#marker })
    const needed = segmentHeaderBytes + first.length + batchBytes
    const made = await makeSegment(this.#disk, this.#directory, this.#files, header, first, {
      bytes: Math.max(this.#segmentBytes, needed),
    })
    await this.#file.close()
    this.#file = made.file
    this.#header = header
    this.#position = segmentHeaderBytes
    this.#passed(first)
    const lastIndex = Math.max(this.#lastIndex, this.#segments.at(-1)?.lastIndex ?? 0)
    this.#segments.push({ sequence, path: made.path, lastIndex, bytes: made.bytes })
  }

  async #release(through: Index): Promise<void> {
    for (;;) {
      const oldest = this.#segments[0]
      if (!oldest || this.#segments.length === 1 || oldest.lastIndex > through) return
      await this.#disk.remove(oldest.path)
      // Each removal for itself: a crash must not undo an older one and keep a newer, which would look like a gap.
      await this.#disk.syncDirectory(this.#directory)
      this.#segments.shift()
    }
  }
}

interface Waiting {
  readonly records: WalRecords
  readonly bytes: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * Opens a log for writing, making it first when there is none.
 *
 * @throws RaftError ERR_CORRUPT, also when the log is another member's; ERR_FORMAT. Nothing has been changed then.
 * @throws DiskError
 */
export async function openWal(options: WalOptions): Promise<OpenedWal> {
  const { disk, directory, metadata } = options
  const files = new SegmentFiles(disk, directory, options.log)
  let inspection = await inspectWal(options)
  if (!inspection) {
    await createWal(options, files)
    inspection = await inspectWal(options)
    assert(inspection !== undefined, 'a log was just made')
  }
  const found = inspection.metadata
  if (found.clusterId !== metadata.clusterId || found.memberId !== metadata.memberId) {
    throw new RaftError(
      'ERR_CORRUPT',
      `${directory} is the log of member ${found.memberId.toString(16)} of cluster ${found.clusterId.toString(16)}, ` +
        `not of ${metadata.memberId.toString(16)} of ${metadata.clusterId.toString(16)}`,
    )
  }
  await files.clean()
  const { tail, segments } = inspection
  const file = await disk.open(segments.at(-1)?.path ?? directory, 'durable')
  try {
    if (tail.dirtyBytes > 0) {
      options.log.warn({ directory, batch: tail.nextBatch, bytes: tail.dirtyBytes }, 'dropping the torn end of the log')
      await zeroFill(file, tail.position, tail.position + tail.dirtyBytes)
    }
    // The last batch may have been written, never acknowledged, and be in the page cache only; there even as a page that
    // counts as clean, after a sync that failed. Only writing it again makes it durable (FORMATS.md).
    const lastBatch = Buffer.alloc(tail.position - tail.lastBatchPosition)
    const read = await file.read(lastBatch, tail.lastBatchPosition)
    assert(read === lastBatch.length, `${read} bytes of the last batch were read, not ${lastBatch.length}`)
    await file.write([lastBatch], tail.lastBatchPosition)
    await file.sync()
    await disk.syncDirectory(directory)
  } catch (error) {
    await file.close()
    throw error
  }
  const { hardState, snapshot, entries } = inspection
  return {
    wal: new Wal(options, inspection, file, files),
    recovered: { metadata: found, hardState, snapshot, entries },
  }
}

async function createWal(options: WalOptions, files: SegmentFiles): Promise<void> {
  const { disk, directory, metadata, initial } = options
  await disk.makeDirectory(directory)
  await disk.syncDirectory(dirname(directory))
  await files.clean()
  const header: SegmentHeader = {
    salt: saltOf(options.random),
    sequence: 1,
    firstBatch: 1,
    previousIndex: initial.snapshot.index,
    chain: 0,
  }
  const first = firstBatch(header, { ...initial, metadata })
  const bytes = Math.max(options.firstSegmentBytes ?? walFirstSegmentBytes, segmentHeaderBytes + first.length)
  const made = await makeSegment(disk, directory, files, header, first, { bytes })
  await made.file.close()
}

function firstBatch(
  header: SegmentHeader,
  state: WalInitial & { readonly metadata: WalMetadata; readonly entries?: readonly Entry[] },
): EncodedBatch {
  const { metadata, hardState, snapshot } = state
  const entries = header.sequence === 1 ? state.entries : undefined
  return encodeBatch([{ metadata, hardState, marker: { kind: 'checkpoint', snapshot }, entries }], {
    number: header.firstBatch,
    chain: header.chain,
    salt: header.salt,
  })
}

/** Zeroes, header and first batch are durable before the file gets its name; the name is durable before it is used. */
async function makeSegment(
  disk: Disk,
  directory: string,
  files: SegmentFiles,
  header: SegmentHeader,
  first: EncodedBatch,
  options: { readonly bytes: number },
): Promise<{ readonly file: DiskFile; readonly path: string; readonly bytes: number }> {
  const path = segmentPath(directory, header.sequence)
  const prepared = await files.take(options.bytes)
  const file = await disk.open(prepared.path, 'durable')
  try {
    await file.write([encodeSegmentHeader(header), ...first.chunks], 0)
    await disk.rename(prepared.path, path)
    await disk.syncDirectory(directory)
  } catch (error) {
    await file.close()
    throw error
  }
  return { file, path, bytes: prepared.bytes }
}

function saltOf(random: Random): number {
  const [a = 0, b = 0, c = 0, d = 0] = random.bytes(4)
  return ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
}
