import type { Logger } from './env.ts'
import { catchUpBytesMax } from './limits.ts'
import type { StateMachine } from './seams.ts'
import type { Entry, Index, Membership, RaftCore, SnapshotMeta } from './types.ts'
import type { Wal } from './wal/index.ts'

export interface CheckpointOptions {
  readonly wal: Wal
  readonly stateMachine: StateMachine
  readonly core: RaftCore
  readonly log: Logger
  /** The log's newest marker. */
  readonly marker: SnapshotMeta
  readonly membership: Membership
  readonly entries: readonly Entry[]
  readonly checkpointEntries: number
  readonly checkpointWalBytes: number
  readonly catchUpEntries: number
  readonly onError: (error: unknown) => void
}

/**
 * Keeps the log short: state durable through N -> marker at N durable -> segments through N gone -> entries through
 * N - catchUpEntries leave memory. Never in another order: what is released can not be replayed.
 */
export class Checkpoints {
  readonly #options: CheckpointOptions
  #markerIndex: Index
  /** Oldest first: the membership from `index` on. The first covers the marker. */
  #memberships: { readonly index: Index; readonly membership: Membership }[]
  /** Bytes of all entries through `index`, one element per append: what a suffix of the log costs in memory. */
  #sizes: { readonly index: Index; readonly bytes: number }[] = []
  #running: Promise<void> | undefined
  #paused = false
  #closed = false

  constructor(options: CheckpointOptions) {
    this.#options = options
    this.#markerIndex = options.marker.index
    // Recovered entries at or below the applied index are behind `membership`; a checkpoint is never below that index.
    this.#memberships = [{ index: options.marker.index, membership: options.membership }]
    this.appended(options.entries)
  }

  appended(entries: readonly Entry[]): void {
    const last = entries.at(-1)
    if (!last) return
    let bytes = this.#sizes.at(-1)?.bytes ?? 0
    for (const entry of entries) bytes += entry.data.length
    this.#sizes.push({ index: last.index, bytes })
  }

  membershipChanged(index: Index, membership: Membership): void {
    this.#memberships.push({ index, membership })
  }

  /** After entries were applied. */
  consider(): void {
    const { stateMachine, wal, checkpointEntries, checkpointWalBytes } = this.#options
    if (this.#running || this.#paused || this.#closed) return
    const entries = stateMachine.appliedIndex - this.#markerIndex
    if (entries < checkpointEntries && (entries === 0 || wal.bytesSinceMarker < checkpointWalBytes)) return
    this.#running = this.#run()
      .catch((error: unknown) => {
        if (!this.#closed) this.#options.onError(error)
      })
      .finally(() => {
        this.#running = undefined
      })
  }

  async #run(): Promise<void> {
    const { stateMachine, wal, log } = this.#options
    const { index, term } = await stateMachine.checkpoint()
    if (index <= this.#markerIndex || this.#closed) return
    const membership = this.#membershipAt(index)
    await wal.append({ marker: { kind: 'checkpoint', snapshot: { index, term, membership } } })
    this.#markerIndex = index
    await wal.release(index)
    this.#compact(index)
    log.debug({ index, term }, 'checkpoint')
  }

  #membershipAt(index: Index): Membership {
    while (this.#memberships[1] && this.#memberships[1].index <= index) this.#memberships.shift()
    return this.#memberships[0]?.membership ?? this.#options.membership
  }

  #compact(index: Index): void {
    const { core, catchUpEntries } = this.#options
    const total = this.#sizes.at(-1)?.bytes ?? 0
    let through = index - catchUpEntries
    for (const size of this.#sizes) {
      if (size.index > index || total - size.bytes <= catchUpBytesMax) break
      through = Math.max(through, size.index)
    }
    // The core learns what is applied with each Ready; it may be a little behind.
    through = Math.min(through, core.status().applied)
    if (through <= 0) return
    core.compact(through)
    this.#sizes = this.#sizes.filter((size) => size.index > through)
  }

  /** A snapshot replaced log and state. */
  installed(snapshot: SnapshotMeta): void {
    this.#markerIndex = snapshot.index
    this.#memberships = [{ index: snapshot.index, membership: snapshot.membership }]
    this.#sizes = []
  }

  /** No checkpoint runs once this resolves, until resume(). */
  async pause(): Promise<void> {
    this.#paused = true
    await this.#running
  }

  resume(): void {
    this.#paused = false
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#running
  }
}
