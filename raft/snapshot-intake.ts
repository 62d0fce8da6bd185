import { RaftError } from './errors.ts'
import type { StagedSnapshot, StateMachine } from './seams.ts'
import type { Index, SnapshotMeta } from './types.ts'

/**
 * Stages incoming snapshots, one at a time: a newer one cancels an older one under way, an equal or older one is refused,
 * and while one waits to be installed all are (etcd-io/etcd#18055).
 */
export class SnapshotIntake {
  readonly #stateMachine: StateMachine
  #incoming: { readonly index: Index; cancelled: boolean; readonly settled: Promise<unknown> } | undefined
  #staged: StagedSnapshot | undefined
  #closed = false

  constructor(stateMachine: StateMachine) {
    this.#stateMachine = stateMachine
  }

  /** Staged and not yet taken. */
  get staged(): StagedSnapshot | undefined {
    return this.#staged
  }

  /** @throws RaftError ERR_OVERLOADED when refused or superseded, ERR_STOPPED, and whatever breaks the stream. */
  async stage(meta: SnapshotMeta, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    for (let older = this.#incoming; older; older = this.#incoming) {
      if (older.index >= meta.index) throw refused(`one at ${older.index} is coming in`)
      older.cancelled = true
      await older.settled
    }
    if (this.#closed) throw new RaftError('ERR_STOPPED', 'this member is stopped')
    if (this.#staged) throw refused(`one at ${this.#staged.meta.index} is being installed`)
    const staging = this.#stateMachine.stageSnapshot(
      meta,
      whileWanted(chunks, () => !incoming.cancelled && !this.#closed),
    )
    const incoming = { index: meta.index, cancelled: false, settled: Promise.allSettled([staging]) }
    this.#incoming = incoming
    try {
      const staged = await staging
      if (incoming.cancelled || this.#closed) {
        await staged.discard()
        throw refused('a newer one is coming in')
      }
      this.#staged = staged
    } finally {
      if (this.#incoming === incoming) this.#incoming = undefined
    }
  }

  take(): StagedSnapshot | undefined {
    const staged = this.#staged
    this.#staged = undefined
    return staged
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#incoming?.settled
    await this.take()?.discard()
  }
}

const refused = (why: string): RaftError => new RaftError('ERR_OVERLOADED', `snapshot refused: ${why}`)

async function* whileWanted(chunks: AsyncIterable<Uint8Array>, wanted: () => boolean): AsyncIterable<Uint8Array> {
  for await (const chunk of chunks) {
    if (!wanted()) throw refused('a newer one is coming in')
    yield chunk
  }
}
