import { NOBODY } from '../types.ts'
import type { MessageOf } from './message-check.ts'
import type { Index } from '../types.ts'
import { isVoter } from './state.ts'
import type { State } from './state.ts'
import type { PendingRead } from './read-queue.ts'

export function committedInTerm(state: State): boolean {
  return state.log.termAt(state.log.commit) === state.term
}

/** A read asked for at this member. */
export function requestRead(state: State, id: bigint): void {
  if (state.role === 'leader') return startRead(state, { from: state.id, id })
  if (state.refusing || state.leader === NOBODY || state.forwardedReads.size >= state.settings.limits.pendingReadsMax) {
    state.readStates.push({ id, index: -1 })
    return
  }
  state.forwardedReads.add(id)
  state.sendNow.push({ type: 'readIndex', from: state.id, to: state.leader, term: state.term, readId: id })
}

/** At the leader, for itself or for a follower. */
export function startRead(state: State, read: PendingRead): void {
  if (state.reads.full) {
    // A follower learns by its own retry; to ourselves the answer is at hand.
    if (read.from === state.id) state.readStates.push({ id: read.id, index: -1 })
    return
  }
  if (!committedInTerm(state)) return state.reads.holdBack(read)
  if (isLoneVoter(state)) return answerRead(state, read, state.log.commit)
  state.reads.add(read, state.log.commit)
}

/** The first entry of the term has been committed. */
export function releaseReads(state: State): void {
  for (const read of state.reads.takeHeldBack()) {
    if (isLoneVoter(state)) answerRead(state, read, state.log.commit)
    else state.reads.add(read, state.log.commit)
  }
}

const isLoneVoter = (state: State): boolean => state.membership.voters.length === 1 && isVoter(state, state.id)

/** After an answered heartbeat or a smaller quorum. */
export function confirmReads(state: State): void {
  if (state.reads.lastRound === 0) return
  const answered: number[] = []
  for (const progress of state.progress.values()) {
    if (progress.voter) answered.push(progress.member === state.id ? Infinity : progress.readRound)
  }
  for (const read of state.reads.confirm(answered)) answerRead(state, read, read.index)
}

function answerRead(state: State, read: PendingRead, index: Index): void {
  if (read.from === state.id) {
    state.readStates.push({ id: read.id, index })
    return
  }
  const { id: from, term } = state
  state.sendNow.push({ type: 'readIndexResponse', from, to: read.from, term, readId: read.id, index })
}

/** The leader's answer. Only a read still waiting takes it: doubles and answers of an earlier leader find none. */
export function finishRead(state: State, message: MessageOf<'readIndexResponse'>): void {
  if (message.from !== state.leader || !state.forwardedReads.delete(message.readId)) return
  state.readStates.push({ id: message.readId, index: message.index })
}
