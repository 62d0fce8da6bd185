import { Buffer } from 'node:buffer'
import { RaftError } from '../errors.ts'
import type { Entry, HardState, SnapshotMeta } from '../types.ts'
import type { WalMetadata, WalRecord } from './format.ts'

/**
 * The log as its records build it up, one after the other.
 *
 * Segments are dropped from the front only, so the entries may begin behind a marker seen so far; a later marker must
 * then close the gap, which finish() checks.
 */
export class LogReplay {
  metadata: WalMetadata | undefined
  hardState: HardState = { term: 0, vote: 0n, commit: 0 }
  marker: SnapshotMeta | undefined
  #entries: Entry[] = []
  #lastIndex: number

  /** @param previousIndex - of the first segment's header: the log's last index before it. */
  constructor(previousIndex: number) {
    this.#lastIndex = previousIndex
  }

  get lastIndex(): number {
    return this.#lastIndex
  }

  add(record: WalRecord): void {
    switch (record.type) {
      case 'metadata':
        this.metadata = record.metadata
        return
      case 'hardState':
        this.hardState = record.hardState
        return
      case 'marker':
        this.marker = record.marker.snapshot
        if (record.marker.kind === 'install') {
          this.#entries = []
          this.#lastIndex = record.marker.snapshot.index
        }
        return
      case 'entry':
        this.#addEntry(record.entry)
        return
    }
  }

  #addEntry(entry: Entry): void {
    if (entry.index > this.#lastIndex + 1 || entry.index < 1) {
      throw new RaftError('ERR_CORRUPT', `log entry ${entry.index} follows ${this.#lastIndex}`)
    }
    const first = this.#entries[0]?.index ?? this.#lastIndex + 1
    if (entry.index <= this.#lastIndex) this.#entries.length = Math.max(0, entry.index - first)
    this.#entries.push(entry)
    this.#lastIndex = entry.index
  }

  /** @throws RaftError ERR_CORRUPT when metadata or marker are missing or entries are. */
  finish(): {
    readonly metadata: WalMetadata
    readonly hardState: HardState
    readonly snapshot: SnapshotMeta
    readonly entries: readonly Entry[]
  } {
    const { metadata, marker, hardState } = this
    if (!metadata || !marker) throw new RaftError('ERR_CORRUPT', 'log without metadata or marker')
    const first = this.#entries[0]?.index ?? this.#lastIndex + 1
    if (first > marker.index + 1 || marker.index > this.#lastIndex) {
      throw new RaftError(
        'ERR_CORRUPT',
        `log holds entries ${first} to ${this.#lastIndex}, its newest marker is at ${marker.index}`,
      )
    }
    const entries = copied(this.#entries.slice(marker.index + 1 - first))
    // A snapshot or checkpoint is of committed entries; its marker may be durable before the commit index is.
    const commit = Math.max(hardState.commit, marker.index)
    if (commit > this.#lastIndex) {
      throw new RaftError('ERR_CORRUPT', `commit index ${commit} is above the last entry ${this.#lastIndex}`)
    }
    return { metadata, hardState: { ...hardState, commit }, snapshot: marker, entries }
  }
}

/** Bytes of entries that share a buffer after a start. */
const blockBytes = 64 * 1024

/** So that a few entries do not keep whole segments in memory; in blocks, since a buffer for each costs more than copying. */
function copied(entries: readonly Entry[]): Entry[] {
  const copies: Entry[] = []
  let block = Buffer.alloc(0)
  let used = 0
  for (const entry of entries) {
    const { length } = entry.data
    if (used + length > block.length) {
      block = Buffer.allocUnsafeSlow(Math.max(blockBytes, length))
      used = 0
    }
    const data = block.subarray(used, used + length)
    data.set(entry.data)
    used += length
    copies.push({ ...entry, data })
  }
  return copies
}
