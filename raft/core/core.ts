import { NOBODY } from '../types.ts'
import type {
  ConfChange,
  CoreStatus,
  Entry,
  HardState,
  Index,
  MemberId,
  Membership,
  Message,
  RaftCore,
  Ready,
  SnapshotMeta,
  Term,
} from '../types.ts'
import { assert } from './assert.ts'
import { encodeConfChange } from './conf-change.ts'
import { campaign, countOwnVote } from './election.ts'
import type { CoreEvent } from './event.ts'
import { defaultCoreLimits } from './limits.ts'
import type { CoreLimits } from './limits.ts'
import { RaftLog } from './log.ts'
import { changeMembership } from './membership.ts'
import { flushForwarded, proposeHere } from './proposal.ts'
import { ReadQueue } from './read-queue.ts'
import { confirmReads, requestRead } from './reads.ts'
import {
  acceptOwn,
  hasAppends,
  maybeCommit,
  reportSnapshot,
  reportUnreachable,
  sendAppends,
  sendHeartbeats,
  startTransfer,
} from './replication.ts'
import { abortTransfer, becomeFollower, emit, isVoter, trackMember, untrackMember, visibleRole } from './state.ts'
import type { State } from './state.ts'
import { step } from './step.ts'
import { tick } from './tick.ts'

export interface RaftCoreOptions {
  readonly id: MemberId
  /** In force at `applied`. Equal on all members that start a new cluster together. */
  readonly membership: Membership
  /** As recovered; a fresh member starts with term 0, vote NOBODY, commit 0. */
  readonly hardState: HardState
  /** What the WAL recovered: entries start at snapshot.index + 1, without gaps. */
  readonly log: {
    readonly snapshot: { readonly index: Index; readonly term: Term }
    readonly entries: readonly Entry[]
  }
  /** What the state machine holds; >= log.snapshot.index. May be above hardState.commit, never above the log. */
  readonly applied: Index
  /** Ticks; > heartbeatTicks. */
  readonly electionTimeoutTicks: number
  readonly heartbeatTicks: number
  /** Uniform in [0, 1). */
  readonly random: () => number
  readonly preVote: boolean
  /** Also turns on the leader lease: who has heard a leader within the election timeout ignores vote requests. */
  readonly checkQuorum: boolean
  readonly limits?: Partial<CoreLimits>
  /** Called synchronously; must not call the core. */
  readonly onEvent?: (event: CoreEvent) => void
}

/**
 * @throws Error when the parts do not belong together: a gap in the log, a commit index or applied index beyond its
 *   end. Such a replica has lost its log and must not take part.
 */
export function createRaftCore(options: RaftCoreOptions): RaftCore {
  return new Core(options)
}

class Core implements RaftCore {
  readonly #state: State
  /** The Ready given out and not yet advanced. */
  #outstanding: { readonly hardState: HardState; readonly snapshot: SnapshotMeta | undefined } | undefined

  constructor(options: RaftCoreOptions) {
    this.#state = initialState(options)
  }

