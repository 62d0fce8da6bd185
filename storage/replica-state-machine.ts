import assert from 'node:assert'
import type {
  Entry,
  Env,
  Index,
  Membership,
  SnapshotMeta,
  SnapshotSource,
  StagedSnapshot,
  StateMachine,
} from '../raft/index.ts'
import { flushBytesMax } from './backend/limits.ts'
import type { OpenBackend, ReplicaBackend } from './backend/replica-backend.ts'
import type { Checkpoint } from './checkpoint.ts'
import { StorageError } from './errors.ts'
import { loadMvccEngine, type MvccEngine } from './mvcc/engine.ts'
import type { ApplyOutcome } from './mvcc/outcome.ts'
import { decodeProposal } from './proposal.ts'
import type { ReplicaDirectory } from './replica-directory.ts'
import type { Revision } from './store.ts'
import { decodeSnapshot, encodeSnapshot } from './snapshot-stream.ts'

export interface ReplicaStateMachineOptions {
  readonly env: Env
  readonly directory: ReplicaDirectory
  readonly openBackend: OpenBackend
}

/** An engine with the rows it stands on. Replaced as one when a snapshot is installed. */
interface State {
  readonly backend: ReplicaBackend
  readonly engine: MvccEngine
}

/** The MVCC engine as raft's state machine, with its checkpoints and snapshots. */
export class ReplicaStateMachine implements StateMachine {
  readonly #options: ReplicaStateMachineOptions
  readonly #engineListeners = new Set<(engine: MvccEngine) => void>()
  #state: State
  #appliedIndex: Index
  #checkpointing: Promise<unknown> = Promise.resolve()
  #closing: Promise<void> | undefined
  #onBroken: (error: Error) => void = ignore

  private constructor(options: ReplicaStateMachineOptions, state: State) {
    this.#options = options
    this.#state = state
    this.#appliedIndex = state.backend.checkpointed?.index ?? 0
  }

  /**
   * The state as of its checkpoint; the log brings the rest.
   *
   * @throws StorageError ERR_CORRUPT, ERR_FORMAT, ERR_DATA_DIR. Nothing stays open then.
   */
  static async open(options: ReplicaStateMachineOptions): Promise<ReplicaStateMachine> {
    const { env, directory } = options
    await directory.removeOthers()
    return new ReplicaStateMachine(options, await openState(options, directory.state, env))
  }

  get appliedIndex(): Index {
    return this.#appliedIndex
  }

  /** Of this moment: another one after a snapshot was installed. */
  get engine(): MvccEngine {
    return this.#state.engine
  }

  /** What a restart would begin with. */
  get checkpointed(): Checkpoint | undefined {
    return this.#state.backend.checkpointed
  }

  get pendingBytes(): number {
    return this.#state.backend.pendingBytes
  }

  /** Called inside the replacement of the engine, once the new one serves. */
  onEngine(listener: (engine: MvccEngine) => void): () => void {
    this.#engineListeners.add(listener)
    return () => this.#engineListeners.delete(listener)
  }

  onBroken(listener: (error: Error) => void): void {
    this.#onBroken = listener
    this.#watchBackend(this.#state)
  }

  #watchBackend(state: State): void {
    state.backend.onBroken((error) => {
      if (this.#state === state && this.#closing === undefined) this.#onBroken(error)
    })
  }

  /** @returns ApplyOutcome of a proposal, undefined for an entry without one. */
  apply(entry: Entry): ApplyOutcome | undefined {
    assert(entry.index === this.#appliedIndex + 1, `apply of ${entry.index} behind ${this.#appliedIndex}`)
    const { engine } = this.#state
    const at = { index: entry.index, term: entry.term }
    let outcome: ApplyOutcome | undefined
    if (entry.type === 'confChange' || entry.data.length === 0) engine.advance(at)
    else outcome = engine.apply(decodeProposal(entry.data), at)
    this.#appliedIndex = entry.index
    return outcome
  }

  /**
   * Resolves when no row below `revision` that nobody can read is left. Rows go only below a checkpointed compact
   * revision, hence one is made now unless it is under way.
   */
  async whenPhysicallyCompacted(revision: Revision, signal: AbortSignal): Promise<void> {
    const { engine } = this.#state
    const done = engine.whenPhysicallyCompacted(revision)
    const aborted = new Promise<never>((_, reject) => {
      const abort = () => reject(new StorageError('ERR_ABORTED', 'the call was aborted; compaction goes on'))
      if (signal.aborted) abort()
      else signal.addEventListener('abort', abort, { once: true })
    })
    await Promise.race([Promise.all([done, this.checkpoint()]), aborted])
  }

  setMembership(membership: Membership): void {
    this.#state.engine.setMembership(membership)
  }

  /** One at a time: a second call waits for the first and makes its own. */
  checkpoint(): Promise<{ readonly index: Index; readonly term: number }> {
    const next = this.#checkpointing.then(() => this.#checkpoint())
    this.#checkpointing = next.then(ignore, ignore)
    return next
  }

  async #checkpoint(): Promise<{ readonly index: Index; readonly term: number }> {
    const { backend, engine } = this.#state
    const done = await backend.checkpoint(engine.state())
    engine.resumeCompaction()
    return done
  }

