import { createRaftCore } from '../../../raft/core/index.ts'
import type { RaftCoreOptions } from '../../../raft/core/index.ts'
import type { Entry, Message, MessageType, RaftCore, Ready } from '../../../raft/types.ts'

export const entry = (index: number, term: number, data = ''): Entry => ({
  index,
  term,
  type: 'normal',
  data: new TextEncoder().encode(data),
})

/** A core without neighbours: tests speak for them. Three voters 1, 2, 3, and it is 1. */
export function lonelyCore(options: Partial<RaftCoreOptions> = {}): RaftCore {
  return createRaftCore({
    id: 1n,
    membership: { voters: [1n, 2n, 3n], learners: [] },
    hardState: { term: 0, vote: 0n, commit: 0 },
    log: { snapshot: { index: 0, term: 0 }, entries: [] },
    applied: 0,
    electionTimeoutTicks: 10,
    heartbeatTicks: 1,
    random: () => 0,
    preVote: false,
    checkQuorum: false,
    ...options,
  })
}

/** What a driver does with one Ready, without sending anything. */
export function drain(core: RaftCore): Ready {
  const ready = core.ready()
  let { applied } = core.status()
  if (ready.snapshot !== undefined) applied = ready.snapshot.index
  applied = ready.committed.at(-1)?.index ?? applied
  const last = ready.entries.at(-1) ?? ready.snapshot ?? { index: 0, term: 0 }
  core.advance({ through: last.index, term: last.term }, applied)
  return ready
}

export function drainAll(core: RaftCore): readonly Ready[] {
  const all: Ready[] = []
  while (core.hasReady()) all.push(drain(core))
  return all
}

export const messagesOf = (ready: Ready): readonly Message[] => [...ready.sendNow, ...ready.sendAfterPersist]

export const sentOf = (core: RaftCore, type: MessageType): readonly Message[] =>
  drainAll(core)
    .flatMap(messagesOf)
    .filter((message) => message.type === type)

export const voteFrom = (sender: bigint, term: number, last: { index: number; term: number }): Message => ({
  type: 'vote',
  from: sender,
  to: 1n,
  term,
  lastIndex: last.index,
  lastTerm: last.term,
  transfer: false,
  commit: 0,
  commitTerm: 0,
})

export const grantFrom = (sender: bigint, term: number): Message => ({
  type: 'voteResponse',
  from: sender,
  to: 1n,
  term,
  reject: false,
  commit: 0,
  commitTerm: 0,
})

export const acceptFrom = (sender: bigint, term: number, index: number): Message => ({
  type: 'appendResponse',
  from: sender,
  to: 1n,
  term,
  index,
  reject: false,
  hintIndex: 0,
  hintTerm: 0,
})

export const appendFrom = (
  sender: bigint,
  term: number,
  after: { index: number; term: number },
  entries: readonly Entry[],
  commit = 0,
): Message => ({
  type: 'append',
  from: sender,
  to: 1n,
  term,
  previousIndex: after.index,
  previousTerm: after.term,
  entries,
  commit,
})

/** Member 1 leads term 1 (or the next), its empty entry not yet answered by anybody. */
export function leadingCore(options: Partial<RaftCoreOptions> = {}): RaftCore {
  const core = lonelyCore(options)
  core.campaign()
  drainAll(core)
  core.step(grantFrom(2n, core.status().term))
  drainAll(core)
  return core
}
