import {
  createMemoryHub,
  createRaftNode,
  type Env,
  type MemberId,
  type RaftStatus,
  type StateMachine,
} from '../raft/index.ts'
import { autoCompactionIntervalMs, startAutoCompaction } from './auto-compaction.ts'
import { openLevelBackend } from './backend-level.ts'
import type { OpenBackend } from './backend/replica-backend.ts'
import { assertDataDirUnused, DataDirLock, type ProcessTable } from './data-dir-lock.ts'
import { ReplicaFacade, type RunningReplica } from './embedded-facade.ts'
import { createReplicas, newManifest, type OpenedReplicas, openReplicas } from './embedded-open.ts'
import {
  closeReplica,
  isCorruption,
  markDamaged,
  mostUpToDate,
  openReplica,
  type OpenedReplica,
  type ReplicaContext,
} from './embedded-replica.ts'
import { StorageError } from './errors.ts'
import { readManifest, type Manifest } from './manifest.ts'
import type { StateHash } from './mvcc/state-hash.ts'
import { storageError } from './replica-errors.ts'
import type { ReplicaStateMachine } from './replica-state-machine.ts'
import { ReplicaRevival } from './replica-revival.ts'
import { ReplicaStore } from './replica-store.ts'
import type { Store } from './store.ts'

export interface EmbeddedStoreOptions {
  /** The data directory; made when it is not there. */
  readonly directory: string
  readonly env: Env
  /** Default 3. An existing directory keeps the number it was made with. */
  readonly replicas?: 1 | 3
  readonly compaction?: {
    /** Default 5 minutes; 0 = never. */
    readonly intervalMs: number
  }
  /** Default LevelDB. */
  readonly openBackend?: OpenBackend
  /** Default: those of this machine. */
  readonly processes?: ProcessTable
  /** The longest to wait for a leader at the start; default 10 s. */
  readonly startTimeoutMs?: number
  /** A replica that ended for want of disk space is started again from time to time. Default: it stays ended. */
  readonly revive?: boolean
  /**
   * Takes away what an open that found no store here has made. Called under the lock: when the open fails, and by
   * discard().
   */
  readonly onDiscard?: () => Promise<void>
  /** For tests: passed to every node. */
  readonly raft?: {
    readonly heartbeatMs?: number
    readonly electionTimeoutTicks?: number
    readonly checkpointEntries?: number
    readonly catchUpEntries?: number
    readonly stopCatchUpBytes?: number
    readonly appendBytesMax?: number
    readonly firstSegmentBytes?: number
    readonly segmentBytes?: number
    /** What the node drives in the machine's stead: to look at what is applied. */
    readonly wrap?: (id: MemberId, machine: ReplicaStateMachine) => StateMachine
  }
}

export interface ReplicaInfo {
  readonly id: MemberId
  readonly name: string
  readonly state: 'running' | 'stopped' | 'broken'
  readonly attached: boolean
  /** Of a running replica. */
  readonly raft: RaftStatus | undefined
  /** Of a broken one. */
  readonly error: Error | undefined
}

export interface EmbeddedStore extends Store {
  replicas(): readonly ReplicaInfo[]
  /** Ends a replica as its process would: no checkpoint, no leadership transfer. */
  killReplica(id: MemberId): Promise<void>
  /** Opens a stopped or broken replica again. ERR_CORRUPT when its directory cannot be used. */
  startReplica(id: MemberId): Promise<void>
  /** Moves leadership and callers away first. */
  restartReplica(id: MemberId): Promise<void>
  /** As close(), for a store that is not wanted after all: one that this open made goes through onDiscard. */
  discard(): Promise<void>
  /** Of one running replica's state: equal on all replicas at equal (revision, compactRevision). */
  hash(id: MemberId): Promise<StateHash>
}

/**
 * Opens the store of `trireme up`: one or three replicas of this process under one directory.
 *
 * @throws StorageError ERR_DATA_DIR when the directory is in use, was made with another number of replicas, or has no
 *   majority of its replicas left; ERR_FORMAT when a newer program wrote it. Up to then no byte has been changed.
 *   ERR_NO_LEADER when no leader comes up in time. Nothing stays open or running after a failure.
 */
