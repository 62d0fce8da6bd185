import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers'
import type { Timer } from '../../../raft/env.ts'
import { SeededRandom } from './random.ts'

interface SimEvent {
  readonly at: number
  readonly order: number
  readonly run: () => void
  cancelled: boolean
}

/**
 * Time, order and chance of everything that happens, from one seed.
 *
 * Events run one at a time, by time and then by the order in which they were made. Between two events all promises are
 * let run to their end, so what a promise chain does belongs to the event that began it.
 */
export class Simulation {
  readonly seed: number
  readonly random: SeededRandom
  readonly #hash = createHash('sha256')
  readonly #heap: SimEvent[] = []
  #now = 0
  #order = 0
  #events = 0

  constructor(seed: number) {
    this.seed = seed
    this.random = new SeededRandom(seed)
  }

  /** Milliseconds since the beginning of the run. */
  get now(): number {
    return this.#now
  }

  get eventCount(): number {
    return this.#events
  }

  after(delayMs: number, run: () => void): Timer {
    const event: SimEvent = { at: this.#now + Math.max(0, delayMs), order: this.#order++, run, cancelled: false }
    push(this.#heap, event)
    return { cancel: () => void (event.cancelled = true) }
  }

  /** What the run did, for comparing two runs of one seed. */
  trace(line: string): void {
    this.#hash.update(`${this.#now.toFixed(3)} ${line}\n`)
  }

  traceHash(): string {
    return this.#hash.copy().digest('hex')
  }

  /** Runs until simulated time `until`, or until the predicate holds after an event. */
  async run(until: number | (() => boolean), options: { readonly eventsMax?: number } = {}): Promise<void> {
    const eventsMax = this.#events + (options.eventsMax ?? 5_000_000)
    await settle()
    for (;;) {
      if (typeof until === 'function' && until()) return
      const event = this.#heap[0]
      if (typeof until === 'number' && (!event || event.at > until)) {
        this.#now = Math.max(this.#now, until)
        return
      }
      if (!event) throw new Error(`seed ${this.seed}: nothing left to happen at ${this.#now} ms`)
      pop(this.#heap)
      if (event.cancelled) continue
      if (++this.#events > eventsMax) throw new Error(`seed ${this.seed}: ${eventsMax} events without an end`)
      this.#now = event.at
      this.#hash.update(`${event.at.toFixed(3)} ${event.order}\n`)
      event.run()
      await settle()
    }
  }

  /** Runs until `promise` settles, and gives its outcome. */
  async finish<T>(promise: Promise<T>): Promise<T> {
    let settled = false
    const mark = () => void (settled = true)
    promise.then(mark, mark)
    await this.run(() => settled)
    return promise
  }
}

/** Every microtask has run when the next turn of the real event loop comes. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const before = (a: SimEvent, b: SimEvent): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

function push(heap: SimEvent[], event: SimEvent): void {
  let i = heap.length
  heap.push(event)
  while (i > 0) {
    const parent = (i - 1) >> 1
    if (!before(event, heap[parent]!)) break
    heap[i] = heap[parent]!
    i = parent
  }
  heap[i] = event
}

function pop(heap: SimEvent[]): void {
  const last = heap.pop()
  if (!last || heap.length === 0) return
  let i = 0
  for (;;) {
    let child = 2 * i + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++
    if (!before(heap[child]!, last)) break
    heap[i] = heap[child]!
    i = child
  }
  heap[i] = last
}
