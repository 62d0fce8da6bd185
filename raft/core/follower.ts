import type { Entry, MemberId, Message } from '../types.ts'
import type { MessageOf } from './message-check.ts'
import { emit, setLeader } from './state.ts'
import type { State } from './state.ts'

/** The leader of our term has been heard. */
function hear(state: State, message: Message): void {
  state.electionElapsed = 0
  setLeader(state, message.from)
}

/** Raft paper, figure 2: AppendEntries. */
export function handleAppend(state: State, message: MessageOf<'append'>): void {
  hear(state, message)
  const { log } = state
  if (message.previousIndex < log.commit) {
    const term = log.termAt(message.previousIndex)
    if (term !== undefined && term !== message.previousTerm) {
      // A leader's log holds whatever is committed (section 5.4): this one is none.
      return emit(state, { type: 'committedConflict', from: message.from, index: message.previousIndex })
    }
    // A double or late one. What is committed is equal everywhere.
    return accept(state, message, log.commit)
  }
  if (log.termAt(message.previousIndex) !== message.previousTerm) return reject(state, message)
  const from = firstNew(state, message.entries)
  if (from < message.entries.length) {
    const { index } = message.entries[from]!
    if (index <= log.lastIndex) log.truncate(index)
    for (let i = from; i < message.entries.length; i++) log.append(message.entries[i]!)
  }
  const lastNew = message.previousIndex + message.entries.length
  log.commitTo(Math.min(message.commit, lastNew))
  accept(state, message, lastNew)
}

/**
 * Position of the first entry that we lack or hold with another term. What is there already stays: an old, shorter
 * append must not cut off later entries (section 5.3).
 */
function firstNew(state: State, entries: readonly Entry[]): number {
  let i = 0
  while (i < entries.length && state.log.termAt(entries[i]!.index) === entries[i]!.term) i++
  return i
}

function accept(state: State, message: Message, index: number): void {
  answer(state, message.from, { index, reject: false, hintIndex: 0, hintTerm: 0 })
}

/** The hint lets the leader skip whole terms instead of probing entry by entry (section 5.3, last paragraph). */
function reject(state: State, message: MessageOf<'append'>): void {
  const hint = state.log.matchHint(message.previousIndex, message.previousTerm)
  answer(state, message.from, {
    index: message.previousIndex,
    reject: true,
    hintIndex: hint.index,
    hintTerm: hint.term,
  })
}

type Answer = Pick<MessageOf<'appendResponse'>, 'index' | 'reject' | 'hintIndex' | 'hintTerm'>

function answer(state: State, to: MemberId, { index, reject, hintIndex, hintTerm }: Answer): void {
  const { id: from, term } = state
  state.sendAfterPersist.push({ type: 'appendResponse', from, to, term, index, reject, hintIndex, hintTerm })
}

/** To a leader of an older term: our term in any answer makes it step down, so that we can take part again. */
export function answerOldLeader(state: State, message: Message): void {
  accept(state, message, 0)
}

export function handleHeartbeat(state: State, message: MessageOf<'heartbeat'>): void {
  hear(state, message)
  const { log } = state
  if (message.commit > log.lastIndex) {
    // The leader sends at most what we acknowledged in this term, and that is never overwritten in it: our disk lost
    // it. Catching up silently would hide that a majority may no longer hold what was promised.
    state.refusing = true
    state.sendAfterPersist = []
    state.sendNow = []
    emit(state, { type: 'acknowledgedEntriesLost', commit: message.commit, lastIndex: log.lastIndex })
    return
  }
  log.commitTo(message.commit)
  state.sendNow.push({
    type: 'heartbeatResponse',
    from: state.id,
    to: message.from,
    term: state.term,
    commit: log.commit,
    readId: message.readId,
  })
}

/** The state itself has been staged by the driver before this message is stepped. */
export function handleSnapshot(state: State, message: MessageOf<'snapshot'>): void {
  hear(state, message)
  const { log } = state
  const { snapshot } = message
  const { index, term } = snapshot
  const known = [...snapshot.membership.voters, ...snapshot.membership.learners]
  if (index <= log.commit || !known.includes(state.id)) {
    emit(state, { type: 'snapshotIgnored', index, term })
    return accept(state, message, log.commit)
  }
  if (log.termAt(index) === term) {
    // We hold these entries: nothing to install, only to learn that they are committed.
    log.commitTo(index)
    emit(state, { type: 'snapshotIgnored', index, term })
    return accept(state, message, index)
  }
  // Its membership comes into force when it is installed, in advance(): entries handed out earlier may still be applied.
  log.restore(snapshot)
  emit(state, { type: 'snapshotRestored', index, term })
  accept(state, message, index)
}
