import type { Entry, Index, SnapshotMeta, Term } from '../types.ts'
import { assert } from './assert.ts'
import { entryOverheadBytes } from './limits.ts'

export const entryBytes = (entry: Entry): number => entry.data.byteLength + entryOverheadBytes

const noEntries: readonly Entry[] = []

/**
 * The part of the log that is in memory, and how far each stage has come.
 *
 *     base | base+1 ............ lastIndex        entries held
 *          applied <= applying <= commit          applying: handed to the driver for applying
 *          stable <= emitted <= lastIndex         emitted: handed to the driver for persisting
 *
 * Only entries both committed and stable are handed out. A conflicting suffix takes `stable` and `emitted` back with
 * it; so when the write of overwritten entries is reported late, it cannot count for the entries that replaced them.
 */
export class RaftLog {
  #base: Index
  #baseTerm: Term
  #entries: Entry[]
  commit: Index
  applied: Index
  #applying: Index
  #stable: Index
  #emitted: Index
  /** From the leader, not yet installed by the driver; nothing is applied meanwhile. */
  #snapshot: SnapshotMeta | undefined
  #snapshotEmitted = false

  constructor(options: {
    snapshot: { readonly index: Index; readonly term: Term }
    entries: readonly Entry[]
    commit: Index
    applied: Index
  }) {
    this.#base = options.snapshot.index
    this.#baseTerm = options.snapshot.term
    this.#entries = options.entries.slice()
    this.#entries.forEach((entry, i) =>
      assert(entry.index === this.#base + 1 + i, `log has a gap at ${entry.index}, after ${this.#base}`),
    )
    assert(options.applied >= this.#base, `log starts after ${this.#base}, state ends at ${options.applied}`)
    // A commit index is written with a later batch, without fsync of its own: the state may be ahead of it.
    this.commit = Math.max(options.commit, options.applied)
    assert(
      this.commit <= this.lastIndex,
      `log was lost: it ends at ${this.lastIndex}, but ${this.commit} was known to be committed`,
    )
    this.applied = options.applied
    this.#applying = options.applied
    this.#stable = this.lastIndex
    this.#emitted = this.lastIndex
  }

  get firstIndex(): Index {
    return this.#base + 1
  }

  get lastIndex(): Index {
    return this.#base + this.#entries.length
  }

  get lastTerm(): Term {
    return this.#entries.length === 0 ? this.#baseTerm : this.#entries[this.#entries.length - 1]!.term
  }

  get stable(): Index {
    return this.#stable
  }

  get pendingSnapshot(): SnapshotMeta | undefined {
    return this.#snapshot
  }

  /** Undefined when compacted away or beyond the end. */
  termAt(index: Index): Term | undefined {
    if (index === this.#base) return this.#baseTerm
    return this.#entries[index - this.#base - 1]?.term
  }

  entryAt(index: Index): Entry | undefined {
    return this.#entries[index - this.#base - 1]
  }

  /** Raft paper, section 5.4.1: the later last term wins, then the longer log. */
  isUpToDate(lastIndex: Index, lastTerm: Term): boolean {
    return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex)
  }

  append(entry: Entry): void {
    assert(entry.index === this.lastIndex + 1, `append of ${entry.index} after ${this.lastIndex}`)
    this.#entries.push(entry)
  }

  /** Drops everything from `index` on: a new leader's log differs there. Committed entries never differ. */
  truncate(index: Index): void {
    assert(index > this.commit, `truncation at ${index} reaches into what is committed (${this.commit})`)
    this.#entries.length = index - this.#base - 1
    this.#stable = Math.min(this.#stable, index - 1)
    this.#emitted = Math.min(this.#emitted, index - 1)
  }

  /** True when the commit index moved. */
  commitTo(index: Index): boolean {
    if (index <= this.commit) return false
    assert(index <= this.lastIndex, `commit of ${index} beyond the end ${this.lastIndex}`)
    this.commit = index
    return true
  }

  /** Replaces everything; the driver installs `snapshot` before it persists or applies anything after it. */
  restore(snapshot: SnapshotMeta): void {
    assert(snapshot.index > this.commit, `snapshot at ${snapshot.index} is not beyond ${this.commit}`)
    this.#base = snapshot.index
    this.#baseTerm = snapshot.term
    this.#entries = []
    this.commit = snapshot.index
    this.#applying = snapshot.index
    this.#stable = snapshot.index
    this.#emitted = snapshot.index
    this.#snapshot = snapshot
    this.#snapshotEmitted = false
  }

  /** The entries through `index` leave memory; no-op when they already have. */
  compact(index: Index): void {
    if (index <= this.#base) return
    assert(index <= this.applied, `compaction at ${index} beyond what is applied (${this.applied})`)
    const term = this.termAt(index)!
    this.#entries.splice(0, index - this.#base)
    this.#base = index
    this.#baseTerm = term
  }

  /**
   * Where a log whose entry at `index` has `term` may still agree with ours: the largest index <= `index` with a term
   * <= `term`. Terms never fall along a log, so everything after it surely differs.
   */
  matchHint(index: Index, term: Term): { readonly index: Index; readonly term: Term } {
    let low = this.#base
    let high = Math.min(index, this.lastIndex)
    if (high < low) return { index: Math.max(0, high), term: 0 }
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (this.termAt(middle)! <= term) low = middle
      else high = middle - 1
    }
    return { index: low, term: this.termAt(low)! }
  }

  /** Entries from `from` (held) on, at most `bytesMax` but at least one; empty at the end of the log. */
  batch(from: Index, bytesMax: number): readonly Entry[] {
    return this.#batchThrough(from, this.lastIndex, bytesMax)
  }

  #batchThrough(from: Index, through: Index, bytesMax: number): readonly Entry[] {
    if (from > through) return noEntries
    const start = from - this.#base - 1
    const end = through - this.#base
    let to = start + 1
    let bytes = entryBytes(this.#entries[start]!)
    for (; to < end; to++) {
      bytes += entryBytes(this.#entries[to]!)
      if (bytes > bytesMax) break
    }
    return this.#entries.slice(start, to)
  }

  bytesBetween(options: { readonly after: Index; readonly through: Index }): number {
    let bytes = 0
    for (let index = options.after + 1; index <= options.through; index++) {
      const entry = this.entryAt(index)
      if (entry !== undefined) bytes += entryBytes(entry)
    }
    return bytes
  }

  get hasUnpersisted(): boolean {
    return this.#emitted < this.lastIndex || (this.#snapshot !== undefined && !this.#snapshotEmitted)
  }

  get #committable(): Index {
    return this.#snapshot === undefined ? Math.min(this.commit, this.#stable) : this.#applying
  }

  get hasCommitted(): boolean {
    return this.#applying < this.#committable
  }

  takeUnpersisted(): { readonly entries: readonly Entry[]; readonly snapshot: SnapshotMeta | undefined } {
    const from = this.#emitted - this.#base
    const entries = from === this.#entries.length ? noEntries : this.#entries.slice(from)
    const snapshot = this.#snapshotEmitted ? undefined : this.#snapshot
    this.#emitted = this.lastIndex
    if (snapshot !== undefined) this.#snapshotEmitted = true
    return { entries, snapshot }
  }

  takeCommitted(bytesMax: number): readonly Entry[] {
    const entries = this.#batchThrough(this.#applying + 1, this.#committable, bytesMax)
    this.#applying += entries.length
    return entries
  }

  /**
   * What takeUnpersisted last gave out is on disk. `through` may name an entry that has been overwritten since: then
   * only the prefix that survived (`emitted`) counts.
   */
  persisted(last: { readonly through: Index; readonly term: Term }, snapshot: SnapshotMeta | undefined): void {
    const { through, term } = last
    if (through > this.#stable && through <= this.#emitted) {
      assert(this.termAt(through) === term, `persisted (${through}, ${term}) is not what was given out`)
    }
    this.#stable = Math.max(this.#stable, Math.min(through, this.#emitted))
    if (snapshot !== undefined && snapshot === this.#snapshot) this.#snapshot = undefined
  }

  appliedThrough(applied: Index): void {
    assert(applied >= this.applied, `applied index went back from ${this.applied} to ${applied}`)
    assert(applied <= this.#applying, `applied ${applied}, though only ${this.#applying} was handed out`)
    assert(
      this.#snapshot !== undefined || applied >= this.#base,
      `applied ${applied} before the log's base ${this.#base}`,
    )
    this.applied = applied
  }
}
