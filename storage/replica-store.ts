import type { Env, RaftNode, RaftStatus, Timer } from '../raft/index.ts'
import { pendingBytesMax } from './backend/limits.ts'
import { StorageError } from './errors.ts'
import { chooseLeaseId } from './lease-id.ts'
import { leaseExpiryPeriodMs } from './limits.ts'
import type { MvccEngine } from './mvcc/engine.ts'
import { LeaseClock } from './mvcc/lease-clock.ts'
import { outcomeOf, refusalError, type ApplyOutcome } from './mvcc/outcome.ts'
import { checkTxn, isReadOnlyTxn } from './mvcc/txn-check.ts'
import { encodeRequest, type Proposal } from './proposal.ts'
import { storageError } from './replica-errors.ts'
import type { ReplicaStateMachine } from './replica-state-machine.ts'
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

/** The store as one replica offers it. Node and state machine stay the caller's: close() ends only its own timers. */
export class ReplicaStore implements Store {
  readonly #env: Env
  readonly #node: RaftNode
  readonly #machine: ReplicaStateMachine
  readonly #closing = new AbortController()
  readonly #expiry: Timer
  readonly #unsubscribe: readonly (() => void)[]
  #leases: LeaseClock
  #expiring = false

  constructor(options: { readonly env: Env; readonly node: RaftNode; readonly machine: ReplicaStateMachine }) {
    this.#env = options.env
    this.#node = options.node
    this.#machine = options.machine
    this.#leases = this.#leaseClock(this.#machine.engine)
    this.#unsubscribe = [
      this.#node.onStatusChange((status) => this.#followRole(status)),
      this.#machine.onEngine((engine) => {
        this.#leases.close()
        this.#leases = this.#leaseClock(engine)
      }),
    ]
    this.#expiry = this.#env.scheduler.every(leaseExpiryPeriodMs, () => void this.#revokeExpired())
  }

  async range(request: RangeRequest, options: CallOptions): Promise<RangeResult> {
    if (request.serializable === true) this.#assertNotAborted(options)
    else await this.#readIndex(options)
    return this.#read((engine) => engine.range(request))
  }

  /** A transaction that can change nothing costs a read round, not a log entry. */
  async txn(request: TxnRequest, options: CallOptions): Promise<TxnResult> {
    const fault = checkTxn(request)
    if (fault !== undefined) throw new StorageError(fault.code, fault.message)
    if (isReadOnlyTxn(request)) {
      await this.#readIndex(options)
      return this.#read(async (engine) => {
        const outcome = engine.readTxn(request)
        if ('type' in outcome) throw refusalError(outcome)
        return engine.txnResult(outcome)
      })
    }
    const outcome = outcomeOf('txn', await this.#propose({ type: 'txn', request }, options))
    try {
      return this.#machine.engine.txnResult(outcome.txn)
    } catch (error) {
      throw afterApply(error)
    }
  }

  async currentRevision(options: CallOptions): Promise<Revision> {
    await this.#readIndex(options)
    return this.#machine.engine.revision
  }

  watch(request: WatchRequest, sink: WatchSink): Watcher {
    return this.#machine.engine.watch(request, sink)
  }

  async compact(request: CompactRequest, options: CallOptions): Promise<void> {
    await this.#propose({ type: 'compact', revision: request.revision }, options)
    if (!request.physical) return
    try {
      await this.#machine.whenPhysicallyCompacted(request.revision, options.signal)
    } catch (error) {
      throw afterApply(error)
    }
  }

  async leaseGrant(request: LeaseGrantRequest, options: CallOptions): Promise<LeaseGrant> {
    const id = chooseLeaseId(request.id, this.#env.random, (taken) => this.#machine.engine.hasLease(taken))
    const outcome = outcomeOf(
      'leaseGrant',
      await this.#propose({ type: 'leaseGrant', id, ttlSeconds: request.ttlSeconds }, options),
    )
    return { id: outcome.id, ttlSeconds: outcome.ttlSeconds }
  }

  /** ERR_NO_LEADER on any replica but the leader: only that one knows the deadlines. */
  async leaseKeepAlive(id: LeaseId, options: CallOptions): Promise<number> {
    await this.#readIndex(options)
    return this.#leases.keepAlive(id, () => this.#readIndex(options))
  }

  async leaseRevoke(id: LeaseId, options: CallOptions): Promise<void> {
    await this.#propose({ type: 'leaseRevoke', id }, options)
  }

  /** ERR_NO_LEADER on any replica but the leader. */
  async leaseTimeToLive(id: LeaseId, options: CallOptions & { readonly keys?: boolean }): Promise<LeaseTimeToLive> {
    await this.#readIndex(options)
    if (!this.#leases.leading) throw new StorageError('ERR_NO_LEADER', 'leases are looked up at the leader')
    return this.#leases.timeToLive(id, options.keys === true)
  }

  status(): StoreStatus {
    const { revision, compactRevision, keyCount } = this.#machine.engine
    return { revision, compactRevision, keyCount }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#expiry.cancel()
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#leases.close()
  }

  async #propose(proposal: Proposal, options: CallOptions): Promise<ApplyOutcome> {
    const data = encodeRequest(proposal)
    this.#assertNotAborted(options)
    const { pendingBytes } = this.#machine
    if (pendingBytes > pendingBytesMax) {
      throw new StorageError('ERR_OVERLOADED', `${pendingBytes} bytes wait to be written behind the log`)
    }
    let outcome: unknown
    try {
      outcome = await this.#node.propose(data, options)
    } catch (error) {
      throw storageError(error)
    }
    if (!isOutcome(outcome)) throw new StorageError('ERR_CORRUPT', 'a proposal was applied without an outcome')
    if (outcome.type === 'refused') throw refusalError(outcome)
    return outcome
  }

  async #readIndex(options: CallOptions): Promise<void> {
    try {
      await this.#node.readIndex(options)
    } catch (error) {
      throw storageError(error)
    }
  }

  /**
   * A snapshot installed meanwhile closes the engine under a long read: it starts again on the new one. What this
   * replica cannot read another may have: ERR_STOPPED, and it ends.
   */
  async #read<T>(read: (engine: MvccEngine) => Promise<T>): Promise<T> {
    for (;;) {
      const { engine } = this.#machine
      try {
        return await read(engine)
      } catch (error) {
        if (!isOfThisReplica(error)) throw error
        if (this.#machine.engine === engine) {
          throw new StorageError('ERR_STOPPED', 'this replica cannot be read', { cause: error })
        }
      }
    }
  }

  #leaseClock(engine: MvccEngine): LeaseClock {
    const clock = new LeaseClock({ clock: this.#env.clock, leases: engine })
    if (this.#node.status().role === 'leader') clock.promote()
    return clock
  }

  #followRole(status: RaftStatus): void {
    const leading = status.role === 'leader'
    if (leading && !this.#leases.leading) this.#leases.promote()
    if (!leading && this.#leases.leading) this.#leases.demote()
  }

  async #revokeExpired(): Promise<void> {
    const leases = this.#leases
    if (this.#expiring || !leases.leading) return
    this.#expiring = true
    const options = { signal: this.#closing.signal }
    try {
      const due = leases.expired()
      if (leases.frozen) {
        await this.#readIndex(options)
        leases.reconfirmed()
      }
      for (const id of due) await this.#propose({ type: 'leaseRevoke', id }, options)
    } catch (error) {
      if (!this.#closing.signal.aborted)
        this.#env.log.debug({ error }, 'expired leases wait: a revocation did not pass')
    } finally {
      this.#expiring = false
    }
  }

  #assertNotAborted(options: CallOptions): void {
    if (!options.signal.aborted) return
    throw new StorageError('ERR_ABORTED', 'the call was aborted', { cause: options.signal.reason })
  }
}

function isOutcome(result: unknown): result is ApplyOutcome {
  return typeof result === 'object' && result !== null && 'type' in result
}

/** Says something of this replica's state, not of the request. */
function isOfThisReplica(error: unknown): boolean {
  return !(error instanceof StorageError) || error.code === 'ERR_STOPPED' || error.code === 'ERR_CORRUPT'
}

/** A failure behind a proposal that was applied: it must not look as if nothing had happened, or it is made again. */
function afterApply(error: unknown): unknown {
  if (!isOfThisReplica(error)) return error
  return new StorageError('ERR_OUTCOME_UNKNOWN', 'applied, but this replica cannot tell the result', { cause: error })
}
