// Bugs that systems of this kind have had and that concern the core alone. B38, B39 and B40 are also told as scripts:
// testdata/membership_unaware_voter.txt, membership_hidden_commit.txt, lost_log.txt.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { CoreEvent } from '../../../raft/core/index.ts'
import type { Index, Message, RaftCore } from '../../../raft/types.ts'
import {
  acceptFrom,
  appendFrom,
  drain,
  drainAll,
  entry,
  leadingCore,
  lonelyCore,
  messagesOf,
  sentOf,
  voteFrom,
} from './lonely-core.ts'

const reads = (core: RaftCore): readonly { readonly id: bigint; readonly index: Index }[] =>
  drainAll(core).flatMap((ready) => ready.readStates)

const heartbeatAnswer = (from: bigint, term: number, readId: bigint): Message => ({
  type: 'heartbeatResponse',
  from,
  to: 1n,
  term,
  commit: 0,
  readId,
})

/** The round that the core's heartbeats now carry. */
function round(core: RaftCore): bigint {
  const [heartbeat] = sentOf(core, 'heartbeat')
  assert.ok(heartbeat?.type === 'heartbeat')
  return heartbeat.readId
}

test('B24: one member alone commits only what its own disk has', () => {
  const core = lonelyCore({ membership: { voters: [1n], learners: [] } })
  core.campaign()
  drain(core)
  core.propose(new Uint8Array([1]))
  const ready = core.ready()
  assert.deepEqual(ready.committed, [])
  assert.equal(core.status().commit, 0)
  core.advance({ through: 2, term: 1 }, 0)
  assert.equal(core.status().commit, 2)
  assert.equal(drain(core).committed.length, 2)
})

test('B36: a read waits for the first commit of the term', () => {
  const core = leadingCore()
  core.readIndex(7n)
  assert.deepEqual(sentOf(core, 'heartbeat'), [], 'no round before the commit index can be trusted')
  core.tick()
  core.step(heartbeatAnswer(2n, 1, round(core)))
  assert.deepEqual(reads(core), [])
  core.step(acceptFrom(2n, 1, 1))
  core.step(heartbeatAnswer(2n, 1, round(core)))
  assert.deepEqual(reads(core), [{ id: 7n, index: 1 }])
})

test('B37: doubled and late answers to an earlier round never confirm a later read', () => {
  const core = leadingCore()
  core.step(acceptFrom(2n, 1, 1))
  drainAll(core)
  core.readIndex(7n)
  const first = round(core)
  core.readIndex(8n)
  const second = round(core)
  assert.notEqual(first, second)
  for (const from of [2n, 3n, 2n, 3n]) core.step(heartbeatAnswer(from, 1, first))
  assert.deepEqual(reads(core), [{ id: 7n, index: 1 }])
  core.step(heartbeatAnswer(2n, 1, second + 1n))
  assert.deepEqual(reads(core), [], 'a round that was never sent proves nothing')
  core.step(heartbeatAnswer(2n, 1, second))
  assert.deepEqual(reads(core), [{ id: 8n, index: 1 }])
})

test('B37: rounds of an earlier leadership of the same member are not those of a later one', () => {
  const core = leadingCore()
  core.step(acceptFrom(2n, 1, 1))
  core.readIndex(7n)
  const old = round(core)
  core.step(appendFrom(2n, 2, { index: 1, term: 1 }, []))
  assert.deepEqual(reads(core), [{ id: 7n, index: -1 }])
  core.campaign()
  drainAll(core)
  core.step({ type: 'voteResponse', from: 2n, to: 1n, term: 3, reject: false, commit: 0, commitTerm: 0 })
  drainAll(core)
  core.step(acceptFrom(2n, 3, 2))
  core.readIndex(7n)
  assert.ok(round(core) > old)
})

test('a learner and a stranger do not count for a read', () => {
  const core = leadingCore({ membership: { voters: [1n, 2n, 3n], learners: [4n] } })
  core.step(acceptFrom(2n, 1, 1))
  drainAll(core)
  core.readIndex(7n)
  const now = round(core)
  core.step(heartbeatAnswer(4n, 1, now))
  core.step(heartbeatAnswer(9n, 1, now))
  assert.deepEqual(reads(core), [])
})

test('B38: a learner, and a member not in its own membership, vote on request', () => {
  for (const membership of [
    { voters: [2n, 3n], learners: [1n] },
    { voters: [2n, 3n], learners: [] },
  ]) {
    const core = lonelyCore({ membership })
    core.step(voteFrom(9n, 1, { index: 0, term: 0 }))
    const [answer] = drain(core).sendAfterPersist
    assert.equal(answer?.type === 'voteResponse' && !answer.reject, true)
  }
})

test('B39: a vote request tells what is committed, if the logs agree there', () => {
  const log = { snapshot: { index: 0, term: 0 }, entries: [entry(1, 1), entry(2, 1), entry(3, 2)] }
  const hardState = { term: 2, vote: 0n, commit: 1 }
  const ask = (commit: Index, commitTerm: number): Index => {
    const core = lonelyCore({ log, hardState, applied: 1 })
    core.step({ ...voteFrom(2n, 3, { index: 2, term: 1 }), commit, commitTerm } as Message)
    return core.status().commit
  }
  assert.equal(ask(2, 1), 2)
  assert.equal(ask(3, 1), 1, 'another entry stands there')
  assert.equal(ask(9, 2), 1, 'beyond our log')
})

test('B40: a member that is told to commit what it acknowledged and lost falls silent', () => {
  const events: CoreEvent[] = []
  const core = lonelyCore({ onEvent: (event) => void events.push(event) })
  core.step({ type: 'heartbeat', from: 2n, to: 1n, term: 1, commit: 5, readId: 0n })
  assert.deepEqual(events.at(-1), { type: 'acknowledgedEntriesLost', commit: 5, lastIndex: 0 })
  core.step(voteFrom(3n, 2, { index: 9, term: 1 }))
  core.step(appendFrom(2n, 1, { index: 0, term: 0 }, [entry(1, 1)]))
  for (let i = 0; i < 30; i++) core.tick()
  assert.deepEqual(drainAll(core).flatMap(messagesOf), [])
})

test('B40: a leader does not probe in a loop a follower that refuses what it acknowledged', () => {
  const core = leadingCore()
  core.step(acceptFrom(2n, 1, 1))
  drainAll(core)
  core.reportUnreachable(2n)
  drainAll(core)
  for (let i = 0; i < 5; i++) {
    core.step({ type: 'appendResponse', from: 2n, to: 1n, term: 1, index: 1, reject: true, hintIndex: 0, hintTerm: 0 })
    assert.deepEqual(
      sentOf(core, 'append').filter(({ to }) => to === 2n),
      [],
    )
  }
})
