import type { Row } from './key-history.ts'

/** What a row costs besides its value, so that many empty values are bounded too. */
const rowCostBytes = 64

/**
 * Keeps the values of the newest rows in memory, up to a number of bytes: live watchers, compares and first reads share
 * the buffer the entry came in, across all replicas of the process. When it is full the oldest value goes and is read
 * from the backend from then on.
 */
export class ValueTail {
  readonly #bytesMax: number
  #rows: (Row | undefined)[] = []
  #first = 0
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /** `row.value` is set. */
  add(row: Row): void {
    this.#rows.push(row)
    this.#bytes += rowCostBytes + (row.value?.length ?? 0)
  }

  /** Called between entries only, so that within one entry what was written is at hand. */
  trim(): void {
    while (this.#bytes > this.#bytesMax) {
      const row = this.#rows[this.#first]
      this.#rows[this.#first] = undefined
      this.#first += 1
      if (row === undefined) continue
      this.#bytes -= rowCostBytes + (row.value?.length ?? 0)
      row.value = undefined
    }
    if (this.#first < 1024 || this.#first * 2 < this.#rows.length) return
    this.#rows = this.#rows.slice(this.#first)
    this.#first = 0
  }
}