  step(message: Message): void {
    step(this.#state, message)
  }

  tick(): void {
    tick(this.#state)
  }

  campaign(): void {
    if (!this.#state.refusing) campaign(this.#state, { transfer: false })
  }

  propose(data: Uint8Array): 'accepted' | 'noLeader' | 'overloaded' {
    const result = proposeHere(this.#state, 'normal', data)
    assert(result !== 'pending', 'only a membership change can be pending')
    return result
  }

  proposeConfChange(change: ConfChange): 'accepted' | 'noLeader' | 'pending' {
    const result = proposeHere(this.#state, 'confChange', encodeConfChange(change))
    return result === 'overloaded' ? 'pending' : result
  }

  applyConfChange(change: ConfChange): Membership {
    const state = this.#state
    const membership = changeMembership(state.membership, change)
    if (membership === state.membership) return membership
    state.membership = membership
    emit(state, { type: 'membershipChanged', membership })
    if (state.role === 'leader') this.#adaptLeader()
    else if (state.role !== 'follower' && !isVoter(state, state.id)) becomeFollower(state, state.term, NOBODY)
    return membership
  }

  #adaptLeader(): void {
    const state = this.#state
    for (const member of state.progress.keys()) {
      if (!isVoter(state, member) && !state.membership.learners.includes(member)) {
        // Let a removed follower, or the others when it is us, hear that the change is committed before we forget them.
        sendAppends(state)
        untrackMember(state, member)
        if (state.transferee === member) abortTransfer(state)
      }
    }
    for (const member of [...state.membership.voters, ...state.membership.learners]) {
      const progress = state.progress.get(member)
      if (progress === undefined) {
        trackMember(state, member, isVoter(state, member))
        // Not to be counted as silent before it had a chance to answer.
        state.progress.get(member)!.recentActive = true
      } else progress.voter = isVoter(state, member)
    }
    state.appendsDue = true
    if (!isVoter(state, state.id)) return becomeFollower(state, state.term, NOBODY)
    // A smaller quorum may already have what a larger one waited for.
    maybeCommit(state)
    confirmReads(state)
  }

  readIndex(id: bigint): void {
    requestRead(this.#state, id)
  }

  transferLeadership(to: MemberId): void {
    const state = this.#state
    if (state.role === 'leader') return startTransfer(state, to)
    if (state.leader === NOBODY) return
    const { id: from, term } = state
    state.sendNow.push({ type: 'transferLeader', from, to: state.leader, term, transferee: to })
  }

  hasReady(): boolean {
    const state = this.#state
    if (this.#outstanding !== undefined) return false
    return (
      state.sendNow.length > 0 ||
      state.sendAfterPersist.length > 0 ||
      state.readStates.length > 0 ||
      state.log.hasUnpersisted ||
      state.log.hasCommitted ||
      state.forwarded.length > 0 ||
      (state.role === 'leader' && (state.heartbeatDue || state.reads.unsent || hasAppends(state))) ||
      hardStateChanged(state) ||
      state.leader !== state.emittedLeader ||
      visibleRole(state) !== state.emittedRole
    )
  }

  ready(): Ready {
    assert(this.#outstanding === undefined, 'a Ready is outstanding')
    const state = this.#state
    gatherMessages(state)
    const { entries, snapshot } = state.log.takeUnpersisted()
    const hardState = hardStateOf(state)
    const before = state.emittedHardState
    const voteChanged = hardState.term !== before.term || hardState.vote !== before.vote
    const softState = takeSoftState(state)
    // Absent parts are undefined, not missing: one shape for all, and no spread, which took half of the core's time.
    const ready: Ready = {
      hardState: hardStateChanged(state) ? hardState : undefined,
      softState,
      entries,
      snapshot,
      sendNow: state.sendNow,
      sendAfterPersist: state.sendAfterPersist,
      committed: state.log.takeCommitted(state.settings.limits.committedBytesMax),
      readStates: state.readStates,
      mustSync: entries.length > 0 || snapshot !== undefined || voteChanged,
    }
    state.emittedHardState = hardState
    state.sendNow = []
    state.sendAfterPersist = []
    state.readStates = []
    this.#outstanding = { hardState, snapshot }
    return ready
  }

  advance(persisted: { readonly through: Index; readonly term: Term }, applied: Index): void {
    const state = this.#state
    const outstanding = this.#outstanding
    if (outstanding !== undefined) {
      this.#outstanding = undefined
      state.persistedTerm = outstanding.hardState.term
      state.persistedVote = outstanding.hardState.vote
      state.log.persisted(persisted, outstanding.snapshot)
      if (outstanding.snapshot !== undefined) {
        state.membership = outstanding.snapshot.membership
        emit(state, { type: 'membershipChanged', membership: state.membership })
      }
    }
    state.log.appliedThrough(applied)
    if (state.role === 'leader') acceptOwn(state)
    else countOwnVote(state)
  }

  compact(index: Index): void {
    this.#state.log.compact(index)
  }

  reportSnapshot(member: MemberId, outcome: 'finished' | 'failed'): void {
    reportSnapshot(this.#state, member, outcome)
  }

  reportUnreachable(member: MemberId): void {
    reportUnreachable(this.#state, member)
  }

  status(): CoreStatus {
    const state = this.#state
    const { log } = state
    return {
      id: state.id,
      role: visibleRole(state),
      leader: state.leader,
      term: state.term,
      vote: state.vote,
      commit: log.commit,
      applied: log.applied,
      firstIndex: log.firstIndex,
      lastIndex: log.lastIndex,
      lastTerm: log.lastTerm,
      membership: state.membership,
      ...(state.role === 'leader' ? { progress: progressOf(state) } : undefined),
    }
  }
}

function initialState(options: RaftCoreOptions): State {
  const { hardState, electionTimeoutTicks, heartbeatTicks } = options
  assert(options.id !== NOBODY, 'member id 0 means nobody')
  assert(heartbeatTicks >= 1 && electionTimeoutTicks > heartbeatTicks, 'election timeout must exceed the heartbeat')
  const limits = { ...defaultCoreLimits, ...options.limits }
  const log = new RaftLog({ ...options.log, commit: hardState.commit, applied: options.applied })
  assert(log.lastTerm <= hardState.term, `log reaches term ${log.lastTerm}, but term ${hardState.term} was persisted`)
  const state: State = {
    id: options.id,
    settings: {
      electionTimeoutTicks,
      heartbeatTicks,
      preVote: options.preVote,
      checkQuorum: options.checkQuorum,
      random: options.random,
      limits,
      onEvent: options.onEvent,
    },
    log,
    term: hardState.term,
    vote: hardState.vote,
    role: 'follower',
    leader: NOBODY,
    membership: options.membership,
    refusing: false,
    electionElapsed: 0,
    heartbeatElapsed: 0,
    randomizedTimeout: 0,
    votes: new Map(),
    progress: new Map(),
    peers: [],
    transferee: NOBODY,
    pendingConfIndex: 0,
    uncommittedBytes: 0,
    appendsDue: false,
    heartbeatDue: false,
    reads: new ReadQueue(limits.pendingReadsMax),
    scratch: [],
    forwarded: [],
    forwardedBytes: 0,
    forwardedReads: new Set(),
    sendNow: [],
    sendAfterPersist: [],
    readStates: [],
    emittedHardState: hardState,
    emittedLeader: NOBODY,
    emittedRole: 'follower',
    persistedTerm: hardState.term,
    persistedVote: hardState.vote,
  }
  becomeFollower(state, hardState.term, NOBODY)
  return state
}

/** What is decided only when a Ready is taken, so that everything since the last one shares it. */
function gatherMessages(state: State): void {
  if (state.forwarded.length > 0) flushForwarded(state)
  if (state.role !== 'leader') return
  sendAppends(state)
  if (state.heartbeatDue || state.reads.unsent) {
    state.heartbeatDue = false
    sendHeartbeats(state)
  }
}

const hardStateOf = (state: State): HardState => ({ term: state.term, vote: state.vote, commit: state.log.commit })

function hardStateChanged(state: State): boolean {
  const { term, vote, commit } = state.emittedHardState
  return term !== state.term || vote !== state.vote || commit !== state.log.commit
}

function takeSoftState(state: State): Ready['softState'] {
  const role = visibleRole(state)
  if (state.leader === state.emittedLeader && role === state.emittedRole) return undefined
  state.emittedLeader = state.leader
  state.emittedRole = role
  return { leader: state.leader, role }
}

function progressOf(state: State): NonNullable<CoreStatus['progress']> {
  return new Map([...state.progress].map(([id, { match, next, state: of }]) => [id, { match, next, state: of }]))
}
