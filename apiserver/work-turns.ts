import type { Env } from '../storage/index.ts'
import { sliceHeadStartMs, sliceMs } from './limits.ts'

/** A stretch of the event loop's time. */
export interface Slice {
  /** It is used up: wait for the next one. */
  spent(): boolean
}

/**
 * The event loop's time, divided among loops over many objects: together they work for `sliceMs` in a turn of the event
 * loop. If each only gave way after a slice of its own, 256 lists at once would hold the loop for more than a second,
 * which is an election. Waiting: at most one entry for each request under way, served in order.
 */
export class WorkTurns {
  readonly #env: Pick<Env, 'clock' | 'scheduler'>
  readonly #waiting: (() => void)[] = []
  /** Somebody has this turn. */
  #taken = false
  /** When the present turn's time is over. */
  #untilMs = 0

  constructor(env: Pick<Env, 'clock' | 'scheduler'>) {
    this.#env = env
  }

  /** A head start, so that what is short never waits. */
  begin(): Slice {
    return this.#slice(this.#env.clock.monotonicMs() + sliceHeadStartMs)
  }

  /** Resolves when it is the caller's turn. */
  next(): Promise<Slice> {
    if (!this.#taken) {
      this.#take()
      return Promise.resolve(this.#slice(this.#untilMs))
    }
    return new Promise((resolve) => this.#waiting.push(() => resolve(this.#slice(this.#untilMs))))
  }

  /** The caller has nothing to do for now (its client is slow, or it is done): what is left of the turn is the next one's. */
  pass(): void {
    if (this.#taken && this.#env.clock.monotonicMs() < this.#untilMs) this.#waiting.shift()?.()
  }

  /** Long work in steps, each well below a slice. */
  async run<Result>(steps: Generator<undefined, Result>): Promise<Result> {
    let slice = this.begin()
    for (;;) {
      const step = steps.next()
      if (step.done === true) {
        this.pass()
        return step.value
      }
      if (slice.spent()) slice = await this.next()
    }
  }

  #take(): void {
    this.#taken = true
    this.#untilMs = this.#env.clock.monotonicMs() + sliceMs
    this.#env.scheduler.soon(() => {
      this.#taken = false
      const run = this.#waiting.shift()
      if (run === undefined) return
      this.#take()
      run()
    })
  }

  #slice(untilMs: number): Slice {
    const { clock } = this.#env
    return { spent: () => clock.monotonicMs() >= untilMs }
  }
}