  async openSnapshot(): Promise<SnapshotSource> {
    const { backend, engine } = this.#state
    const view = await backend.openView(engine.state())
    const { index, term, membership } = view.state
    return { meta: { index, term, membership }, chunks: encodeSnapshot(view), close: () => view.close() }
  }

  /** In a state directory of its own, durable and loaded, so that installing is a change of pointers. */
  async stageSnapshot(meta: SnapshotMeta, chunks: AsyncIterable<Uint8Array>): Promise<StagedSnapshot> {
    const { directory, env } = this.#options
    const number = await directory.createState()
    try {
      await fillState(this.#options, directory.statePath(number), chunks, meta)
      const state = await openState(this.#options, directory.statePath(number), env)
      let installing: Promise<void> | undefined
      return {
        meta,
        install: () => (installing ??= this.#install(number, state, meta)),
        discard: async () => {
          // A member that stops while it installs discards what may be in force already.
          if (installing !== undefined) return installing
          await closeState(state)
          await directory.removeState(number)
        },
      }
    } catch (error) {
      await directory.removeState(number)
      throw error
    }
  }

  async close(): Promise<void> {
    this.#closing ??= closeState(this.#state)
    await this.#closing
  }

  async #install(number: number, state: State, meta: SnapshotMeta): Promise<void> {
    const { directory, env } = this.#options
    const old = this.#state
    const oldNumber = directory.current
    await directory.activate(number)
    // From here to the next await nobody sees anything half-swapped (etcd-io/etcd#20271).
    this.#state = state
    this.#appliedIndex = meta.index
    this.#watchBackend(state)
    state.engine.attachWatchers(old.engine.detachWatchers())
    for (const listener of this.#engineListeners) listener(state.engine)
    old.engine.close()
    try {
      await old.backend.close()
    } catch (error) {
      env.log.warn({ directory: directory.path, error }, 'cannot close the state that a snapshot replaced')
    }
    await directory.removeState(oldNumber)
  }
}

function ignore(): void {}

async function openState(options: ReplicaStateMachineOptions, path: string, env: Env): Promise<State> {
  const backend = await options.openBackend({ directory: path, env })
  try {
    return { backend, engine: await loadMvccEngine({ backend, scheduler: env.scheduler, log: env.log }) }
  } catch (error) {
    await backend.close()
    throw error
  }
}

async function closeState(state: State): Promise<void> {
  state.engine.close()
  await state.backend.close()
}

/**
 * Writes a snapshot's rows and a checkpoint of its state into an empty state directory.
 *
 * @throws StorageError ERR_CORRUPT when the stream is damaged, cut short, or not of `meta`; ERR_FORMAT.
 */
export async function fillState(
  options: { readonly env: Env; readonly openBackend: OpenBackend },
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  meta: { readonly index: Index; readonly term: number },
): Promise<void> {
  const snapshot = await decodeSnapshot(chunks)
  const { index, term } = snapshot.state
  if (index !== meta.index || term !== meta.term) {
    throw new StorageError('ERR_CORRUPT', `snapshot is of index ${index}, announced as ${meta.index}`)
  }
  const backend = await options.openBackend({ directory: path, env: options.env })
  try {
    for await (const rows of snapshot.rows) {
      for (const { head, value } of rows) backend.put(head, value)
      backend.commit({ index, term })
      if (backend.pendingBytes > flushBytesMax) await backend.flush()
    }
    backend.commit({ index, term })
    await backend.checkpoint(snapshot.state)
  } finally {
    await backend.close()
  }
}
