import type { Scheduler, Timer } from './env.ts'
import { RaftError } from './errors.ts'
import { pendingReadsMax, readRetryMs } from './limits.ts'
import type { Index } from './types.ts'
import { Waiting, aborted } from './waiting.ts'

interface Round {
  /** Of the newest attempt. An answer to an older one proves nothing about now (etcd-io/etcd#20418). */
  id: bigint
  readonly waiting: Set<Waiting<Index>>
  timer: Timer
}

/**
 * Linearizable reads. One round to the quorum is in flight; reads that arrive meanwhile cannot use it (it may have been
 * answered before they came) and share the next.
 */
export class Reads {
  readonly #scheduler: Scheduler
  readonly #ask: (id: bigint) => void
  readonly #idBase: bigint
  #attempts = 0n
  #next = new Set<Waiting<Index>>()
  #round: Round | undefined
  #unapplied: { readonly index: Index; readonly waiting: Set<Waiting<Index>> }[] = []
  #count = 0

  /** @param incarnation - Random per start, 32 bits: ids of two lives must differ. */
  constructor(options: {
    readonly scheduler: Scheduler
    readonly incarnation: number
    readonly ask: (id: bigint) => void
  }) {
    this.#scheduler = options.scheduler
    this.#ask = options.ask
    this.#idBase = BigInt(options.incarnation) << 32n
  }

  get waitingCount(): number {
    return this.#count
  }

  read(signal: AbortSignal): Promise<Index> {
    if (signal.aborted) return Promise.reject(aborted(signal))
    if (this.#count >= pendingReadsMax) {
      return Promise.reject(new RaftError('ERR_OVERLOADED', `${this.#count} reads are waiting`))
    }
    const waiting = new Waiting<Index>(signal, () => {
      this.#count--
      this.#next.delete(waiting)
      this.#round?.waiting.delete(waiting)
      for (const { waiting: set } of this.#unapplied) set.delete(waiting)
      waiting.reject(aborted(signal))
    })
    this.#count++
    this.#next.add(waiting)
    return waiting.promise
  }

  /** Called by the node's loop, so that reads of one turn share a round. */
  start(): void {
    if (this.#round || this.#next.size === 0) return
    const waiting = this.#next
    this.#next = new Set()
    this.#round = { id: 0n, waiting, timer: { cancel: () => undefined } }
    this.#attempt(this.#round)
  }

  #attempt(round: Round): void {
    round.id = this.#idBase + ++this.#attempts
    round.timer.cancel()
    round.timer = this.#scheduler.after(readRetryMs, () => this.retry())
    this.#ask(round.id)
  }

  /** A new leader can answer at once. */
  retry(): void {
    if (!this.#round) return
    if (this.#round.waiting.size > 0) return this.#attempt(this.#round)
    this.#round.timer.cancel()
    this.#round = undefined
  }

  /** The core's word. A dropped attempt waits for its timer or for a new leader. */
  answer(id: bigint, index: Index, applied: Index): void {
    const round = this.#round
    if (!round || round.id !== id || index < 0) return
    round.timer.cancel()
    this.#round = undefined
    if (index <= applied) this.#finish(round.waiting, index)
    else this.#unapplied.push({ index, waiting: round.waiting })
  }

  applied(index: Index): void {
    while (this.#unapplied[0] && this.#unapplied[0].index <= index) {
      const { index: at, waiting } = this.#unapplied[0]
      this.#unapplied.shift()
      this.#finish(waiting, at)
    }
  }

  #finish(waiting: Set<Waiting<Index>>, index: Index): void {
    this.#count -= waiting.size
    for (const one of waiting) one.resolve(index)
  }

  fail(error: RaftError): void {
    this.#round?.timer.cancel()
    const all = [this.#next, this.#round?.waiting, ...this.#unapplied.map((group) => group.waiting)]
    this.#next = new Set()
    this.#round = undefined
    this.#unapplied = []
    this.#count = 0
    for (const set of all) for (const one of set ?? []) one.reject(error)
  }
}
