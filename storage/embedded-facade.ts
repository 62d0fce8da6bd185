import type { Env, MemberId, RaftNode, Timer } from '../raft/index.ts'
import { StorageError } from './errors.ts'
import type { DetachedWatchers } from './mvcc/engine.ts'
import { createWatcher } from './mvcc/watch-hub.ts'
import type { ReplicaStateMachine } from './replica-state-machine.ts'
import type { ReplicaStore } from './replica-store.ts'
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

/** How long leadership may lie elsewhere before it is moved to the attached replica. */
const restMs = 1_000
/** The longest a call waits for a change before it looks again. */
const lookAgainMs = 50

/** A replica that runs. */
export interface RunningReplica {
  readonly id: MemberId
  readonly name: string
  readonly node: RaftNode
  readonly machine: ReplicaStateMachine
  readonly store: ReplicaStore
}

/**
 * One Store over the replicas of this process. Attached to one of them; when that one goes, calls and watchers go on at
 * another. Nothing older than what was delivered is ever served again: `#floor` is the revision of the replica left.
 *
 * A call that was not proposed (nobody leads, the replica stopped) waits for a change and is made again until its
 * signal aborts.
 */
export class ReplicaFacade implements Store {
  readonly #env: Env
  readonly #replicas = new Map<MemberId, RunningReplica>()
  readonly #waiting = new Set<() => void>()
  #attached: RunningReplica | undefined
  /** Watchers while no replica is there. */
  #lastStatus: StoreStatus = { revision: 0, compactRevision: 0, keyCount: 0 }
  #orphans: DetachedWatchers[] = []
  #floor: Revision = 0
  #resting: Timer | undefined
  #closed = false

  constructor(env: Env) {
    this.#env = env
  }

  get attached(): RunningReplica | undefined {
    return this.#attached
  }

