import type { Env, Timer } from '../raft/index.ts'
import { StorageError } from './errors.ts'
import { chooseLeaseId } from './lease-id.ts'
import { leaseExpiryPeriodMs } from './limits.ts'
import { createMvccEngine, type MvccEngine } from './mvcc/engine.ts'
import { LeaseClock } from './mvcc/lease-clock.ts'
import { outcomeOf, refusalError, type ApplyOutcome } from './mvcc/outcome.ts'
import { checkTxn } from './mvcc/txn-check.ts'
import { VolatileBackend } from './mvcc/volatile-backend.ts'
import { decodeProposal, encodeRequest, type Proposal } from './proposal.ts'
import type {
  CallOptions,
  CompactRequest,
  LeaseGrant,
  LeaseGrantRequest,
  LeaseId,
  LeaseTimeToLive,
  RangeRequest,
  RangeResult,
  Revision,
  Store,
  StoreStatus,
  TxnRequest,
  TxnResult,
  WatchRequest,
  WatchSink,
  Watcher,
} from './store.ts'

/** A store of one process without log and disk: the real engine, proposals applied at once. For tests. */
export function createMemoryStore(options: { readonly env: Omit<Env, 'disk'> }): Store {
  return new MemoryStore(options.env)
}

class MemoryStore implements Store {
  readonly #env: Omit<Env, 'disk'>
  readonly #engine: MvccEngine
  readonly #leaseClock: LeaseClock
  readonly #expiry: Timer
  #index = 0
  #closed = false

  constructor(env: Omit<Env, 'disk'>) {
    this.#env = env
    const engine: MvccEngine = createMvccEngine({
      backend: new VolatileBackend(),
      scheduler: env.scheduler,
      log: env.log,
      physicalLimit: () => engine.compactRevision,
    })
    this.#engine = engine
    this.#leaseClock = new LeaseClock({ clock: env.clock, leases: engine })
    this.#leaseClock.promote()
    this.#expiry = env.scheduler.every(leaseExpiryPeriodMs, () => this.#revokeExpired())
  }

  async range(request: RangeRequest, options: CallOptions): Promise<RangeResult> {
    await this.#turn(options)
    return this.#engine.range(request)
  }

  async txn(request: TxnRequest, options: CallOptions): Promise<TxnResult> {
    const fault = checkTxn(request)
    if (fault !== undefined) throw new StorageError(fault.code, fault.message)
    const outcome = outcomeOf('txn', await this.#propose({ type: 'txn', request }, options))
    return this.#engine.txnResult(outcome.txn)
  }

  async currentRevision(options: CallOptions): Promise<Revision> {
    await this.#turn(options)
    return this.#engine.revision
  }

  watch(request: WatchRequest, sink: WatchSink): Watcher {
    return this.#engine.watch(request, sink)
  }

  async compact(request: CompactRequest, options: CallOptions): Promise<void> {
    await this.#propose({ type: 'compact', revision: request.revision }, options)
    if (request.physical) await this.#engine.whenPhysicallyCompacted(request.revision)
  }

  async leaseGrant(request: LeaseGrantRequest, options: CallOptions): Promise<LeaseGrant> {
    const id = chooseLeaseId(request.id, this.#env.random, (taken) => this.#engine.hasLease(taken))
    const outcome = outcomeOf(
      'leaseGrant',
      await this.#propose({ type: 'leaseGrant', id, ttlSeconds: request.ttlSeconds }, options),
    )
    return { id: outcome.id, ttlSeconds: outcome.ttlSeconds }
  }

  async leaseKeepAlive(id: LeaseId, options: CallOptions): Promise<number> {
    await this.#turn(options)
    return this.#leaseClock.keepAlive(id, () => this.#turn(options))
  }

  async leaseRevoke(id: LeaseId, options: CallOptions): Promise<void> {
    await this.#propose({ type: 'leaseRevoke', id }, options)
  }

  async leaseTimeToLive(id: LeaseId, options: CallOptions & { readonly keys?: boolean }): Promise<LeaseTimeToLive> {
    await this.#turn(options)
    return this.#leaseClock.timeToLive(id, options.keys === true)
  }

  status(): StoreStatus {
    return {
      revision: this.#engine.revision,
      compactRevision: this.#engine.compactRevision,
      keyCount: this.#engine.keyCount,
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#expiry.cancel()
    this.#leaseClock.close()
    this.#engine.close()
  }

  /** Never inside the caller's turn: a watch sink may call the store, and apply must not run inside apply. */
  async #turn(options: CallOptions): Promise<void> {
    await Promise.resolve()
    if (this.#closed) throw new StorageError('ERR_STOPPED', 'the store is closed')
    if (options.signal.aborted) {
      throw new StorageError('ERR_ABORTED', 'the call was aborted', { cause: options.signal.reason })
    }
  }

  /** Through the codec, as in a replicated store: callers' objects stay their own. */
  async #propose(proposal: Proposal, options: CallOptions): Promise<ApplyOutcome> {
    const data = encodeRequest(proposal)
    await this.#turn(options)
    const outcome = this.#engine.apply(decodeProposal(data), { index: ++this.#index, term: 1 })
    if (outcome.type === 'refused') throw refusalError(outcome)
    return outcome
  }

  #revokeExpired(): void {
    // The only member confirms itself.
    if (this.#leaseClock.frozen) this.#leaseClock.reconfirmed()
    for (const id of this.#leaseClock.expired()) {
      this.#engine.apply({ type: 'leaseRevoke', id }, { index: ++this.#index, term: 1 })
    }
  }
}
