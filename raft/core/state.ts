import { NOBODY } from '../types.ts'
import type { Entry, HardState, Index, MemberId, Membership, Message, Term } from '../types.ts'
import { assert } from './assert.ts'
import type { CoreEvent } from './event.ts'
import type { CoreLimits } from './limits.ts'
import { entryBytes } from './log.ts'
import type { RaftLog } from './log.ts'
import { Progress } from './progress.ts'
import type { ProgressState } from './progress.ts'
import { ReadQueue } from './read-queue.ts'

export interface CoreSettings {
  readonly electionTimeoutTicks: number
  readonly heartbeatTicks: number
  readonly preVote: boolean
  readonly checkQuorum: boolean
  readonly random: () => number
  readonly limits: CoreLimits
  readonly onEvent: ((event: CoreEvent) => void) | undefined
}

/** Learners are followers that do not stand for election; only status and Ready tell them apart. */
export type ActiveRole = 'follower' | 'preCandidate' | 'candidate' | 'leader'

/**
 * Everything the state machine is. The functions of this folder change it in place; nothing outside sees it.
 * Invariants: `term` and `commit` never fall; `vote` changes at most once per term, from NOBODY.
 */
export interface State {
  readonly id: MemberId
  readonly settings: CoreSettings
  readonly log: RaftLog
  term: Term
  vote: MemberId
  role: ActiveRole
  leader: MemberId
  /** As of what has been applied or installed here, never ahead of it. */
  membership: Membership
  /** Set once: acknowledged entries are gone from our disk. Nothing is answered any more. */
  refusing: boolean

  /** Ticks since the leader was heard, or (leader) since the last CheckQuorum round. */
  electionElapsed: number
  heartbeatElapsed: number
  /** Drawn anew at each change of role: [electionTimeoutTicks, 2 * electionTimeoutTicks). */
  randomizedTimeout: number

  /** (Pre-)candidate only. */
  votes: Map<MemberId, boolean>

  /** Leader only; every member of the membership, ourselves included. `peers` are the same without us. */
  progress: Map<MemberId, Progress>
  peers: Progress[]
  transferee: MemberId
  /** No membership change is accepted before this index is applied. */
  pendingConfIndex: Index
  uncommittedBytes: number
  /** Somebody may have something to be sent: looked at once per Ready, so that proposals share messages. */
  appendsDue: boolean
  heartbeatDue: boolean
  readonly reads: ReadQueue
  /** Reused by maybeCommit. */
  readonly scratch: Index[]

  /** Follower only: proposals on their way to the leader, gathered per Ready. */
  forwarded: Entry[]
  forwardedBytes: number
  /** Follower only: read ids that the leader has not answered. */
  forwardedReads: Set<bigint>

  sendNow: Message[]
  sendAfterPersist: Message[]
  readStates: { readonly id: bigint; readonly index: Index }[]

  /** What the driver was last told, to report changes only. */
  emittedHardState: HardState
  emittedLeader: MemberId
  emittedRole: ActiveRole | 'learner'
  /** On disk, by advance(). A candidate counts its own vote only once it is there. */
  persistedTerm: Term
  persistedVote: MemberId
}

export function emit(state: State, event: CoreEvent): void {
  state.settings.onEvent?.(event)
}

export const isVoter = (state: State, member: MemberId): boolean => state.membership.voters.includes(member)

export function visibleRole(state: State): ActiveRole | 'learner' {
  return state.role === 'follower' && state.membership.learners.includes(state.id) ? 'learner' : state.role
}

export function setLeader(state: State, leader: MemberId): void {
  const before = state.leader
  if (before === leader) return
  state.leader = leader
  // Their answers, if they still come, will not be for this term.
  for (const id of state.forwardedReads) state.readStates.push({ id, index: -1 })
  state.forwardedReads.clear()
  if (before === NOBODY) emit(state, { type: 'leaderElected', leader, term: state.term })
  else if (leader === NOBODY) emit(state, { type: 'leaderLost', leader: before, term: state.term })
  else emit(state, { type: 'leaderChanged', from: before, to: leader, term: state.term })
}