export async function openEmbeddedStore(options: EmbeddedStoreOptions): Promise<EmbeddedStore> {
  const { directory, env } = options
  const { disk, random } = env
  const processes = options.processes ?? (await import('./data-dir-node.ts')).createProcessTable()
  const replicas = options.replicas ?? 3
  await assertDataDirUnused({ disk, processes, directory })
  assertReplicaCount(directory, await readManifest(disk, directory), replicas)
  const lock = await DataDirLock.acquire({ disk, random, processes, directory })
  let made = false
  let store: ReplicatedStore
  let opened: OpenedReplicas
  try {
    // Read again under the lock: whoever had it in between may have made it.
    const existing = await readManifest(disk, directory)
    made = existing === undefined
    assertReplicaCount(directory, existing, replicas)
    const manifest = existing ?? newManifest(replicas, Buffer.from(random.bytes(8)).readBigUInt64BE())
    const openBackend = options.openBackend ?? openLevelBackend
    const context = { env, directory, manifest, openBackend, segments: options.raft }
    opened = await (made ? createReplicas(context) : openReplicas(context))
    store = new ReplicatedStore(options, context, lock, made)
  } catch (error) {
    try {
      if (made) await options.onDiscard?.()
    } finally {
      await lock.release()
    }
    throw storageError(error)
  }
  try {
    await store.start(opened)
    return store
  } catch (error) {
    throw storageError(error)
  }
}

function assertReplicaCount(directory: string, manifest: Manifest | undefined, replicas: number): void {
  if (manifest === undefined || manifest.members.length === replicas) return
  throw new StorageError(
    'ERR_DATA_DIR',
    `${directory} was made with ${manifest.members.length} replicas and cannot be opened with ${replicas}: ` +
      `use ${manifest.members.length}, or another directory`,
  )
}

class ReplicatedStore extends ReplicaFacade implements EmbeddedStore {
  readonly #options: EmbeddedStoreOptions
  readonly #context: ReplicaContext
  readonly #lock: DataDirLock
  /** By this open. */
  readonly #made: boolean
  readonly #hub = createMemoryHub()
  readonly #running = new Map<MemberId, RunningReplica>()
  readonly #errors = new Map<MemberId, Error>()
  /** Replicas being ended, by id: each once. */
  readonly #ending = new Map<MemberId, Promise<void>>()
  /** Replicas being started again, by id: each once. */
  readonly #starting = new Map<MemberId, Promise<void>>()
  readonly #revival: ReplicaRevival | undefined
  #stopCompaction: () => void = () => undefined
  #closing: Promise<void> | undefined

  constructor(options: EmbeddedStoreOptions, context: ReplicaContext, lock: DataDirLock, made: boolean) {
    super(options.env)
    this.#options = options
    this.#context = context
    this.#lock = lock
    this.#made = made
    const { env, revive = false } = options
    const start = (id: MemberId): Promise<void> => this.startReplica(id)
    if (revive) this.#revival = new ReplicaRevival({ scheduler: env.scheduler, log: env.log, start })
  }

  /** The replica with the most up-to-date log stands for election at once. On failure everything is closed again. */
  async start({ opened, waiting: without }: OpenedReplicas): Promise<void> {
    const best = mostUpToDate(opened)
    const ordered = [best, ...opened.filter((replica) => replica !== best)]
    const waiting = new Set(ordered)
    try {
      for (const replica of ordered) {
        waiting.delete(replica)
        await this.#run(replica)
      }
      this.#running.get(best.member.id)?.node.campaign()
      await this.#untilReady()
      for (const { member, error } of without) {
        this.#options.env.log.error({ replica: member.name, error }, 'started without a replica that has no disk space')
        this.#errors.set(member.id, error instanceof Error ? error : new Error(String(error)))
        this.#revival?.ended(member, error)
      }
    } catch (error) {
      await Promise.all([...waiting].map(closeReplica))
      await this.discard()
      throw error
    }
    const intervalMs = this.#options.compaction?.intervalMs ?? autoCompactionIntervalMs
    if (intervalMs === 0) return
    const { scheduler, log } = this.#options.env
    this.#stopCompaction = startAutoCompaction({ store: this, scheduler, log, intervalMs })
  }

