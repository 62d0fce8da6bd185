import { NOBODY } from '../types.ts'
import type { MessageOf } from './message-check.ts'
import type { Index, MemberId, Message } from '../types.ts'
import { assert } from './assert.ts'
import { entryBytes } from './log.ts'
import type { Progress } from './progress.ts'
import { quorumValue } from './quorum.ts'
import { committedInTerm, confirmReads, releaseReads } from './reads.ts'
import { becomeFollower, emit, moveProgress } from './state.ts'
import type { State } from './state.ts'

/** Would the next look at this follower send something? */
function owes(state: State, progress: Progress): boolean {
  if (progress.paused) return false
  const { log } = state
  return progress.next <= log.lastIndex || progress.appendDue || commitOwed(state, progress)
}

/** The follower could learn a higher commit index for entries it has been sent. */
const commitOwed = (state: State, progress: Progress): boolean =>
  Math.min(state.log.commit, progress.next - 1) > progress.sentCommit

export function hasAppends(state: State): boolean {
  return state.appendsDue && state.peers.some((peer) => owes(state, peer))
}

/** Once per Ready: everything proposed since the last one shares messages. */
export function sendAppends(state: State): void {
  if (!state.appendsDue) return
  state.appendsDue = false
  for (const peer of state.peers) {
    while (owes(state, peer) && sendAppend(state, peer)) {
      // One message, or one more of a pipeline.
    }
  }
}

/** False when no append could be made: the follower needs entries we no longer hold. */
function sendAppend(state: State, progress: Progress): boolean {
  const { log, id: from, term } = state
  const previousIndex = progress.next - 1
  const previousTerm = log.termAt(previousIndex)
  if (previousTerm === undefined) {
    sendSnapshot(state, progress)
    return false
  }
  const entries = log.batch(progress.next, state.settings.limits.appendBytesMax)
  const lastIndex = previousIndex + entries.length
  const message: Message = {
    type: 'append',
    from,
    to: progress.member,
    term,
    previousIndex,
    previousTerm,
    entries,
    commit: log.commit,
  }
  state.sendNow.push(message)
  let bytes = 0
  for (const entry of entries) bytes += entryBytes(entry)
  progress.sent(lastIndex, bytes, entries.length)
  progress.sentCommit = Math.min(log.commit, lastIndex)
  return true
}

/**
 * Announces the state as of our applied index. The driver streams what the state machine's snapshot then holds, at this
 * index or later, and puts that snapshot's own meta into the message.
 */
function sendSnapshot(state: State, progress: Progress): void {
  // A member that does not answer would keep a stream open for nothing.
  if (!progress.recentActive) return
  const { log, id: from, term, membership } = state
  const index = log.applied
  const snapshotTerm = log.termAt(index)
  assert(snapshotTerm !== undefined, `the log no longer knows the term of its applied index ${index}`)
  state.sendNow.push({
    type: 'snapshot',
    from,
    to: progress.member,
    term,
    snapshot: { index, term: snapshotTerm, membership },
  })
  moveProgress(state, progress, () => progress.becomeSnapshot(index))
}

/** With the number of the read round in progress, so that lost rounds heal with the next period. */
export function sendHeartbeats(state: State): void {
  const round = BigInt(state.reads.startRound())
  const { id: from, term, log } = state
  for (const peer of state.peers) {
    state.sendNow.push({
      type: 'heartbeat',
      from,
      to: peer.member,
      term,
      // Never beyond what the follower is known to hold: it may have other entries there.
      commit: Math.min(peer.match, log.commit),
      readId: round,
    })
  }
}

/**
 * Raft paper, section 5.4.2: only an entry of the own term is committed by counting; earlier ones follow it. (Figure 8:
 * an old entry on a majority can still be overwritten.)
 */
export function maybeCommit(state: State): void {
  const { log, scratch } = state
  scratch.length = 0
  for (const progress of state.progress.values()) if (progress.voter) scratch.push(progress.match)
  if (scratch.length === 0) return
  const index = quorumValue(scratch)
  const before = log.commit
  if (index <= before || log.termAt(index) !== state.term) return
  const firstOfTerm = !committedInTerm(state)
  log.commitTo(index)
  state.uncommittedBytes -= log.bytesBetween({ after: before, through: index })
  state.appendsDue = true
  if (firstOfTerm) releaseReads(state)
}