/** What every change of role or term has in common. */
function reset(state: State, term: Term): void {
  assert(term >= state.term, `term went back from ${state.term} to ${term}`)
  if (term !== state.term) {
    state.term = term
    state.vote = NOBODY
  }
  setLeader(state, NOBODY)
  state.electionElapsed = 0
  state.heartbeatElapsed = 0
  drawTimeout(state)
  state.votes = new Map()
  abortTransfer(state)
  for (const read of state.reads.clear()) if (read.from === state.id) state.readStates.push({ id: read.id, index: -1 })
  state.progress = new Map()
  state.peers = []
  state.uncommittedBytes = 0
  state.appendsDue = false
  state.heartbeatDue = false
}

/** Randomised so that members seldom stand at the same time (Raft paper, section 5.2). */
function drawTimeout(state: State): void {
  const { electionTimeoutTicks, random } = state.settings
  state.randomizedTimeout = electionTimeoutTicks + Math.floor(random() * electionTimeoutTicks)
}

export function abortTransfer(state: State): void {
  if (state.transferee === NOBODY) return
  emit(state, { type: 'transferAborted', to: state.transferee, term: state.term })
  state.transferee = NOBODY
}

export function becomeFollower(state: State, term: Term, leader: MemberId): void {
  const changed = state.role !== 'follower' || term !== state.term
  reset(state, term)
  state.role = 'follower'
  if (changed) emit(state, { type: 'becameFollower', term })
  setLeader(state, leader)
}

/** The term stays: a pre-vote that fails leaves no trace (Raft thesis, section 9.6). */
export function becomePreCandidate(state: State): void {
  assert(state.role !== 'leader', 'a leader does not stand for election')
  state.role = 'preCandidate'
  state.votes = new Map()
  state.electionElapsed = 0
  setLeader(state, NOBODY)
  drawTimeout(state)
  emit(state, { type: 'becamePreCandidate', term: state.term })
}

export function becomeCandidate(state: State): void {
  assert(state.role !== 'leader', 'a leader does not stand for election')
  reset(state, state.term + 1)
  state.role = 'candidate'
  state.vote = state.id
  emit(state, { type: 'becameCandidate', term: state.term })
}

export function becomeLeader(state: State): void {
  assert(state.role === 'candidate', `${state.role} cannot become leader`)
  const { log } = state
  reset(state, state.term)
  state.role = 'leader'
  for (const member of state.membership.voters) trackMember(state, member, true)
  for (const member of state.membership.learners) trackMember(state, member, false)
  const self = state.progress.get(state.id)
  assert(self !== undefined, 'leader is not a member')
  self.state = 'replicate'
  self.match = log.stable
  self.next = log.lastIndex + 1
  state.uncommittedBytes = log.bytesBetween({ after: log.commit, through: log.lastIndex })
  emit(state, { type: 'becameLeader', term: state.term })
  setLeader(state, state.id)
  // An entry of the own term: only by committing it does the leader commit, and learn of, earlier ones (section 5.4.2).
  appendToOwnLog(state, 'normal', new Uint8Array(0))
  // No membership change before it is applied: an older one may be in the log, and a change made before the first
  // commit of the term can meet a disjoint quorum (Ongaro, raft-dev 2015-07-10).
  state.pendingConfIndex = log.lastIndex
}

/** A member joins the leader's bookkeeping, as yet unknown: probing starts behind the last entry. */
export function trackMember(state: State, member: MemberId, voter: boolean): void {
  const progress = new Progress(member, { voter, next: state.log.lastIndex + 1, limits: state.settings.limits })
  state.progress.set(member, progress)
  if (member !== state.id) state.peers.push(progress)
}

export function untrackMember(state: State, member: MemberId): void {
  state.progress.delete(member)
  state.peers = state.peers.filter((peer) => peer.member !== member)
}

export function appendToOwnLog(state: State, type: Entry['type'], data: Uint8Array): void {
  const entry: Entry = { index: state.log.lastIndex + 1, term: state.term, type, data }
  state.log.append(entry)
  state.uncommittedBytes += entryBytes(entry)
  state.appendsDue = true
}

/** Changes the state of a progress and says so. */
export function moveProgress(state: State, progress: Progress, change: () => void): void {
  const from: ProgressState = progress.state
  change()
  if (progress.state !== from) {
    emit(state, { type: 'progressChanged', member: progress.member, from, to: progress.state })
  }
}
