import { assert } from './assert.ts'
import { Checkpoints } from './checkpoints.ts'
import { createRaftCore, decodeConfChange, describeEvent } from './core/index.ts'
import type { CoreEvent } from './core/index.ts'
import type { Env, Logger, Timer } from './env.ts'
import { RaftError } from './errors.ts'
import {
  appendBytesMax,
  catchUpEntries,
  checkpointEntries,
  checkpointWalBytes,
  electionTimeoutTicks,
  entryBytesMax,
  heartbeatMs,
  inboxMessagesMax,
  sliceMsMax,
  stopCatchUpBytes,
} from './limits.ts'
import { ForwardedProposals } from './forwarded-proposals.ts'
import { decodeProposal } from './proposal-id.ts'
import { Proposals } from './proposals.ts'
import { Reads } from './reads.ts'
import { reconcile } from './recovery.ts'
import type { Recovered } from './recovery.ts'
import type { ApplyResult, RaftNode, RaftStatus, StateMachine, Transport } from './seams.ts'
import { SnapshotIntake } from './snapshot-intake.ts'
import type { ConfChange, Entry, HardState, Index, MemberId, Membership, Message, RaftCore, Ready } from './types.ts'
import { stopped } from './waiting.ts'
import type { OpenedWal, Wal } from './wal/index.ts'

export interface RaftNodeOptions {
  readonly id: MemberId
  readonly env: Env
  /** The node owns the log from here on and closes it. Its first marker holds the bootstrap membership. */
  readonly wal: OpenedWal
  readonly stateMachine: StateMachine
  /** Owned and closed by the node. */
  readonly transport: Transport
  readonly heartbeatMs?: number
  readonly electionTimeoutTicks?: number
  readonly checkpointEntries?: number
  readonly checkpointWalBytes?: number
  readonly catchUpEntries?: number
  readonly stopCatchUpBytes?: number
  readonly appendBytesMax?: number
}

/**
 * Starts a member. It follows until its election timeout or campaign().
 *
 * @throws RaftError ERR_CORRUPT when log and state do not belong together.
 */
export async function createRaftNode(options: RaftNodeOptions): Promise<RaftNode> {
  const recovered = await reconcile(options.wal, options.stateMachine)
  options.stateMachine.setMembership(recovered.membership)
  return new Node(options, options.wal.wal, recovered)
}

/** A Ready being worked on: the next is taken when both halves are done. */
interface Outstanding {
  readonly ready: Ready
  persisted: boolean
  applied: boolean
}

class Node implements RaftNode {
  readonly id: MemberId
  readonly ended: Promise<Error | undefined>
  readonly #env: Env
  readonly #log: Logger
  readonly #wal: Wal
  readonly #stateMachine: StateMachine
  readonly #transport: Transport
  readonly #core: RaftCore
  readonly #incarnation: number
  readonly #electionMs: number
  readonly #proposals: Proposals
  readonly #forwarded = new ForwardedProposals()
  readonly #reads: Reads
  readonly #intake: SnapshotIntake
  readonly #checkpoints: Checkpoints
  readonly #ticker: Timer
  readonly #listeners = new Set<(status: RaftStatus) => void>()
  readonly #transfers = new Set<(error: RaftError) => void>()
  readonly #sendingSnapshots = new Set<MemberId>()
  #installing: Promise<void> | undefined
  #inbox: Message[] = []
  #tickDue = false
  #scheduled = false
  #outstanding: Outstanding | undefined
  /** The snapshot staged has been shown to the core: the next Ready says whether it is wanted. */
  #stagedStepped = false
  #leaderLost = false
  #lostLog: CoreEvent | undefined
  /** A commit index that is owed no fsync: it goes with the next batch. */
  #lazyHardState: HardState | undefined
  #announcedTerm = -1
  #ending: Promise<void> | undefined
  #resolveEnded: (error: Error | undefined) => void = () => undefined