  /** The first one added is attached to; later ones stand by. */
  add(replica: RunningReplica): void {
    this.#replicas.set(replica.id, replica)
    replica.node.onStatusChange(() => {
      this.#wake()
      this.#rest()
    })
    if (this.#attached === undefined) this.attach(replica.id)
    this.#wake()
  }

  /** Before its state machine is closed: its watchers go on elsewhere. */
  remove(id: MemberId): void {
    const replica = this.#replicas.get(id)
    if (replica === undefined) return
    this.#replicas.delete(id)
    if (this.#attached !== replica) return
    this.#leave(replica)
    const next = this.#best()
    if (next === undefined) return
    this.attach(next.id)
    next.node.campaign()
  }

  attach(id: MemberId): void {
    const replica = this.#replicas.get(id)
    if (replica === undefined || replica === this.#attached) return
    if (this.#attached !== undefined) this.#leave(this.#attached)
    this.#attached = replica
    for (const watchers of this.#orphans) replica.machine.engine.attachWatchers(watchers)
    this.#orphans = []
    this.#env.log.debug({ replica: replica.name }, 'store attached to a replica')
    this.#wake()
    this.#rest()
  }

  range(request: RangeRequest, options: CallOptions): Promise<RangeResult> {
    return this.#call(options, async (store) => {
      if (request.serializable === true && store.status().revision < this.#floor) throw behind()
      return store.range(request, options)
    })
  }

  txn(request: TxnRequest, options: CallOptions): Promise<TxnResult> {
    return this.#call(options, (store) => store.txn(request, options))
  }

  currentRevision(options: CallOptions): Promise<Revision> {
    return this.#call(options, (store) => store.currentRevision(options))
  }

  watch(request: WatchRequest, sink: WatchSink): Watcher {
    const replica = this.#attached
    if (replica === undefined) return this.#watchLater(request, sink)
    const behindFloor = request.startRevision === 0 && replica.store.status().revision < this.#floor
    return replica.store.watch(behindFloor ? { ...request, startRevision: this.#floor + 1 } : request, sink)
  }

  /** Begins at the next replica, as the watchers of the last one do. */
  #watchLater(request: WatchRequest, sink: WatchSink): Watcher {
    const watcher = createWatcher(request, sink, this.#floor)
    if (this.#closed) {
      this.#env.scheduler.soon(() => watcher.end(new StorageError('ERR_STOPPED', 'the store is closed')))
    } else {
      // those that were cancelled meanwhile go: nobody may come to take them over for long
      const waiting = this.#orphans.map((watchers) => watchers.filter(({ mode }) => mode !== 'ended'))
      this.#orphans = [...waiting.filter((watchers) => watchers.length > 0), [watcher]]
    }
    return watcher
  }

  compact(request: CompactRequest, options: CallOptions): Promise<void> {
    return this.#call(options, (store) => store.compact(request, options))
  }

  leaseGrant(request: LeaseGrantRequest, options: CallOptions): Promise<LeaseGrant> {
    return this.#call(options, (store) => store.leaseGrant(request, options))
  }

  leaseKeepAlive(id: LeaseId, options: CallOptions): Promise<number> {
    return this.#callLeader(options, (store) => store.leaseKeepAlive(id, options))
  }

  leaseRevoke(id: LeaseId, options: CallOptions): Promise<void> {
    return this.#call(options, (store) => store.leaseRevoke(id, options))
  }

  leaseTimeToLive(id: LeaseId, options: CallOptions & { readonly keys?: boolean }): Promise<LeaseTimeToLive> {
    return this.#callLeader(options, (store) => store.leaseTimeToLive(id, options))
  }

  /** Never goes back: while a replica catches up, or none runs, what the one left before said stands. */
  status(): StoreStatus {
    const status = this.#attached?.store.status() ?? this.#lastStatus
    this.#lastStatus = status
    return status.revision < this.#floor ? { ...status, revision: this.#floor } : status
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#resting?.cancel()
    for (const watchers of this.#orphans) for (const watcher of watchers) watcher.end(undefined)
    this.#orphans = []
    this.#wake()
  }

  leader(): RunningReplica | undefined {
    for (const replica of this.#replicas.values()) if (replica.node.status().role === 'leader') return replica
    return undefined
  }

  /** Resolves at the next change of roles or attachment, or a little later; at once when the signal has aborted. */
  async changed(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    await new Promise<void>((resolve) => {
      const done = () => {
        this.#waiting.delete(done)
        signal.removeEventListener('abort', done)
        timer.cancel()
        resolve()
      }
      const timer = this.#env.scheduler.after(lookAgainMs, done)
      this.#waiting.add(done)
      signal.addEventListener('abort', done, { once: true })
    })
  }

  #leave(replica: RunningReplica): void {
    const { engine } = replica.machine
    this.#floor = Math.max(this.#floor, engine.revision)
    this.#orphans.push(engine.detachWatchers())
    this.#attached = undefined
  }

  #best(): RunningReplica | undefined {
    const leader = this.leader()
    if (leader !== undefined) return leader
    return [...this.#replicas.values()].sort((a, b) => {
      const [left, right] = [a.node.status(), b.node.status()]
      return right.lastTerm - left.lastTerm || right.lastIndex - left.lastIndex
    })[0]
  }

  #call<T>(options: CallOptions, call: (store: ReplicaStore) => Promise<T>): Promise<T> {
    return this.#retry(options, () => this.#attached, call)
  }

  #callLeader<T>(options: CallOptions, call: (store: ReplicaStore) => Promise<T>): Promise<T> {
    return this.#retry(options, () => this.leader(), call)
  }

  async #retry<T>(
    options: CallOptions,
    choose: () => RunningReplica | undefined,
    call: (store: ReplicaStore) => Promise<T>,
  ): Promise<T> {
    for (;;) {
      if (this.#closed) throw new StorageError('ERR_STOPPED', 'the store is closed')
      let failure: unknown
      const replica = choose()
      try {
        if (replica !== undefined) return await call(replica.store)
      } catch (error) {
        if (!isWorthWaiting(error)) throw error
        failure = error
      }
      failure ??= new StorageError('ERR_NO_LEADER', 'no replica can serve this now')
      if (options.signal.aborted) throw failure
      await this.changed(options.signal)
      if (options.signal.aborted) throw failure
    }
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
  }

  /** Once leadership has lain elsewhere for a while, it is moved here: writes then cost no forwarding. */
  #rest(): void {
    if (this.#resting !== undefined || this.#closed || !this.#awayFromLeader()) return
    this.#resting = this.#env.scheduler.after(restMs, () => {
      this.#resting = undefined
      const leader = this.leader()
      if (this.#closed || this.#attached === undefined || leader === undefined || !this.#awayFromLeader()) return
      leader.node.transferLeadership(this.#attached.id).catch((error: unknown) => {
        this.#env.log.debug({ error }, 'leadership stays where it is for now')
        this.#rest()
      })
    })
  }

  #awayFromLeader(): boolean {
    const leader = this.leader()
    return leader !== undefined && this.#attached !== undefined && leader !== this.#attached
  }
}

/** Nothing was proposed, and another replica or a later moment can serve it. */
function isWorthWaiting(error: unknown): boolean {
  return error instanceof StorageError && (error.code === 'ERR_NO_LEADER' || error.code === 'ERR_STOPPED')
}

function behind(): StorageError {
  return new StorageError('ERR_NO_LEADER', 'the replica has not caught up yet')
}
