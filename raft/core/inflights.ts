import type { Index } from '../types.ts'

/**
 * Append messages sent to one follower and not yet answered, oldest first: a ring of (last index, bytes).
 * Example with room for 3: add(5) add(7) add(9) is full; freeThrough(7) leaves [9].
 */
export class Inflights {
  readonly #last: Float64Array
  readonly #bytes: Float64Array
  readonly #bytesMax: number
  #start = 0
  #count = 0
  #bytesTotal = 0

  constructor(messagesMax: number, bytesMax: number) {
    this.#last = new Float64Array(messagesMax)
    this.#bytes = new Float64Array(messagesMax)
    this.#bytesMax = bytesMax
  }

  get count(): number {
    return this.#count
  }

  get full(): boolean {
    return this.#count === this.#last.length || this.#bytesTotal >= this.#bytesMax
  }

  add(lastIndex: Index, bytes: number): void {
    const at = (this.#start + this.#count) % this.#last.length
    this.#last[at] = lastIndex
    this.#bytes[at] = bytes
    this.#count++
    this.#bytesTotal += bytes
  }

  /** The follower has everything through `index`. */
  freeThrough(index: Index): void {
    while (this.#count > 0 && this.#last[this.#start]! <= index) this.freeFirst()
  }

  /** Gives up waiting for the oldest: its answer may be lost for good. */
  freeFirst(): void {
    if (this.#count === 0) return
    this.#bytesTotal -= this.#bytes[this.#start]!
    this.#start = (this.#start + 1) % this.#last.length
    this.#count--
  }

  reset(): void {
    this.#start = 0
    this.#count = 0
    this.#bytesTotal = 0
  }
}