  constructor(options: RaftNodeOptions, wal: Wal, recovered: Recovered) {
    const { id, env, stateMachine, transport } = options
    const period = options.heartbeatMs ?? heartbeatMs
    const electionTicks = options.electionTimeoutTicks ?? electionTimeoutTicks
    this.id = id
    this.#env = env
    this.#log = env.log.child({ member: id.toString(16) })
    this.#wal = wal
    this.#stateMachine = stateMachine
    this.#transport = transport
    this.#electionMs = period * electionTicks
    this.#incarnation = new DataView(Uint8Array.from(env.random.bytes(4)).buffer).getUint32(0)
    this.ended = new Promise((resolve) => (this.#resolveEnded = resolve))
    this.#proposals = new Proposals({ member: id, incarnation: this.#incarnation })
    this.#reads = new Reads({
      scheduler: env.scheduler,
      incarnation: this.#incarnation,
      ask: (readId) => {
        this.#core.readIndex(readId)
        this.#schedule()
      },
    })
    this.#intake = new SnapshotIntake(stateMachine)
    this.#core = createRaftCore({
      id,
      membership: recovered.membership,
      hardState: recovered.hardState,
      log: { snapshot: recovered.snapshot, entries: recovered.entries },
      applied: stateMachine.appliedIndex,
      electionTimeoutTicks: electionTicks,
      heartbeatTicks: 1,
      random: () => env.random.float(),
      preVote: true,
      checkQuorum: true,
      limits: { appendBytesMax: options.appendBytesMax ?? appendBytesMax },
      onEvent: (event) => this.#onEvent(event),
    })
    this.#checkpoints = new Checkpoints({
      wal,
      stateMachine,
      core: this.#core,
      log: this.#log,
      marker: recovered.snapshot,
      membership: recovered.membership,
      entries: recovered.entries,
      checkpointEntries: options.checkpointEntries ?? checkpointEntries,
      checkpointWalBytes: options.checkpointWalBytes ?? checkpointWalBytes,
      catchUpEntries: options.catchUpEntries ?? catchUpEntries,
      stopCatchUpBytes: options.stopCatchUpBytes ?? stopCatchUpBytes,
      onError: (error) => this.#break(error),
    })
    stateMachine.onBroken?.((error) => this.#break(error))
    transport.attach({
      onMessage: (message) => this.#onMessage(message),
      onSnapshot: (message, chunks) => this.#onSnapshot(message, chunks),
    })
    this.#ticker = env.scheduler.every(period, () => {
      // Not now: behind I/O callbacks, so that heartbeats which waited out a stall of ours are stepped before the tick.
      env.scheduler.soon(() => {
        this.#tickDue = true
        this.#process()
      })
    })
    this.#schedule()
  }

  propose(data: Uint8Array, options: { readonly signal: AbortSignal }): Promise<ApplyResult> {
    if (this.#ending) return Promise.reject(stopped())
    if (data.length > entryBytesMax) {
      return Promise.reject(new RaftError('ERR_OVERLOADED', `${data.length} bytes are more than one entry may have`))
    }
    const promise = this.#proposals.propose(data, options.signal, (bytes) => this.#core.propose(bytes))
    this.#schedule()
    return promise
  }

  proposeConfChange(change: ConfChange, options: { readonly signal: AbortSignal }): Promise<Membership> {
    if (this.#ending) return Promise.reject(stopped())
    if (this.status().role !== 'leader') {
      return Promise.reject(new RaftError('ERR_NO_LEADER', 'not proposed: membership changes are made at the leader'))
    }
    const promise = this.#proposals.proposeChange(change, options.signal, (it) => this.#core.proposeConfChange(it))
    this.#schedule()
    return promise
  }

  readIndex(options: { readonly signal: AbortSignal }): Promise<Index> {
    if (this.#ending) return Promise.reject(stopped())
    const promise = this.#reads.read(options.signal)
    this.#schedule()
    return promise
  }

  campaign(): void {
    if (this.#ending) return
    this.#core.campaign()
    this.#schedule()
  }

  transferLeadership(to: MemberId): Promise<void> {
    if (this.#ending) return Promise.reject(stopped())
    if (this.status().leader === to) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const finish = (error?: RaftError) => {
        unsubscribe()
        timer.cancel()
        this.#transfers.delete(finish)
        if (error) reject(error)
        else resolve()
      }
      const unsubscribe = this.onStatusChange((status) => {
        if (status.leader === to) finish()
      })
      const timer = this.#env.scheduler.after(this.#electionMs, () => {
        finish(new RaftError('ERR_NO_LEADER', `leadership did not reach member ${to.toString(16)}`))
      })
      this.#transfers.add(finish)
      this.#core.transferLeadership(to)
      this.#schedule()
    })
  }

  status(): RaftStatus {
    return this.#core.status()
  }

  onStatusChange(listener: (status: RaftStatus) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async stop(options: { readonly checkpoint?: boolean } = {}): Promise<void> {
    this.#end(undefined, options.checkpoint)
    await this.#ending
  }

  #onMessage(message: Message): void {
    if (this.#ending || this.#inbox.length >= inboxMessagesMax) return
    this.#inbox.push(message)
    this.#schedule()
  }

  async #onSnapshot(message: Message & { type: 'snapshot' }, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    if (this.#ending) throw stopped()
    await this.#installing
    // One that we are past is not worth staging; the core's answer tells the leader where we are.
    if (message.snapshot.index > this.#stateMachine.appliedIndex) {
      await this.#intake.stage(message.snapshot, chunks)
      this.#log.info({ index: message.snapshot.index, term: message.snapshot.term }, 'staged a snapshot of the leader')
    }
    this.#inbox.push(message)
    this.#schedule()
  }

  #onEvent(event: CoreEvent): void {
    if (event.type === 'leaderLost' || event.type === 'leaderChanged') this.#leaderLost = true
    if (event.type === 'acknowledgedEntriesLost') this.#lostLog = event
    if (event.type === 'progressChanged' || event.type === 'proposalDropped') this.#log.debug({}, describeEvent(event))
    else this.#log.info({}, describeEvent(event))
  }

  /** Once per turn, behind everything that is already on its way: proposals of one turn share a Ready. */
  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    queueMicrotask(() => {
      this.#scheduled = false
      this.#process()
    })
  }

  #process(): void {
    if (this.#ending) return
    try {
      if (!this.#stepInbox()) return
      if (this.#tickDue) {
        this.#tickDue = false
        this.#core.tick()
      }
      this.#reads.start()
      while (!this.#outstanding && !this.#ending && this.#core.hasReady()) this.#take(this.#core.ready())
      if (this.#stagedStepped && !this.#outstanding) this.#discardStaged()
      if (this.#leaderLost) {
        this.#leaderLost = false
        this.#proposals.abandon('the leader was lost')
        this.#reads.retry()
      }
      if (this.#lostLog) this.#break(new RaftError('ERR_CORRUPT', describeEvent(this.#lostLog)))
    } catch (error) {
      this.#break(error)
    }
  }

  /** False when the slice was used up; the rest follows in another turn. */
  #stepInbox(): boolean {
    const end = this.#env.clock.monotonicMs() + sliceMsMax
    const messages = this.#inbox
    this.#inbox = []
    for (const [i, message] of messages.entries()) {
      if (i % 64 === 63 && this.#env.clock.monotonicMs() > end) {
        this.#inbox = [...messages.slice(i), ...this.#inbox]
        this.#env.scheduler.soon(() => this.#process())
        return false
      }
      this.#step(message)
      if (message.type === 'snapshot' && this.#intake.staged) this.#stagedStepped = true
    }
    return true
  }

  #step(message: Message): void {
    if (message.type !== 'propose') return this.#core.step(message)
    const entries = this.#forwarded.admit(message, this.#core.status().term)
    if (entries.length > 0) this.#core.step({ ...message, entries })
  }

  #take(ready: Ready): void {
    const outstanding: Outstanding = { ready, persisted: false, applied: false }
    this.#outstanding = outstanding
    for (const message of ready.sendNow) this.#send(message)
    // That of a snapshot waits for it: without it the log does not reach so far.
    if (ready.hardState && !ready.snapshot) this.#lazyHardState = ready.hardState
    for (const { id, index } of ready.readStates) this.#reads.answer(id, index, this.#stateMachine.appliedIndex)
    if (ready.snapshot) {
      this.#installing = this.#install(outstanding)
        .catch((error: unknown) => this.#break(error))
        .finally(() => {
          this.#installing = undefined
        })
      return
    }
    if (this.#stagedStepped) this.#discardStaged()
    // Committed entries are persisted here since an earlier Ready: they need not wait for this one's write.
    if (ready.mustSync) void this.#persist(outstanding).catch((error: unknown) => this.#break(error))
    else this.#persisted(outstanding)
    this.#apply(outstanding, 0)
    this.#announce(ready)
  }

  async #persist(outstanding: Outstanding): Promise<void> {
    const { entries, snapshot } = outstanding.ready
    const hardState = this.#lazyHardState
    this.#lazyHardState = undefined
    this.#checkpoints.appended(entries)
    await this.#wal.append({ hardState, marker: snapshot && { kind: 'install', snapshot }, entries })
    if (this.#ending) return
    this.#persisted(outstanding)
    this.#finish(outstanding)
  }

  #persisted(outstanding: Outstanding): void {
    outstanding.persisted = true
    for (const message of outstanding.ready.sendAfterPersist) this.#send(message)
  }

  /**
   * Staged durable -> installed -> marker durable -> old segments gone. A crash before the marker leaves a state that is
   * ahead of the log, which reconcile() puts right.
   */
  async #install(outstanding: Outstanding): Promise<void> {
    const snapshot = outstanding.ready.snapshot
    const staged = this.#intake.staged
    assert(
      snapshot !== undefined && staged?.meta.index === snapshot.index,
      'the core wants a snapshot that is not staged',
    )
    this.#stagedStepped = false
    await this.#checkpoints.pause()
    try {
      if (this.#ending) return
      await staged.install()
      // Not ours to discard any more, and room for the next one: a member may fall behind again.
      this.#intake.take()
      this.#stateMachine.setMembership(snapshot.membership)
      this.#checkpoints.installed(snapshot)
      this.#lazyHardState = outstanding.ready.hardState ?? this.#lazyHardState
      await this.#persist(outstanding)
      if (this.#ending) return
      await this.#wal.release(snapshot.index)
    } finally {
      this.#checkpoints.resume()
    }
    this.#log.info({ index: snapshot.index, term: snapshot.term }, 'installed a snapshot of the leader')
    this.#reads.applied(snapshot.index)
    this.#apply(outstanding, 0)
    this.#announce(outstanding.ready)
    this.#finish(outstanding)
  }

  #discardStaged(): void {
    this.#stagedStepped = false
    const staged = this.#intake.take()
    staged?.discard().catch((error: unknown) => this.#log.warn({ error }, 'cannot discard a snapshot'))
  }

  /** In slices: a long catch-up must not hold the event loop. */
  #apply(outstanding: Outstanding, from: number): void {
    const { committed } = outstanding.ready
    const end = this.#env.clock.monotonicMs() + sliceMsMax
    for (let i = from; i < committed.length; i++) {
      if (i > from && i % 16 === 0 && this.#env.clock.monotonicMs() > end) {
        this.#reads.applied(this.#stateMachine.appliedIndex)
        this.#env.scheduler.soon(() => this.#applyRest(outstanding, i))
        return
      }
      const entry = committed[i]
      if (entry) this.#applyEntry(entry)
    }
    outstanding.applied = true
    if (committed.length > 0) {
      this.#reads.applied(this.#stateMachine.appliedIndex)
      this.#checkpoints.consider()
    }
    // On the way out of #take the caller's loop goes on by itself.
    if (outstanding.persisted) this.#advance(outstanding)
  }

  #applyRest(outstanding: Outstanding, from: number): void {
    if (this.#ending) return
    try {
      this.#apply(outstanding, from)
    } catch (error) {
      return this.#break(error)
    }
    this.#schedule()
  }

  #applyEntry(entry: Entry): void {
    if (entry.type === 'confChange') {
      const change = decodeConfChange(entry.data)
      if (!change) throw new RaftError('ERR_FORMAT', `entry ${entry.index} is a membership change of a newer version`)
      const membership = this.#core.applyConfChange(change)
      // Before apply: nothing may store the entry's index beside the membership before it.
      this.#stateMachine.setMembership(membership)
      this.#checkpoints.membershipChanged(entry.index, membership)
      this.#stateMachine.apply(entry)
      this.#proposals.changeApplied(change, membership)
    } else if (entry.data.length === 0) {
      this.#stateMachine.apply(entry)
    } else {
      const own = { member: this.id, incarnation: this.#incarnation }
      const proposal = decodeProposal(entry.data, own)
      if (!proposal) throw new RaftError('ERR_FORMAT', `entry ${entry.index} is a proposal of a newer version`)
      const { index, term, type } = entry
      const result = this.#stateMachine.apply({ index, term, type, data: proposal.data })
      if (proposal.sequence !== undefined) this.#proposals.applied(proposal.sequence, result)
    }
  }

  /** When both halves are done, from outside #take. */
  #finish(outstanding: Outstanding): void {
    if (outstanding !== this.#outstanding || !outstanding.persisted || !outstanding.applied) return
    this.#advance(outstanding)
    this.#process()
  }

  #advance(outstanding: Outstanding): void {
    if (outstanding !== this.#outstanding) return
    const { entries, snapshot } = outstanding.ready
    const last = entries.at(-1) ?? snapshot ?? { index: 0, term: 0 }
    this.#outstanding = undefined
    this.#core.advance({ through: last.index, term: last.term }, this.#stateMachine.appliedIndex)
  }

  #send(message: Message): void {
    if (message.type === 'snapshot') void this.#sendSnapshot(message)
    else this.#transport.send(message)
  }

  async #sendSnapshot(message: Message & { type: 'snapshot' }): Promise<void> {
    const { to } = message
    if (this.#sendingSnapshots.has(to)) return
    this.#sendingSnapshots.add(to)
    let outcome: 'finished' | 'failed' = 'failed'
    try {
      const source = await this.#stateMachine.openSnapshot()
      try {
        // The state may be newer than the core's word for it; the message says what is really sent.
        const sent = { ...message, snapshot: source.meta }
        this.#log.info({ to: to.toString(16), index: source.meta.index }, 'sending a snapshot')
        if (!this.#ending) await this.#transport.sendSnapshot(sent, source)
        outcome = 'finished'
      } finally {
        await source.close()
      }
    } catch (error) {
      this.#log.warn({ to: to.toString(16), error }, 'cannot send a snapshot')
    }
    this.#sendingSnapshots.delete(to)
    if (this.#ending) return
    this.#core.reportSnapshot(to, outcome)
    this.#schedule()
  }

  #announce(ready: Ready): void {
    const { softState, hardState } = ready
    if (!softState && (!hardState || hardState.term === this.#announcedTerm)) return
    const status = this.#core.status()
    this.#announcedTerm = status.term
    for (const listener of this.#listeners) listener(status)
  }

  /** What a failed write left on disk is not known: the member ends, and a leader thereby steps down (etcd-io/etcd#3068). */
  #break(error: unknown): void {
    const cause = error instanceof Error ? error : new Error(String(error))
    if (!this.#ending) this.#log.error({ error: cause }, 'this member ends: it cannot go on')
    this.#end(cause)
  }

  #end(cause: Error | undefined, checkpoint = false): void {
    // Set before anything of #close runs: from here on every way in is shut.
    this.#ending ??= Promise.resolve().then(() => this.#close(cause, checkpoint))
  }

  async #close(cause: Error | undefined, checkpoint: boolean): Promise<void> {
    this.#ticker.cancel()
    this.#transport.close()
    this.#inbox = []
    this.#proposals.abandon(cause ? 'this member broke' : 'this member was stopped', cause)
    this.#reads.fail(stopped())
    for (const fail of this.#transfers) fail(stopped())
    await this.#installing
    const work = [this.#intake.close(), this.#checkpoints.close()]
    const hardState = this.#lazyHardState
    if (!cause && hardState) work.push(this.#wal.append({ hardState }))
    const results = await Promise.allSettled(work)
    for (const result of results) {
      if (result.status === 'rejected') this.#log.warn({ error: result.reason }, 'while ending')
    }
    if (!cause && checkpoint) {
      await this.#checkpoints.finish().catch((error: unknown) => {
        this.#log.warn({ error }, 'stopped without a checkpoint: the next start replays the log')
      })
    }
    try {
      await this.#wal.close()
    } catch (closing) {
      this.#log.warn({ error: closing }, 'cannot close the log')
    }
    this.#resolveEnded(cause)
  }
}
