import sortedBtree from 'sorted-btree'
import type { Revision } from '../store.ts'
import { KeyHistory, type Row } from './key-history.ts'
import type { KeyRange } from './key-range.ts'

const BTree = sortedBtree.default

/** Names are flat latin1 strings, so the engine compares bytes. */
function compareNames(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}

export interface RowsFound {
  /** Live rows in key order, at most `limit`. */
  readonly rows: Row[]
  /** Live keys in the range before the limit. */
  readonly count: number
}

/**
 * Name -> history, in byte order. A reader at a revision needs no copy of it: a history answers for every revision
 * that is not physically compacted, and whoever reads across turns of the event loop pins its revision.
 */
export class KeyIndex {
  readonly #tree = new BTree<string, KeyHistory>(undefined, compareNames)

  /** Histories, live or not. */
  get size(): number {
    return this.#tree.size
  }

  get(name: string): KeyHistory | undefined {
    return this.#tree.get(name)
  }

  /** The history of `name`, made if need be. */
  open(name: string): KeyHistory {
    const found = this.#tree.get(name)
    if (found !== undefined) return found
    const made = new KeyHistory(name)
    this.#tree.set(name, made)
    return made
  }

  /** Only of a history without rows. */
  drop(history: KeyHistory): void {
    this.#tree.delete(history.name)
  }

  /** The live row of `name` at `revision`, undefined when the key does not exist then. */
  live(name: string, revision: Revision): Row | undefined {
    const row = this.#tree.get(name)?.at(revision)
    return row === undefined || row.tombstone ? undefined : row
  }

  /** @param limit - 0 = all; the count goes on past it. `countOnly` gathers no rows. */
  liveRange(range: KeyRange, revision: Revision, limit: number, countOnly = false): RowsFound {
    if (range.single) {
      const row = this.live(range.start, revision)
      if (row === undefined) return { rows: [], count: 0 }
      return { rows: countOnly ? [] : [row], count: 1 }
    }
    const rows: Row[] = []
    let count = 0
    const last = range.end ?? this.#tree.maxKey()
    if (last === undefined) return { rows, count }
    this.#tree.forRange(range.start, last, range.end === undefined, (_name, history) => {
      const row = history.at(revision)
      if (row === undefined || row.tombstone) return
      count += 1
      if (!countOnly && (limit === 0 || rows.length < limit)) rows.push(row)
    })
    return { rows, count }
  }

  /** Up to `count` histories whose name is greater than `after` ('' = from the first). */
  historiesAfter(after: string, count: number): KeyHistory[] {
    const found: KeyHistory[] = []
    for (let pair = this.#tree.nextHigherPair(after); pair !== undefined; pair = this.#tree.nextHigherPair(pair[0])) {
      found.push(pair[1])
      if (found.length >= count) break
    }
    return found
  }
}
