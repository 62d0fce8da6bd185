import { strict as assert } from 'node:assert'
import type { Index, Logger, Membership, Scheduler, Term } from '../../raft/index.ts'
import type { Backend, RowHead, StateRecord } from '../backend.ts'
import { StorageError } from '../errors.ts'
import { leaseTtlSecondsMax, leaseTtlSecondsMin, rangeValuesPerSlice, valueTailBytesMax } from '../limits.ts'
import type { Proposal } from '../proposal.ts'
import type {
  Key,
  KeyValue,
  LeaseId,
  Op,
  OpResult,
  RangeRequest,
  RangeResult,
  Revision,
  TxnRequest,
  TxnResult,
  Value,
  Watcher,
  WatchRequest,
  WatchSink,
} from '../store.ts'
import { PhysicalCompaction } from './compaction.ts'
import { keyValueOf, noValue, Row } from './key-history.ts'
import { KeyIndex } from './key-index.ts'
import { keyBytes, keyName } from './key-range.ts'
import { LeaseBook } from './lease-book.ts'
import {
  readRefusal,
  refusalError,
  type ApplyOutcome,
  type OpOutcome,
  type Refusal,
  type TxnOutcome,
} from './outcome.ts'
import { RevisionLog } from './revision-log.ts'
import { hashState, type StateHash } from './state-hash.ts'
import { checkTxn, isReadOnlyTxn } from './txn-check.ts'
import { executeTxn, selectRows, type TxnTarget } from './txn-execution.ts'
import { ValueTail } from './value-tail.ts'
import { WatchHub, type WatchSource } from './watch-hub.ts'
import type { HubWatcher } from './watcher.ts'

export interface MvccEngineOptions {
  readonly backend: Backend
  readonly scheduler: Scheduler
  readonly log: Logger
  /** The highest compact revision whose rows may go from the backend; absent = that of the backend's checkpoint. */
  readonly physicalLimit?: () => Revision
}

/** Local bookkeeping beside the state, told after the change is visible. Must not throw. */
export interface LeaseListener {
  granted(id: LeaseId, ttlSeconds: number): void
  revoked(id: LeaseId): void
}

export interface AppliedAt {
  readonly index: Index
  readonly term: Term
}

/** Watchers between two engines. Opaque: from detachWatchers to attachWatchers. */
export type DetachedWatchers = readonly HubWatcher[]

/** The state of a store nobody has written to: revision 1, as in etcd. */
export const initialState: StateRecord = {
  revision: 1,
  compactRevision: 0,
  keyCount: 0,
  membership: { voters: [], learners: [] },
  leases: [],
  alarms: [],
}

/** An engine on an empty backend. */
export function createMvccEngine(options: MvccEngineOptions): MvccEngine {
  return new MvccEngine(options, initialState)
}

/**
 * The engine as of the backend's checkpoint: rows above its revision are not believed (the log brings them again), and
 * the revision never goes below it, even if its newest row was a tombstone that compaction took (etcd-io/etcd#17780).
 *
 * @throws StorageError ERR_CORRUPT when rows and checkpoint cannot belong together.
 */
export async function loadMvccEngine(options: MvccEngineOptions): Promise<MvccEngine> {
  const engine = new MvccEngine(options, options.backend.checkpointed ?? initialState)
  for await (const heads of options.backend.heads()) engine.loadRows(heads)
  engine.loaded(options.backend.checkpointed ?? initialState)
  engine.resumeCompaction()
  return engine
}

/**
 * etcd's MVCC store as a state machine. apply() is the only mutator: synchronous, total, a function of the state and
 * the entry alone. Everything that can be refused is refused before the first write.
 */
export class MvccEngine implements WatchSource, TxnTarget {
  readonly index = new KeyIndex()
  readonly revisionLog = new RevisionLog()
  readonly #backend: Backend
  readonly #scheduler: Scheduler
  readonly #leases = new LeaseBook()
  readonly #tail = new ValueTail(valueTailBytesMax)
  readonly #hub: WatchHub
  readonly #compaction: PhysicalCompaction
  readonly #leaseListeners = new Set<LeaseListener>()
  readonly #alarms: StateRecord['alarms']
  #revision: Revision
  #compactRevision: Revision
  #membership: Membership
  #keyCount = 0
  /** While rows are loaded: the last one above the compact revision. */
  #loadedTo: { readonly main: Revision; readonly sub: number }
  /** Rows written by the entry being applied. */
  #changes: Row[] = []
  /** The entry being applied compacts. */
  #compacted = false
  #applying = false
  /** A write failed half-way: memory and backend may disagree, nothing is answered any more. */
  #broken: Error | undefined
  #closed = false

