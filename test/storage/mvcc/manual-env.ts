import { silentLogger, type Clock, type Scheduler, type Timer } from '../../../storage/index.ts'
import { createMvccEngine, type MvccEngine } from '../../../storage/mvcc/engine.ts'
import { refusalError, type TxnOutcome } from '../../../storage/mvcc/outcome.ts'
import { VolatileBackend } from '../../../storage/mvcc/volatile-backend.ts'
import type { Proposal } from '../../../storage/proposal.ts'
import type { Op } from '../../../storage/store.ts'
import { bytes } from '../../contract/store/store-harness.ts'

/** Turns of the event loop happen when a test says so. */
export class ManualScheduler implements Scheduler {
  #soon: (() => void)[] = []

  after(): Timer {
    throw new Error('the engine uses no timers')
  }

  every(): Timer {
    throw new Error('the engine uses no timers')
  }

  soon(run: () => void): void {
    this.#soon.push(run)
  }

  get pending(): number {
    return this.#soon.length
  }

  /** One turn: what is due now, not what that brings about. */
  turn(): void {
    const due = this.#soon
    this.#soon = []
    for (const run of due) run()
  }

  /** Turns until nothing is due. */
  settle(): void {
    while (this.#soon.length > 0) this.turn()
  }
}

export class ManualClock implements Clock {
  nowMs = 1000

  monotonicMs(): number {
    return this.nowMs
  }

  wallMs(): number {
    return this.nowMs
  }
}

/** An engine on a backend in memory, driven by hand. */
export class EngineRig {
  readonly scheduler: ManualScheduler
  readonly backend: VolatileBackend
  readonly engine: MvccEngine
  index = 0

  constructor(
    init: {
      readonly physicalLimit?: () => number
      readonly engine?: MvccEngine
      readonly backend?: VolatileBackend
      readonly scheduler?: ManualScheduler
    } = {},
  ) {
    this.scheduler = init.scheduler ?? new ManualScheduler()
    this.backend = init.backend ?? new VolatileBackend()
    const { physicalLimit } = init
    this.engine =
      init.engine ??
      createMvccEngine({
        backend: this.backend,
        scheduler: this.scheduler,
        log: silentLogger,
        ...(physicalLimit === undefined ? {} : { physicalLimit }),
      })
  }

  apply(proposal: Proposal) {
    return this.engine.apply(proposal, { index: ++this.index, term: 1 })
  }

  /** Throws the refusal. */
  txn(...success: Op[]): TxnOutcome {
    const outcome = this.apply({ type: 'txn', request: { compare: [], success, failure: [] } })
    if (outcome.type === 'refused') throw refusalError(outcome)
    if (outcome.type !== 'txn') throw new Error(`outcome ${outcome.type}`)
    return outcome.txn
  }

  put(key: string, value: string, lease = 0n): number {
    return this.txn({ type: 'put', key: bytes(key), value: bytes(value), lease }).revision
  }

  delete(key: string): number {
    return this.txn({ type: 'delete', key: bytes(key) }).revision
  }

  compact(revision: number): void {
    const outcome = this.apply({ type: 'compact', revision })
    if (outcome.type === 'refused') throw refusalError(outcome)
  }

  /** Its hash, turning the scheduler meanwhile. */
  async hash(): Promise<string> {
    let hash: string | undefined
    const done = this.engine.hash().then((found) => (hash = found.hash))
    while (hash === undefined) {
      this.scheduler.settle()
      await Promise.resolve()
    }
    return done
  }
}
