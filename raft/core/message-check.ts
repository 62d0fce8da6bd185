import { NOBODY } from '../types.ts'
import type { Entry, Message, MessageType } from '../types.ts'

type Holding<M, T> = M extends { readonly type: infer U } ? (T extends U ? M : never) : never
/** The member of the union that messages of type T have; kinds of equal shape share one. */
export type MessageOf<T extends MessageType> = T extends unknown ? Holding<Message, T> : never

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0

/** Terms never fall along a log, nor exceed the term of the leader that sends it. */
function areConsecutive(entries: readonly Entry[], previousIndex: number, previousTerm: number, term: number): boolean {
  let index = previousIndex
  let last = previousTerm
  for (const entry of entries) {
    if (entry.index !== ++index || entry.term < last || entry.term > term || !isCount(entry.term)) return false
    last = entry.term
  }
  return true
}

/** Whether a peer's message can have been made by the protocol. Others are ignored: no peer can break a core. */
export function isWellFormed(message: Message): boolean {
  if (message.from === NOBODY || message.from === message.to || !isCount(message.term)) return false
  switch (message.type) {
    case 'append':
      return (
        isCount(message.previousIndex) &&
        isCount(message.previousTerm) &&
        isCount(message.commit) &&
        areConsecutive(message.entries, message.previousIndex, message.previousTerm, message.term)
      )
    case 'appendResponse':
      return isCount(message.index) && isCount(message.hintIndex) && isCount(message.hintTerm)
    case 'preVote':
    case 'vote':
      return isCount(message.lastIndex) && isCount(message.lastTerm) && isCount(message.commit) && message.term > 0
    case 'heartbeat':
    case 'heartbeatResponse':
      return isCount(message.commit)
    case 'snapshot':
      return (
        isCount(message.snapshot.index) &&
        message.snapshot.index > 0 &&
        isCount(message.snapshot.term) &&
        message.snapshot.term <= message.term &&
        message.snapshot.membership.voters.length > 0
      )
    case 'readIndexResponse':
      return isCount(message.index)
    case 'preVoteResponse':
    case 'voteResponse':
    case 'propose':
    case 'readIndex':
    case 'timeoutNow':
    case 'transferLeader':
      return true
  }
}