export function handleAppendResponse(state: State, message: MessageOf<'appendResponse'>): void {
  const progress = state.progress.get(message.from)
  // An index we never had cannot match.
  if (progress === undefined || message.index > state.log.lastIndex) return
  progress.recentActive = true
  if (message.reject) {
    const hint =
      message.hintTerm > 0 ? state.log.matchHint(message.hintIndex, message.hintTerm).index : message.hintIndex
    let moved = false
    moveProgress(state, progress, () => {
      moved = progress.rejected(message.index, hint)
    })
    if (moved) {
      progress.appendDue = true
      state.appendsDue = true
    }
    return
  }
  acceptAppend(state, progress, message.index)
}

function acceptAppend(state: State, progress: Progress, index: Index): void {
  const news = progress.accepted(index)
  switch (progress.state) {
    case 'probe':
      // Also without news: a restarted follower answers what we already knew.
      if (news || progress.match === index) moveProgress(state, progress, () => progress.becomeReplicate())
      break
    case 'snapshot':
      // What it needs next is in our log again, whatever became of the stream.
      if (progress.match + 1 >= state.log.firstIndex) {
        moveProgress(state, progress, () => progress.becomeReplicate())
      }
      break
    case 'replicate':
      progress.inflights.freeThrough(index)
      break
  }
  state.appendsDue = true
  if (!news) return
  maybeCommit(state)
  if (progress.member === state.transferee && progress.match === state.log.lastIndex)
    sendTimeoutNow(state, progress.member)
}

/** Our own entries are on disk: the leader's match moves like a follower's (Raft thesis, section 10.2.1). */
export function acceptOwn(state: State): void {
  const progress = state.progress.get(state.id)
  if (progress === undefined || !progress.accepted(state.log.stable)) return
  maybeCommit(state)
}

export function handleHeartbeatResponse(state: State, message: MessageOf<'heartbeatResponse'>): void {
  const progress = state.progress.get(message.from)
  if (progress === undefined) return
  progress.recentActive = true
  if (progress.recheckDue) {
    // Alive, yet behind: an append or its answer may be lost. Once per heartbeat period, so that many read rounds do
    // not resend the same entries many times.
    progress.recheckDue = false
    progress.probeSent = false
    if (progress.state === 'replicate' && progress.inflights.full) progress.inflights.freeFirst()
    if (progress.match < state.log.lastIndex) {
      progress.appendDue = true
      state.appendsDue = true
    }
  }
  const round = Number(message.readId)
  if (round > progress.readRound && round <= state.reads.lastRound) {
    progress.readRound = round
    if (progress.voter) confirmReads(state)
  }
}

export function reportSnapshot(state: State, member: MemberId, outcome: 'finished' | 'failed'): void {
  const progress = state.progress.get(member)
  if (state.role !== 'leader' || progress?.state !== 'snapshot') return
  if (outcome === 'failed') progress.pendingSnapshot = 0
  moveProgress(state, progress, () => progress.becomeProbe())
  // Finished: its answer is on the way. Failed: give it one heartbeat period before the next stream.
  progress.probeSent = true
}

export function reportUnreachable(state: State, member: MemberId): void {
  const progress = state.progress.get(member)
  if (state.role !== 'leader' || progress?.state !== 'replicate') return
  // What was in flight is probably lost.
  moveProgress(state, progress, () => progress.becomeProbe())
  progress.appendDue = true
  state.appendsDue = true
}

/** Every electionTimeoutTicks: a leader that a quorum does not answer steps down (Raft thesis, section 6.2). */
export function checkQuorum(state: State): void {
  const active: number[] = []
  for (const progress of state.progress.values()) {
    if (progress.voter) active.push(progress.member === state.id || progress.recentActive ? 1 : 0)
    progress.recentActive = false
  }
  if (active.length > 0 && quorumValue(active) === 1) return
  emit(state, { type: 'quorumLost', term: state.term })
  becomeFollower(state, state.term, NOBODY)
}

export function startTransfer(state: State, to: MemberId): void {
  const progress = state.progress.get(to)
  if (to === state.id || progress === undefined || !progress.voter || state.transferee === to) return
  if (state.transferee !== NOBODY) emit(state, { type: 'transferAborted', to: state.transferee, term: state.term })
  state.transferee = to
  // One election timeout for it, counted from now.
  state.electionElapsed = 0
  emit(state, { type: 'transferStarted', to, term: state.term })
  if (progress.match === state.log.lastIndex) return sendTimeoutNow(state, to)
  progress.appendDue = true
  state.appendsDue = true
}

function sendTimeoutNow(state: State, to: MemberId): void {
  state.sendNow.push({ type: 'timeoutNow', from: state.id, to, term: state.term })
}

export function canAppend(state: State, bytes: number): boolean {
  // A single entry above the bound passes when nothing else waits: refusing it for ever would help nobody.
  return state.uncommittedBytes === 0 || state.uncommittedBytes + bytes <= state.settings.limits.uncommittedBytesMax
}