  /** Use createMvccEngine or loadMvccEngine. */
  constructor(options: MvccEngineOptions, state: StateRecord) {
    const { backend, scheduler, log, physicalLimit } = options
    assert(state.revision >= 1 && state.compactRevision <= state.revision, 'a state whose revisions cannot be')
    this.#backend = backend
    this.#scheduler = scheduler
    this.#revision = state.revision
    this.#compactRevision = state.compactRevision
    this.#membership = state.membership
    // Revision 1 is the empty store's.
    this.#loadedTo = { main: Math.max(1, state.compactRevision), sub: Number.POSITIVE_INFINITY }
    this.#alarms = state.alarms
    for (const lease of state.leases) this.#leases.add(lease.id, lease.ttlSeconds)
    this.#hub = new WatchHub(this, { scheduler, log })
    const limit = physicalLimit ?? (() => backend.checkpointed?.compactRevision ?? 0)
    this.#compaction = new PhysicalCompaction({
      index: this.index,
      revisionLog: this.revisionLog,
      backend,
      scheduler,
      finished: 0,
      limit: () => Math.min(this.#compactRevision, limit()),
    })
  }

  /** The store's revision, of the last applied change. */
  get revision(): Revision {
    return this.#revision
  }

  /** Reads below it are refused; 0 = never compacted. */
  get compactRevision(): Revision {
    return this.#compactRevision
  }

  /** Live keys. */
  get keyCount(): number {
    return this.#keyCount
  }

  get watcherCount(): number {
    return this.#hub.size
  }

  /** What a checkpoint or snapshot taken at this moment must hold. */
  state(): StateRecord {
    return {
      revision: this.#revision,
      compactRevision: this.#compactRevision,
      keyCount: this.#keyCount,
      membership: this.#membership,
      leases: this.#leases.list(),
      alarms: this.#alarms,
    }
  }

  setMembership(membership: Membership): void {
    this.#membership = membership
  }

  /**
   * Rows in order, before the first apply. Those above the state's revision are skipped. None may be missing: above the
   * compact revision every revision has changed something, its changes are numbered from 0, and each follows the row of
   * its key that was live before; keys not changed since are counted, see loaded().
   *
   * @throws StorageError ERR_CORRUPT
   */
  loadRows(heads: readonly RowHead[]): void {
    for (const head of heads) {
      if (head.main > this.#revision) return
      const { main, sub } = this.#loadedTo
      const next = head.main === main ? head.sub === sub + 1 : head.main === main + 1 && head.sub === 0
      if (head.main > this.#compactRevision) {
        if (!next)
          throw new StorageError('ERR_CORRUPT', `rows are missing between ${main}.${sub} and ${head.main}.${head.sub}`)
        this.#loadedTo = head
      }
      const history = this.index.open(keyName(head.key))
      const previous = history.newest
      if (previous !== undefined && previous.main >= head.main) {
        throw new StorageError('ERR_CORRUPT', `rows of one key out of order: ${previous.main}, then ${head.main}`)
      }
      if (head.main > this.#compactRevision && !follows(head, previous)) {
        throw new StorageError('ERR_CORRUPT', `the row before ${head.main}.${head.sub} of its key is missing`)
      }
      const row = new Row(history, head)
      this.#enter(row, previous)
      // An older row may name a lease that has gone since: then attach finds none, and a later row lets go of the key.
      if (head.lease !== 0n) this.#leases.attach(head.lease, history.name)
    }
  }

  /** After the last loadRows. @throws StorageError ERR_CORRUPT */
  loaded(state: StateRecord): void {
    if (this.#keyCount !== state.keyCount) {
      throw new StorageError('ERR_CORRUPT', `rows hold ${this.#keyCount} live keys of ${state.keyCount}`)
    }
    const { main } = this.#loadedTo
    if (main !== this.#revision)
      throw new StorageError('ERR_CORRUPT', `rows end at revision ${main} of ${this.#revision}`)
  }

  /**
   * Applies one committed entry and commits its rows, together with `at`, to the backend. Watchers hear of it before
   * this returns. A refusal is an outcome; an exception means that this replica is broken and must stop.
   */
  apply(proposal: Proposal, at: AppliedAt): ApplyOutcome {
    return this.#guarded(at, () => this.#applyProposal(proposal))
  }

  /** An entry without a proposal (empty, or a membership change): only the applied index moves. */
  advance(at: AppliedAt): void {
    this.#guarded(at, () => undefined)
  }

  /** A transaction that changes nothing, against the state applied here. */
  readTxn(request: TxnRequest): TxnOutcome | Refusal {
    this.#assertReadable()
    assert(isReadOnlyTxn(request), 'readTxn got a transaction that writes')
    const fault = checkTxn(request)
    if (fault !== undefined) return { type: 'refused', ...fault }
    const executed = executeTxn(this, request)
    return 'type' in executed ? executed : executed.outcome
  }

  /**
   * Fetches the bytes an outcome stands for. To be called in the turn of the event loop (microtasks included) in which
   * apply returned it; else pin() before that turn ends. Rows then cannot have gone: their removal needs a checkpoint
   * begun after the compaction was applied.
   */
  txnResult(outcome: TxnOutcome): TxnResult {
    return {
      revision: outcome.revision,
      succeeded: outcome.succeeded,
      responses: outcome.responses.map((response) => this.#opResult(response)),
    }
  }

  /**
   * Reads the local state; a large result is fetched in slices, at one revision throughout.
   *
   * @throws StorageError ERR_COMPACTED, ERR_FUTURE_REVISION, ERR_EMPTY_KEY.
   */
  async range(request: RangeRequest): Promise<RangeResult> {
    const { revision, selected } = this.#select(request)
    if (selected.keysOnly || selected.rows.length <= rangeValuesPerSlice) {
      return { ...this.#opResult(selected), revision }
    }
    const release = this.#compaction.pin(
      request.revision !== undefined && request.revision > 0 ? request.revision : revision,
    )
    try {
      const kvs: KeyValue[] = []
      let fetched = 0
      for (const row of selected.rows) {
        if (row.value === undefined && ++fetched % rangeValuesPerSlice === 0) {
          await new Promise<void>((resolve) => this.#scheduler.soon(resolve))
          this.#assertReadable()
        }
        kvs.push(keyValueOf(row, this.value(row)))
      }
      return { kvs, count: selected.count, more: selected.more, prevKvs: [], revision }
    } finally {
      release()
    }
  }

  /** range() in one go, for callers that know it to be small. */
  rangeNow(request: RangeRequest): RangeResult {
    const { revision, selected } = this.#select(request)
    return { ...this.#opResult(selected), revision }
  }

  /** Shared: nobody may change it. */
  value(row: Row): Value {
    return row.value ?? this.#backend.value(row)
  }

  watch(request: WatchRequest, sink: WatchSink): Watcher {
    return this.#hub.watch(request, sink)
  }

  /** Takes all watchers off this engine, to go on at another one: after a restore, or when this replica is given up. */
  detachWatchers(): DetachedWatchers {
    return this.#hub.detach()
  }

  /**
   * Watchers of another engine of the same store go on here. Behind: they replay, or end with ERR_COMPACTED. Ahead:
   * they wait until this engine has caught up; nothing is delivered twice (etcd-io/etcd#15271).
   */
  attachWatchers(watchers: DetachedWatchers): void {
    this.#hub.attach(watchers)
  }

  /** Keeps every row a reader at the current revision sees until the returned function is called. */
  pin(): () => void {
    return this.#compaction.pin(this.#revision)
  }

  /** To be called when physicalLimit may have risen: after each checkpoint. */
  resumeCompaction(): void {
    this.#compaction.resume()
  }

  /** Rejects with ERR_STOPPED when the engine closes first. */
  whenPhysicallyCompacted(revision: Revision): Promise<void> {
    return this.#compaction.whenFinished(revision)
  }

  hasLease(id: LeaseId): boolean {
    return this.#leases.has(id)
  }

  /** In order of id. */
  leases(): readonly { readonly id: LeaseId; readonly ttlSeconds: number }[] {
    return this.#leases.list()
  }

  grantedTtlSeconds(id: LeaseId): number | undefined {
    return this.#leases.ttlSeconds(id)
  }

  /** In byte order; none when there is no such lease. */
  leaseKeys(id: LeaseId): readonly Key[] {
    return this.#leases.keys(id).map(keyBytes)
  }

  onLeaseChange(listener: LeaseListener): () => void {
    this.#leaseListeners.add(listener)
    return () => void this.#leaseListeners.delete(listener)
  }

  /** Of this moment's (revision, compactRevision), computed in slices. */
  async hash(): Promise<StateHash> {
    this.#assertReadable()
    const at = { revision: this.#revision, compactRevision: this.#compactRevision }
    const release = this.#compaction.pin(at.compactRevision)
    try {
      return await hashState(this, at, this.#scheduler)
    } finally {
      release()
    }
  }

  /** Ends all watchers, with `reason` if given. The backend is the caller's. */
  close(reason?: StorageError): void {
    if (this.#closed) return
    this.#closed = true
    this.#hub.close(reason)
    this.#compaction.close()
  }

  /** Of TxnTarget; only apply() gets here. */
  put(name: string, op: Op & { type: 'put' }, previous: Row | undefined, at: { main: Revision; sub: number }): void {
    const history = previous?.history ?? this.index.open(name)
    const lease = op.lease ?? 0n
    const head = {
      ...at,
      tombstone: false,
      createRevision: previous?.createRevision ?? at.main,
      version: (previous?.version ?? 0) + 1,
      lease,
    }
    const row = new Row(history, head, op.value)
    this.#write(row, previous, op.value)
    this.#tail.add(row)
    if (lease !== 0n) assert(this.#leases.attach(lease, name), `lease ${lease} has been checked and is not there`)
  }

  /** Of TxnTarget; only apply() gets here. */
  remove(row: Row, at: { main: Revision; sub: number }): void {
    const head = { ...at, tombstone: true, createRevision: 0, version: 0, lease: 0n }
    this.#write(new Row(row.history, head), row, noValue)
  }

  #guarded<T>(at: AppliedAt, change: () => T): T {
    this.#assertReadable()
    assert(!this.#applying, 'apply was called from inside apply')
    this.#applying = true
    try {
      const result = change()
      this.#backend.commit(at)
      this.#publish()
      return result
    } catch (error) {
      this.#broken = error instanceof Error ? error : new Error(String(error))
      throw error
    } finally {
      this.#applying = false
    }
  }

  #applyProposal(proposal: Proposal): ApplyOutcome {
    switch (proposal.type) {
      case 'txn':
        return this.#applyTxn(proposal.request)
      case 'compact':
        return this.#applyCompact(proposal.revision)
      case 'leaseGrant':
        return this.#applyLeaseGrant(proposal.id, proposal.ttlSeconds)
      case 'leaseRevoke':
        return this.#applyLeaseRevoke(proposal.id)
    }
  }

  #applyTxn(request: TxnRequest): ApplyOutcome {
    const fault = checkTxn(request)
    if (fault !== undefined) return { type: 'refused', ...fault }
    const executed = executeTxn(this, request)
    return 'type' in executed ? executed : { type: 'txn', txn: executed.outcome }
  }

  #applyCompact(revision: Revision): ApplyOutcome {
    const at = { compactRevision: this.#compactRevision, currentRevision: this.#revision }
    if (revision <= this.#compactRevision) {
      return { type: 'refused', code: 'ERR_COMPACTED', message: `revision ${revision} is compacted already`, ...at }
    }
    const refusal = readRefusal(revision, at)
    if (refusal !== undefined) return refusal
    this.#compactRevision = revision
    this.#compacted = true
    return { type: 'compact', revision: this.#revision, compactRevision: revision }
  }

  #applyLeaseGrant(id: LeaseId, ttlSeconds: number): ApplyOutcome {
    const refuse = (code: Refusal['code'], message: string): Refusal => ({ type: 'refused', code, message })
    if (id === 0n) return refuse('ERR_LEASE_NOT_FOUND', 'lease 0 cannot be granted')
    if (ttlSeconds > leaseTtlSecondsMax) {
      return refuse('ERR_LEASE_TTL_TOO_LARGE', `a lease of ${ttlSeconds} s, allowed: ${leaseTtlSecondsMax}`)
    }
    if (this.#leases.has(id)) return refuse('ERR_LEASE_EXISTS', `lease ${id} exists`)
    const granted = Math.max(ttlSeconds, leaseTtlSecondsMin)
    this.#leases.add(id, granted)
    for (const listener of this.#leaseListeners) listener.granted(id, granted)
    return { type: 'leaseGrant', revision: this.#revision, id, ttlSeconds: granted }
  }

  #applyLeaseRevoke(id: LeaseId): ApplyOutcome {
    if (!this.#leases.has(id)) {
      return { type: 'refused', code: 'ERR_LEASE_NOT_FOUND', message: `lease ${id} does not exist` }
    }
    const main = this.#revision + 1
    let sub = 0
    for (const name of this.#leases.keys(id)) {
      const row = this.index.live(name, this.#revision)
      assert(row !== undefined && row.lease === id, `lease ${id} holds a key that is not attached to it`)
      this.remove(row, { main, sub: sub++ })
    }
    this.#leases.remove(id)
    for (const listener of this.#leaseListeners) listener.revoked(id)
    return { type: 'leaseRevoke', revision: sub > 0 ? main : this.#revision, keyCount: sub }
  }

  #write(row: Row, previous: Row | undefined, value: Value): void {
    this.#backend.put(row, value)
    this.#enter(row, previous)
    this.#changes.push(row)
  }

  /** Into index and log; the lease of the row before lets go of the key. */
  #enter(row: Row, previous: Row | undefined): void {
    row.history.append(row)
    this.revisionLog.append(row)
    if (previous !== undefined && previous.lease !== 0n) this.#leases.detach(previous.lease, row.history.name)
    const before = previous === undefined || previous.tombstone ? 0 : 1
    this.#keyCount += (row.tombstone ? 0 : 1) - before
  }

  /** Makes the rows of the entry the newest revision and tells watchers. */
  #publish(): void {
    if (this.#compacted) {
      this.#compacted = false
      this.#hub.compacted(this.#compactRevision)
      this.#compaction.resume()
    }
    const changes = this.#changes
    const [first] = changes
    if (first === undefined) return
    this.#changes = []
    this.#revision = first.main
    this.#tail.trim()
    this.#hub.dispatch(first.main, changes)
  }

  #select(request: RangeRequest): { revision: Revision; selected: OpOutcome } {
    this.#assertReadable()
    if (request.key.length === 0) throw new StorageError('ERR_EMPTY_KEY', 'a range has no key')
    const revision = this.#revision
    const refusal = readRefusal(request.revision, { compactRevision: this.#compactRevision, currentRevision: revision })
    if (refusal !== undefined) throw refusalError(refusal)
    const asked = request.revision !== undefined && request.revision > 0 ? request.revision : revision
    return { revision, selected: selectRows(this.index, request, asked) }
  }

  #opResult(outcome: OpOutcome): OpResult {
    const result = {
      kvs: outcome.rows.map((row) => keyValueOf(row, outcome.keysOnly ? noValue : this.value(row))),
      count: outcome.count,
      more: outcome.more,
      prevKvs: outcome.prevRows.map((row) => keyValueOf(row, this.value(row))),
    }
    return outcome.txn === undefined ? result : { ...result, txn: this.txnResult(outcome.txn) }
  }

  #assertReadable(): void {
    if (this.#broken !== undefined) {
      throw new StorageError('ERR_STOPPED', 'the store broke while applying', { cause: this.#broken })
    }
    if (this.#closed) throw new StorageError('ERR_STOPPED', 'the store is closed')
  }
}

/** Whether `previous` can be the row that was there when `head` was written; rows live at the compact revision stay. */
function follows(head: RowHead, previous: RowHead | undefined): boolean {
  const live = previous === undefined || previous.tombstone ? undefined : previous
  if (head.tombstone) return live !== undefined
  if (head.version === 1) return live === undefined && head.createRevision === head.main
  return live?.version === head.version - 1 && live.createRevision === head.createRevision
}
