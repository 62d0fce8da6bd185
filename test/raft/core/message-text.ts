import { decodeConfChange } from '../../../raft/core/index.ts'
import type { Entry, Message, Ready } from '../../../raft/types.ts'

const decoder = new TextDecoder()

export function entryText(entry: Entry): string {
  const place = entry.index === 0 ? '' : `${entry.index}/${entry.term} `
  if (entry.type === 'normal') return `${place}"${decoder.decode(entry.data)}"`
  const change = decodeConfChange(entry.data)
  return `${place}${change === undefined ? 'unknown change' : `${change.type} ${change.member}`}`
}

export const entriesText = (entries: readonly Entry[]): string => entries.map(entryText).join(', ')

function details(message: Message): string {
  switch (message.type) {
    case 'propose':
      return ` [${entriesText(message.entries)}]`
    case 'append': {
      const entries = message.entries.length === 0 ? '' : ` [${entriesText(message.entries)}]`
      return ` after=${message.previousIndex}/${message.previousTerm} commit=${message.commit}${entries}`
    }
    case 'appendResponse':
      if (!message.reject) return ` index=${message.index}`
      return ` rejected index=${message.index} hint=${message.hintIndex}/${message.hintTerm}`
    case 'preVote':
    case 'vote':
      return ` last=${message.lastIndex}/${message.lastTerm}${message.transfer ? ' transfer' : ''}`
    case 'preVoteResponse':
    case 'voteResponse':
      return message.reject ? ' rejected' : ' granted'
    case 'heartbeat':
    case 'heartbeatResponse':
      return ` commit=${message.commit}${message.readId === 0n ? '' : ` round=${message.readId}`}`
    case 'snapshot':
      return ` index=${message.snapshot.index}/${message.snapshot.term} voters=(${message.snapshot.membership.voters.join(' ')})`
    case 'readIndex':
      return ` id=${message.readId}`
    case 'readIndexResponse':
      return ` id=${message.readId} index=${message.index}`
    case 'timeoutNow':
      return ''
    case 'transferLeader':
      return ` to=${message.transferee}`
  }
}

export const messageText = (message: Message): string =>
  `${message.from}->${message.to} ${message.type} term=${message.term}${details(message)}`

/** What a Ready asks the driver to do beside sending; empty when nothing. */
export function readyText(ready: Ready): string {
  const parts: string[] = []
  if (ready.hardState !== undefined) {
    const { term, vote, commit } = ready.hardState
    parts.push(`hardState term=${term} vote=${vote} commit=${commit}`)
  }
  if (ready.snapshot !== undefined) parts.push(`install snapshot ${ready.snapshot.index}/${ready.snapshot.term}`)
  if (ready.entries.length > 0) parts.push(`persist [${entriesText(ready.entries)}]`)
  if (ready.committed.length > 0) parts.push(`apply [${entriesText(ready.committed)}]`)
  for (const read of ready.readStates) parts.push(`read id=${read.id} index=${read.index}`)
  return parts.join('; ')
}
