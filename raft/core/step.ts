import { NOBODY } from '../types.ts'
import type { Message } from '../types.ts'
import { answerVoteRequest, campaign, countVote, learnCommit, refusePreVote } from './election.ts'
import { answerOldLeader, handleAppend, handleHeartbeat, handleSnapshot } from './follower.ts'
import { isWellFormed } from './message-check.ts'
import type { MessageOf } from './message-check.ts'
import { handleProposal } from './proposal.ts'
import { finishRead, startRead } from './reads.ts'
import { handleAppendResponse, handleHeartbeatResponse, startTransfer } from './replication.ts'
import { becomeFollower, emit } from './state.ts'
import type { State } from './state.ts'

/** What only a leader sends. */
type LeaderMessage = MessageOf<'append' | 'heartbeat' | 'snapshot'>

export function step(state: State, message: Message): void {
  if (state.refusing || message.to !== state.id || !isWellFormed(message)) return
  if (isElectionMessage(message)) learnCommit(state, message)
  // Requests to whoever leads carry no claim about terms.
  if (isRequest(message) || meetTerms(state, message)) dispatch(state, message)
}

const isRequest = ({ type }: Message): boolean =>
  type === 'propose' || type === 'readIndex' || type === 'transferLeader'

const isElectionMessage = (message: Message): message is MessageOf<'vote' | 'voteResponse'> =>
  message.type === 'preVote' ||
  message.type === 'vote' ||
  message.type === 'preVoteResponse' ||
  message.type === 'voteResponse'

/** Raft paper, section 5.1: adopts a higher term, turns away a lower one. False = the message is done with. */
function meetTerms(state: State, message: Message): boolean {
  if (message.term === state.term) return true
  if (message.term < state.term) {
    // Silence would leave both stuck: the sender leads a minority or cannot reach us, and our higher term comes from
    // standing alone. Told our term, it steps down or follows, and an election settles it.
    if (isLeaderMessage(message)) answerOldLeader(state, message)
    else if (message.type === 'preVote') refusePreVote(state, message.from)
    return false
  }
  if (message.type === 'preVote' || message.type === 'vote') {
    if (leaseHolds(state, message)) return false
    // A pre-vote only asks.
    if (message.type === 'preVote') return true
  }
  // A granted pre-vote answers with the term we asked for, which nobody has begun yet.
  if (message.type === 'preVoteResponse' && !message.reject) return true
  const { role, electionElapsed } = state
  becomeFollower(state, message.term, isLeaderMessage(message) ? message.from : NOBODY)
  // Only a granted vote restarts a follower's timer (figure 2, rules for servers): members whose logs cannot win must
  // not keep the one that can from standing.
  if (message.type === 'vote' && role === 'follower') state.electionElapsed = electionElapsed
  return true
}

const isLeaderMessage = (message: Message): message is LeaderMessage =>
  message.type === 'append' || message.type === 'heartbeat' || message.type === 'snapshot'

/**
 * Who has a leader it heard within the shortest election timeout does not help to unseat it (Raft thesis, section
 * 4.2.3), whether it follows or leads itself; a transfer is that leader's own wish.
 */
function leaseHolds(state: State, message: MessageOf<'preVote' | 'vote'>): boolean {
  const { checkQuorum, electionTimeoutTicks } = state.settings
  const holds =
    !message.transfer && checkQuorum && state.leader !== NOBODY && state.electionElapsed < electionTimeoutTicks
  if (holds) {
    const { type, from: candidate, term } = message
    emit(state, { type: 'voteIgnored', preVote: type === 'preVote', candidate, term })
  }
  return holds
}

function dispatch(state: State, message: Message): void {
  switch (message.type) {
    case 'append':
    case 'heartbeat':
    case 'snapshot':
      return followLeader(state, message)
    case 'preVote':
    case 'vote':
      return answerVoteRequest(state, message)
    case 'preVoteResponse':
    case 'voteResponse':
      return countVote(state, message)
    case 'appendResponse':
      if (state.role === 'leader') handleAppendResponse(state, message)
      return
    case 'heartbeatResponse':
      if (state.role === 'leader') handleHeartbeatResponse(state, message)
      return
    case 'readIndexResponse':
      return finishRead(state, message)
    case 'timeoutNow':
      // Whoever stands already needs no push.
      if (state.role === 'follower') campaign(state, { transfer: true })
      return
    case 'propose':
      return handleProposal(state, message.from, message.entries)
    case 'readIndex':
      if (state.role === 'leader') startRead(state, { from: message.from, id: message.readId })
      return
    case 'transferLeader':
      if (state.role === 'leader') startTransfer(state, message.transferee)
      return
  }
}

/** Somebody leads our term: a candidate gives up. Another leader of a term we lead ourselves cannot be. */
function followLeader(state: State, message: LeaderMessage): void {
  if (state.role === 'leader') return
  if (state.role !== 'follower') becomeFollower(state, state.term, message.from)
  if (message.type === 'append') handleAppend(state, message)
  else if (message.type === 'snapshot') handleSnapshot(state, message)
  else handleHeartbeat(state, message)
}
