import type { Logger } from './env.ts'
import { catchUpBytesMax } from './limits.ts'
import type { StateMachine } from './seams.ts'
import type { Entry, Index, Membership, RaftCore, SnapshotMeta, Term } from './types.ts'
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
  readonly stopCatchUpBytes: number
  readonly onError: (error: unknown) => void
}

/** Recovered entries count as appended so many at a time. */
const recoveredPerAppend = 64

/**
 * Keeps the log short: state durable through N -> marker at N durable -> segments through N gone -> entries through
 * N - catchUpEntries leave memory. Never in another order: what is released can not be replayed.
 */
export class Checkpoints {
  readonly #options: CheckpointOptions
  #markerIndex: Index
  /** Oldest first: the membership from `index` on. The first covers the marker. */
  #memberships: { readonly index: Index; readonly membership: Membership }[]
  /**
   * The log's appends, oldest first: last entry of each, and bytes of all through it. What a suffix of the log costs.
   * Invariant: `term` is that of the entry at `index`, whatever was overwritten.
   */
  #appends: { readonly index: Index; readonly term: Term; readonly bytes: number }[] = []
  #running: Promise<void> | undefined
  #paused = false
  #closed = false

  constructor(options: CheckpointOptions) {
    this.#options = options
    this.#markerIndex = options.marker.index
    // `membership` is that of the applied index. A marker may come to lie among recovered entries below it, and carries
    // it too: replay applies the changes in between over it once more, each of which says what the membership is then.
    this.#memberships = [{ index: options.marker.index, membership: options.membership }]
    const { entries } = options
    for (let i = 0; i < entries.length; i += recoveredPerAppend) this.appended(entries.slice(i, i + recoveredPerAppend))
  }

  appended(entries: readonly Entry[]): void {
    const [first] = entries
    const last = entries.at(-1)
    if (!first || !last) return
    while ((this.#appends.at(-1)?.index ?? 0) >= first.index) this.#appends.pop()
    let bytes = this.#appends.at(-1)?.bytes ?? 0
    for (const entry of entries) bytes += entry.data.length
    this.#appends.push({ index: last.index, term: last.term, bytes })
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
    const { stateMachine, log } = this.#options
    const { index, term } = await stateMachine.checkpoint()
    if (index <= this.#markerIndex || this.#closed) return
    await this.#mark(index, term)
    this.#compact(index)
    log.debug({ index, term }, 'checkpoint')
  }

  /** The state is durable through `index`, at least. */
  async #mark(index: Index, term: Term): Promise<void> {
    const { wal } = this.#options
    const membership = this.#membershipAt(index)
    await wal.append({ marker: { kind: 'checkpoint', snapshot: { index, term, membership } } })
    this.#markerIndex = index
    await wal.release(index)
  }

  #membershipAt(index: Index): Membership {
    while (this.#memberships[1] && this.#memberships[1].index <= index) this.#memberships.shift()
    return this.#memberships[0]?.membership ?? this.#options.membership
  }

  #compact(index: Index): void {
    const { core, catchUpEntries } = this.#options
    const total = this.#appends.at(-1)?.bytes ?? 0
    let through = index - catchUpEntries
    for (const append of this.#appends) {
      if (append.index > index || total - append.bytes <= catchUpBytesMax) break
      through = Math.max(through, append.index)
    }
    // The core learns what is applied with each Ready; it may be a little behind.
    through = Math.min(through, core.status().applied)
    if (through <= 0) return
    core.compact(through)
    this.#appends = this.#appends.filter((append) => append.index > through)
  }

  /** A snapshot replaced log and state. */
  installed(snapshot: SnapshotMeta): void {
    this.#markerIndex = snapshot.index
    this.#memberships = [{ index: snapshot.index, membership: snapshot.membership }]
    this.#appends = []
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

  /**
   * After close(), as the last act of a member that stops in good order. The marker stays stopCatchUpBytes of entries
   * behind the state, if that far: a follower that lacks a few must not need the whole state as a snapshot.
   */
  async finish(): Promise<void> {
    const { stateMachine, wal, stopCatchUpBytes } = this.#options
    const { index } = await stateMachine.checkpoint()
    if (wal.bytesSinceMarker <= stopCatchUpBytes) return
    const total = this.#appends.at(-1)?.bytes ?? 0
    const covered = this.#appends.filter((append) => append.index <= index)
    const mark = covered.find((append) => total - append.bytes <= stopCatchUpBytes) ?? covered.at(-1)
    if (mark && mark.index > this.#markerIndex) await this.#mark(mark.index, mark.term)
  }
}
