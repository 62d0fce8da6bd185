import { createRaftCore, decodeConfChange } from '../../../raft/core/index.ts'
import type { CoreEvent, RaftCoreOptions } from '../../../raft/core/index.ts'
import type {
  Entry,
  HardState,
  Index,
  MemberId,
  Membership,
  Message,
  RaftCore,
  Ready,
  Term,
} from '../../../raft/types.ts'

/** What a state machine holds: one line per applied normal entry. */
export type Lines = readonly string[]

/** The state at an index; equal for all members, so a whole cluster shares one table of them. */
export interface Checkpoint {
  readonly index: Index
  readonly term: Term
  readonly membership: Membership
  readonly lines: Lines
}

/** What survives a crash. */
export interface Disk {
  hardState: HardState
  checkpoint: Checkpoint
  entries: readonly Entry[]
}

export const emptyDisk = (membership: Membership): Disk => ({
  hardState: { term: 0, vote: 0n, commit: 0 },
  checkpoint: { index: 0, term: 0, membership, lines: [] },
  entries: [],
})

export interface MemberHooks {
  readonly onEvent?: (member: ClusterMember, event: CoreEvent) => void
  readonly onApply?: (member: ClusterMember, entry: Entry) => void
  readonly onRead?: (member: ClusterMember, read: { readonly id: bigint; readonly index: Index }) => void
}

export type MemberOptions = Pick<
  RaftCoreOptions,
  'electionTimeoutTicks' | 'heartbeatTicks' | 'preVote' | 'checkQuorum' | 'limits' | 'random'
>

const text = new TextDecoder()

/**
 * A core with the simplest possible driver: begin() takes a Ready and lets out sendNow; finish() persists, applies and
 * advances. Between the two the fsync is under way: crash() then loses the Ready.
 */
export class ClusterMember {
  readonly id: MemberId
  readonly disk: Disk
  readonly #options: MemberOptions
  readonly #hooks: MemberHooks
  readonly #checkpoints: Map<string, Checkpoint>
  #core: RaftCore | undefined
  writing: Ready | undefined
  lines: string[] = []
  applied: Index = 0
  membership: Membership

  constructor(
    id: MemberId,
    disk: Disk,
    options: MemberOptions,
    shared: { readonly checkpoints: Map<string, Checkpoint>; readonly hooks: MemberHooks },
  ) {
    this.id = id
    this.disk = disk
    this.#options = options
    this.#hooks = shared.hooks
    this.#checkpoints = shared.checkpoints
    this.membership = disk.checkpoint.membership
    this.restart()
  }

  get core(): RaftCore {
    if (this.#core === undefined) throw new Error(`member ${this.id} is down`)
    return this.#core
  }

  get up(): boolean {
    return this.#core !== undefined
  }

  crash(): void {
    this.#core = undefined
    this.writing = undefined
  }

  restart(): void {
    const { checkpoint, entries, hardState } = this.disk
    this.lines = [...checkpoint.lines]
    this.applied = checkpoint.index
    this.membership = checkpoint.membership
    this.#core = createRaftCore({
      ...this.#options,
      id: this.id,
      membership: checkpoint.membership,
      hardState,
      log: { snapshot: { index: checkpoint.index, term: checkpoint.term }, entries },
      applied: checkpoint.index,
      onEvent: (event) => this.#hooks.onEvent?.(this, event),
    })
  }

  /** Takes a Ready; its write begins. Returns what may be sent meanwhile. */
  begin(): readonly Message[] {
    this.writing = this.core.ready()
    return this.writing.sendNow.map((message) => (message.type === 'snapshot' ? this.#cut(message) : message))
  }

  /** A snapshot is cut from the state machine when it is sent, and says itself what it holds. */
  #cut(message: Message & { type: 'snapshot' }): Message {
    const checkpoint = this.#capture()
    this.#checkpoints.set(`${checkpoint.index}/${checkpoint.term}`, checkpoint)
    const { index, term, membership } = checkpoint
    return { ...message, snapshot: { index, term, membership } }
  }

  #capture(): Checkpoint {
    const { checkpoint, entries } = this.disk
    const entry = entries[this.applied - checkpoint.index - 1]
    const term = this.applied === checkpoint.index ? checkpoint.term : entry!.term
    return { index: this.applied, term, membership: this.membership, lines: [...this.lines] }
  }

  /** The write has reached the disk: answers leave, committed entries are applied. */
  finish(): readonly Message[] {
    const ready = this.writing!
    this.writing = undefined
    this.#persist(ready)
    for (const entry of ready.committed) this.#apply(entry)
    for (const read of ready.readStates) this.#hooks.onRead?.(this, read)
    const last = ready.entries.at(-1) ?? ready.snapshot ?? { index: 0, term: 0 }
    this.core.advance({ through: last.index, term: last.term }, this.applied)
    return ready.sendAfterPersist
  }

  #persist(ready: Ready): void {
    const { disk } = this
    if (ready.hardState !== undefined) disk.hardState = ready.hardState
    if (ready.snapshot !== undefined) {
      const { index, term } = ready.snapshot
      disk.checkpoint = this.#checkpoints.get(`${index}/${term}`)!
      disk.entries = []
      this.lines = [...disk.checkpoint.lines]
      this.applied = index
      this.membership = disk.checkpoint.membership
    }
    const first = ready.entries[0]
    if (first === undefined) return
    disk.entries = [...disk.entries.slice(0, first.index - disk.checkpoint.index - 1), ...ready.entries]
  }

  #apply(entry: Entry): void {
    if (entry.index !== this.applied + 1) throw new Error(`${this.id} applies ${entry.index} after ${this.applied}`)
    this.applied = entry.index
    if (entry.type === 'confChange') {
      const change = decodeConfChange(entry.data)
      if (change !== undefined) this.membership = this.core.applyConfChange(change)
    } else if (entry.data.byteLength > 0) this.lines.push(text.decode(entry.data))
    this.#hooks.onApply?.(this, entry)
  }

  /** Checkpoints the state and drops the log through `index` (<= applied) from disk and memory. */
  compact(index: Index): void {
    const { disk } = this
    if (index <= disk.checkpoint.index) return
    if (index < this.applied) throw new Error('this state machine checkpoints only what it has now')
    const checkpoint = this.#capture()
    disk.entries = disk.entries.slice(checkpoint.index - disk.checkpoint.index)
    disk.checkpoint = checkpoint
    this.core.compact(index)
  }
}