  replicas(): readonly ReplicaInfo[] {
    return this.#context.manifest.members.map(({ id, name }) => {
      const running = this.#running.get(id)
      const error = this.#errors.get(id)
      const state = running !== undefined ? 'running' : error !== undefined ? 'broken' : 'stopped'
      return { id, name, state, attached: this.attached?.id === id, raft: running?.node.status(), error }
    })
  }

  async killReplica(id: MemberId): Promise<void> {
    const replica = this.#running.get(id)
    if (replica === undefined) return
    await this.#end(replica)
  }

  startReplica(id: MemberId): Promise<void> {
    const under = this.#starting.get(id)
    if (under !== undefined) return under
    const starting = this.#startAgain(id).finally(() => this.#starting.delete(id))
    this.#starting.set(id, starting)
    return starting
  }

  async #startAgain(id: MemberId): Promise<void> {
    await this.#ending.get(id)
    this.#assertOpen()
    if (this.#running.has(id)) return
    const member = this.#context.manifest.members.find((candidate) => candidate.id === id)
    if (member === undefined) throw new StorageError('ERR_DATA_DIR', `no replica has the id ${id}`)
    const opened = await openReplica(this.#context, member)
    if (opened === undefined) {
      throw new StorageError('ERR_CORRUPT', `${member.name} is gone: it is rebuilt when all replicas start together`)
    }
    if (this.#closing !== undefined) await closeReplica(opened)
    this.#assertOpen()
    this.#errors.delete(id)
    await this.#run(opened)
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new StorageError('ERR_STOPPED', 'the store is closed')
  }

  async restartReplica(id: MemberId): Promise<void> {
    const replica = this.#running.get(id)
    const other = [...this.#running.values()].find((candidate) => candidate.id !== id)
    if (replica?.node.status().role === 'leader' && other !== undefined) {
      await replica.node.transferLeadership(other.id).catch((error: unknown) => {
        this.#options.env.log.warn({ error }, 'leadership was not handed over before a restart')
      })
    }
    await this.killReplica(id)
    await this.startReplica(id)
  }

  async hash(id: MemberId): Promise<StateHash> {
    const replica = this.#running.get(id)
    if (replica === undefined) throw new StorageError('ERR_STOPPED', `replica ${id} is not running`)
    return replica.machine.engine.hash()
  }

  override close(): Promise<void> {
    this.#closing ??= this.#close(false)
    return this.#closing
  }

  discard(): Promise<void> {
    this.#closing ??= this.#close(this.#made)
    return this.#closing
  }

  async #close(discard: boolean): Promise<void> {
    this.#stopCompaction()
    this.#revival?.stop()
    await super.close()
    // Whoever is being started owns its directory until it has run or closed: the lock is released behind it.
    await Promise.allSettled(this.#starting.values())
    const results = await Promise.allSettled([...this.#running.values()].map((replica) => this.#end(replica, true)))
    await Promise.allSettled(this.#ending.values())
    try {
      if (discard) await this.#options.onDiscard?.()
    } finally {
      await this.#lock.release()
    }
    for (const result of results) {
      if (result.status === 'rejected') this.#options.env.log.warn({ error: result.reason }, 'while closing a replica')
    }
  }

  /** Owns `opened` from here on, also when it throws. */
  async #run(opened: OpenedReplica): Promise<void> {
    const { env, raft } = this.#options
    const { member, machine, wal } = opened
    const { id, name } = member
    let replica: RunningReplica
    try {
      const node = await createRaftNode({
        ...raft,
        id,
        env: { ...env, log: env.log.child({ replica: name }) },
        wal,
        stateMachine: raft?.wrap?.(id, machine) ?? machine,
        transport: this.#hub.transport(id),
      })
      replica = { id, name, node, machine, store: new ReplicaStore({ env, node, machine }) }
    } catch (error) {
      await closeReplica(opened)
      throw error
    }
    this.#running.set(id, replica)
    this.add(replica)
    void replica.node.ended
      .then((error) => {
        if (error !== undefined) this.#errors.set(id, error)
        return this.#end(replica).finally(() => this.#revival?.ended(replica, error))
      })
      .catch((error: unknown) => env.log.warn({ replica: name, error }, 'a replica did not close cleanly'))
  }

  /** Callers and watchers move on first, then node and state are closed. `final`: with a checkpoint, for a fast start. */
  #end(replica: RunningReplica, final = false): Promise<void> {
    if (this.#running.get(replica.id) !== replica) return this.#ending.get(replica.id) ?? Promise.resolve()
    this.#running.delete(replica.id)
    if (!final) this.remove(replica.id)
    const ending = this.#stop(replica, final).finally(() => this.#ending.delete(replica.id))
    this.#ending.set(replica.id, ending)
    return ending
  }

  async #stop(replica: RunningReplica, final: boolean): Promise<void> {
    const { node, machine, store } = replica
    await store.close()
    await node.stop({ checkpoint: final })
    await machine.close()
    const error = await node.ended
    // Only while the others can make up for it: what is left of the last copies is not given up.
    const { members } = this.#context.manifest
    if (!isCorruption(error) || this.#running.size < Math.floor(members.length / 2) + 1) return
    const member = members.find(({ id }) => id === replica.id)
    if (member && error) await markDamaged(this.#context, member, error)
  }

  async #untilReady(): Promise<void> {
    const { env, startTimeoutMs = 10_000 } = this.#options
    const waiting = new AbortController()
    const timer = env.scheduler.after(startTimeoutMs, () => waiting.abort())
    try {
      for (;;) {
        const leader = this.leader()
        if (leader !== undefined) {
          this.attach(leader.id)
          break
        }
        if (waiting.signal.aborted) throw new StorageError('ERR_NO_LEADER', `no leader after ${startTimeoutMs} ms`)
        await this.changed(waiting.signal)
      }
      await this.currentRevision({ signal: waiting.signal })
    } finally {
      timer.cancel()
    }
  }
}
