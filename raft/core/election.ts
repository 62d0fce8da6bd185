import { NOBODY } from '../types.ts'
import type { MessageOf } from './message-check.ts'
import type { MemberId } from '../types.ts'
import { voteResult } from './quorum.ts'
import { becomeCandidate, becomeFollower, becomeLeader, becomePreCandidate, emit, isVoter } from './state.ts'
import type { State } from './state.ts'

type VoteRequest = MessageOf<'preVote' | 'vote'>
type VoteResponse = MessageOf<'preVoteResponse' | 'voteResponse'>

/** Why this member may not stand now; undefined = it may. */
function obstacle(state: State): 'notVoter' | 'snapshotPending' | 'membershipUnapplied' | undefined {
  if (!isVoter(state, state.id)) return 'notVoter'
  const { log } = state
  if (log.pendingSnapshot !== undefined) return 'snapshotPending'
  // A membership already decided but not yet in force here would be counted with the wrong quorum.
  for (let index = log.applied + 1; index <= log.commit; index++) {
    if (log.entryAt(index)?.type === 'confChange') return 'membershipUnapplied'
  }
  return undefined
}

export const canStand = (state: State): boolean => isVoter(state, state.id) && state.log.pendingSnapshot === undefined

export function campaign(state: State, options: { readonly transfer: boolean }): void {
  if (state.role === 'leader') return
  const reason = obstacle(state)
  if (reason !== undefined) {
    state.electionElapsed = 0
    return emit(state, { type: 'campaignRefused', reason })
  }
  // A transfer is the leader's own wish: nothing to find out first.
  if (state.settings.preVote && !options.transfer) standForPreVote(state)
  else standForVote(state, options)
}

function standForPreVote(state: State): void {
  becomePreCandidate(state)
  requestVotes(state, { type: 'preVote', term: state.term + 1, transfer: false })
  // A pre-vote binds nobody, so our own needs no disk.
  recordVote(state, state.id, true)
}

/** Our own vote is counted in countOwnVote, when it is on disk. */
function standForVote(state: State, { transfer }: { readonly transfer: boolean }): void {
  becomeCandidate(state)
  requestVotes(state, { type: 'vote', term: state.term, transfer })
}

function requestVotes(state: State, request: Pick<VoteRequest, 'type' | 'term' | 'transfer'>): void {
  const { log, id: from } = state
  for (const to of state.membership.voters) {
    if (to === from) continue
    state.sendAfterPersist.push({
      ...request,
      from,
      to,
      lastIndex: log.lastIndex,
      lastTerm: log.lastTerm,
      ...knownCommit(state),
    })
  }
}

const knownCommit = (state: State): Pick<VoteRequest, 'commit' | 'commitTerm'> => ({
  commit: state.log.commit,
  commitTerm: state.log.termAt(state.log.commit) ?? 0,
})

/** After advance(): the candidate's vote for itself counts like any other, once it cannot be forgotten. */
export function countOwnVote(state: State): void {
  if (state.role !== 'candidate' || state.persistedTerm !== state.term || state.persistedVote !== state.id) return
  recordVote(state, state.id, true)
}

function recordVote(state: State, member: MemberId, granted: boolean): void {
  if (!state.votes.has(member)) state.votes.set(member, granted)
  switch (voteResult(state.membership.voters, state.votes)) {
    case 'pending':
      return
    case 'lost':
      return becomeFollower(state, state.term, NOBODY)
    case 'won':
      return state.role === 'preCandidate' ? standForVote(state, { transfer: false }) : becomeLeader(state)
  }
}

/**
 * A member votes on request whatever its own view of the membership says, of itself and of the candidate: that view may
 * be behind, and the candidate's quorum be in need of it (etcd-io/etcd PR#10998).
 *
 * The caller has moved to the term of a `vote`; a `preVote` moves nobody.
 */
export function answerVoteRequest(state: State, message: VoteRequest): void {
  const preVote = message.type === 'preVote'
  // One vote per term (section 5.2), repeated if asked again; none beside a leader that is known.
  const free =
    state.vote === message.from ||
    (state.vote === NOBODY && state.leader === NOBODY) ||
    (preVote && message.term > state.term)
  const granted = free && state.log.isUpToDate(message.lastIndex, message.lastTerm)
  if (granted && !preVote) {
    state.vote = message.from
    state.electionElapsed = 0
  }
  emit(state, {
    type: granted ? 'voteGranted' : 'voteRejected',
    preVote,
    candidate: message.from,
    term: message.term,
  })
  state.sendAfterPersist.push({
    type: preVote ? 'preVoteResponse' : 'voteResponse',
    from: state.id,
    to: message.from,
    // A granted pre-vote speaks of the term to come; a refusal tells our own, which may end the candidacy.
    term: granted ? message.term : state.term,
    reject: !granted,
    ...knownCommit(state),
  })
}

export function refusePreVote(state: State, to: MemberId): void {
  const { id: from, term } = state
  state.sendAfterPersist.push({ type: 'preVoteResponse', from, to, term, reject: true, ...knownCommit(state) })
}

export function countVote(state: State, message: VoteResponse): void {
  if (message.type === 'preVoteResponse') {
    // A grant carries the term asked for; one for another term answers an earlier attempt.
    if (state.role !== 'preCandidate' || (!message.reject && message.term !== state.term + 1)) return
  } else if (state.role !== 'candidate') return
  recordVote(state, message.from, !message.reject)
}

/**
 * A peer knows entries through `commit` to be committed. If our log has the same entry there, they are the same
 * entries (Log Matching), so they are committed here too. Lets a committed membership change take effect at a member
 * that must vote or stand although no leader is left to announce it (etcd-io/etcd#12359).
 */
export function learnCommit(state: State, message: VoteRequest | VoteResponse): void {
  if (state.role === 'leader' || message.commit <= state.log.commit) return
  if (message.commitTerm === 0 || state.log.termAt(message.commit) !== message.commitTerm) return
  state.log.commitTo(message.commit)
}
