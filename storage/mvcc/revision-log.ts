import type { Revision } from '../store.ts'
import type { Row } from './key-history.ts'

/**
 * The rows in order of (main, sub): what a watcher replays and what compaction walks. Rows that the last finished
 * physical compaction left below its revision are not in it, the key index alone has them.
 */
export class RevisionLog {
  #rows: Row[] = []
  #first = 0

  get size(): number {
    return this.#rows.length - this.#first
  }

  append(row: Row): void {
    this.#rows.push(row)
  }

  /** Position of the first row with main >= revision; positions hold until the next trim. */
  positionOf(revision: Revision): number {
    let low = this.#first
    let high = this.#rows.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const row = this.#rows[middle]
      if (row !== undefined && row.main < revision) low = middle + 1
      else high = middle
    }
    return low
  }

  at(position: number): Row | undefined {
    return this.#rows[position]
  }

  /** Forgets rows with main < revision. */
  trim(revision: Revision): void {
    this.#first = this.positionOf(revision)
    if (this.#first < 1024 && this.#first * 2 < this.#rows.length) return
    this.#rows = this.#rows.slice(this.#first)
    this.#first = 0
  }
}
