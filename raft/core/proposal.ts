import { NOBODY } from '../types.ts'
import type { Entry, MemberId, Message } from '../types.ts'
import { entryOverheadBytes } from './limits.ts'
import { entryBytes } from './log.ts'
import { canAppend } from './replication.ts'
import { appendToOwnLog, emit } from './state.ts'
import type { State } from './state.ts'

type Outcome = 'accepted' | 'noLeader' | 'overloaded' | 'pending'

export function proposeHere(state: State, type: Entry['type'], data: Uint8Array): Outcome {
  if (state.refusing) return 'noLeader'
  if (state.role === 'leader') return proposeAsLeader(state, type, data)
  return state.leader === NOBODY ? 'noLeader' : forward(state, { index: 0, term: 0, type, data })
}

function proposeAsLeader(state: State, type: Entry['type'], data: Uint8Array): Outcome {
  // Leadership is on its way to another: a new entry would keep it from ever being up to date.
  if (state.transferee !== NOBODY) return 'noLeader'
  // One membership change at a time, each applied before the next (Raft thesis, section 4.1).
  if (type === 'confChange' && state.pendingConfIndex > state.log.applied) return 'pending'
  if (!canAppend(state, data.byteLength + entryOverheadBytes)) return 'overloaded'
  appendToOwnLog(state, type, data)
  if (type === 'confChange') state.pendingConfIndex = state.log.lastIndex
  return 'accepted'
}

/** Whether it commits is for the proposer to see when it is applied: a forwarded proposal may get lost. */
function forward(state: State, entry: Entry): Outcome {
  const bytes = entryBytes(entry)
  if (state.forwardedBytes > 0 && state.forwardedBytes + bytes > state.settings.limits.uncommittedBytesMax) {
    return 'overloaded'
  }
  state.forwarded.push(entry)
  state.forwardedBytes += bytes
  return 'accepted'
}

/** Into as few messages as the bound allows; lost when the leader has been lost meanwhile. */
export function flushForwarded(state: State): void {
  const { forwarded, leader } = state
  state.forwarded = []
  state.forwardedBytes = 0
  if (state.role === 'leader') return handleProposal(state, state.id, forwarded)
  if (leader === NOBODY) return emit(state, { type: 'proposalDropped', from: state.id, reason: 'noLeader' })
  let entries: Entry[] = []
  let bytes = 0
  for (const entry of forwarded) {
    bytes += entryBytes(entry)
    if (entries.length > 0 && bytes > state.settings.limits.appendBytesMax) {
      sendProposal(state, leader, entries)
      entries = []
      bytes = entryBytes(entry)
    }
    entries.push(entry)
  }
  sendProposal(state, leader, entries)
}

function sendProposal(state: State, to: MemberId, entries: readonly Entry[]): void {
  const message: Message = { type: 'propose', from: state.id, to, term: state.term, entries }
  state.sendNow.push(message)
}

/** Entries of a follower, at the leader. There is no answer for those refused: the follower sees that they never come. */
export function handleProposal(state: State, from: MemberId, entries: readonly Entry[]): void {
  for (const { type, data } of entries) {
    const outcome = state.role === 'leader' ? proposeAsLeader(state, type, data) : 'noLeader'
    if (outcome !== 'accepted') emit(state, { type: 'proposalDropped', from, reason: outcome })
  }
}
