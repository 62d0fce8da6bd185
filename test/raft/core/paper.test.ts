// Statements of the Raft paper (Ongaro and Ousterhout, extended version) and thesis, one test each.
import assert from 'node:assert/strict'
import test from 'node:test'
import {
  acceptFrom,
  appendFrom,
  drain,
  drainAll,
  entry,
  grantFrom,
  leadingCore,
  lonelyCore,
  messagesOf,
  sentOf,
  voteFrom,
} from './lonely-core.ts'
import { randomSource } from './random-source.ts'

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

test('5.1: a server that sees a higher term becomes a follower of that term', () => {
  const core = leadingCore()
  core.step(appendFrom(2n, 5, { index: 0, term: 0 }, []))
  const { role, term, leader } = core.status()
  assert.deepEqual({ role, term, leader }, { role: 'follower', term: 5, leader: 2n })
})

test('5.1: an append of an older term changes nothing and is answered with the newer term', () => {
  const core = lonelyCore({ hardState: { term: 4, vote: 0n, commit: 0 } })
  core.step(appendFrom(2n, 3, { index: 0, term: 0 }, [entry(1, 3)]))
  assert.equal(core.status().lastIndex, 0)
  assert.deepEqual(
    sentOf(core, 'appendResponse').map(({ term }) => term),
    [4],
  )
})

test('5.2: a new server is a follower and stays one while it hears from a leader', () => {
  const core = lonelyCore()
  for (let i = 0; i < 50; i++) {
    core.tick()
    if (i % 9 === 0) core.step(appendFrom(2n, 1, { index: 0, term: 0 }, []))
    drainAll(core)
  }
  assert.equal(core.status().role, 'follower')
})

test('5.2: a candidate raises its term, votes for itself and asks all others', () => {
  const core = lonelyCore()
  core.campaign()
  const ready = drain(core)
  assert.deepEqual(ready.hardState, { term: 1, vote: 1n, commit: 0 })
  assert.ok(ready.mustSync)
  assert.deepEqual(ready.sendNow, [])
  assert.deepEqual(
    ready.sendAfterPersist.map(({ type, to, term }) => ({ type, to, term })),
    [
      { type: 'vote', to: 2n, term: 1 },
      { type: 'vote', to: 3n, term: 1 },
    ],
  )
})

test('5.2: at most one vote per term, first come first served, and remembered over a restart', () => {
  const core = lonelyCore()
  core.step(voteFrom(2n, 1, { index: 0, term: 0 }))
  const { hardState, mustSync } = drain(core)
  assert.deepEqual(hardState, { term: 1, vote: 2n, commit: 0 })
  assert.ok(mustSync)
  for (const member of [core, lonelyCore({ hardState })]) {
    member.step(voteFrom(3n, 1, { index: 0, term: 0 }))
    member.step(voteFrom(2n, 1, { index: 0, term: 0 }))
    const answers = drainAll(member).flatMap(messagesOf)
    assert.deepEqual(
      answers.map((answer) => [answer.to, answer.type === 'voteResponse' && answer.reject]),
      [
        [3n, true],
        [2n, false],
      ],
    )
  }
})

test('5.2: votes leave only after fsync', () => {
  const core = lonelyCore()
  core.step(voteFrom(2n, 1, { index: 0, term: 0 }))
  const ready = core.ready()
  assert.deepEqual(ready.sendNow, [])
  assert.equal(ready.sendAfterPersist.length, 1)
})

test('5.2: a candidate that hears of a leader of its term follows it', () => {
  const core = lonelyCore()
  core.campaign()
  drainAll(core)
  core.step(appendFrom(2n, 1, { index: 0, term: 0 }, [entry(1, 1)]))
  assert.equal(core.status().role, 'follower')
  assert.equal(core.status().leader, 2n)
})

test('5.2: a split vote leads to a new election at the next term', () => {
  const core = lonelyCore()
  core.campaign()
  drainAll(core)
  for (let i = 0; i < 20; i++) core.tick()
  assert.equal(core.status().role, 'candidate')
  assert.ok(core.status().term > 1)
})

test('5.2: election timeouts are drawn from [timeout, 2 * timeout) and all occur', () => {
  const random = randomSource(1)
  const seen = new Set<number>()
  for (let run = 0; run < 300; run++) {
    const core = lonelyCore({ random })
    let ticks = 0
    while (core.status().role === 'follower') {
      core.tick()
      ticks++
    }
    seen.add(ticks)
  }
  assert.deepEqual(
    [...seen].sort((a, b) => a - b),
    [10, 11, 12, 13, 14, 15, 16, 17, 18, 19],
  )
})

test('5.3: an entry is committed when a majority has it on disk, the leader itself counting only after its fsync', () => {
  const core = leadingCore()
  core.step(acceptFrom(2n, 1, 1))
  assert.equal(core.status().commit, 1)
  drainAll(core)
  core.propose(encode('a'))
  const ready = core.ready()
  assert.equal(ready.sendNow.length, 1)
  assert.equal(core.status().commit, 1)
  core.step(acceptFrom(2n, 1, 2))
  assert.equal(core.status().commit, 1, 'one follower and an unwritten leader are no majority')
  core.advance({ through: 2, term: 1 }, 1)
  assert.equal(core.status().commit, 2)
})

test('5.3: entries are applied in log order, each once', () => {
  const core = leadingCore()
  for (let i = 0; i < 5; i++) core.propose(encode(`${i}`))
  drainAll(core)
  core.step(acceptFrom(3n, 1, 6))
  assert.deepEqual(
    drainAll(core).flatMap(({ committed }) => committed.map(({ index }) => index)),
    [1, 2, 3, 4, 5, 6],
  )
})

test('5.3: an append whose previous entry does not match is refused with a hint at where logs may meet', () => {
  const entries = [entry(1, 1), entry(2, 2), entry(3, 2), entry(4, 4)]
  const core = lonelyCore({
    hardState: { term: 5, vote: 0n, commit: 1 },
    log: { snapshot: { index: 0, term: 0 }, entries },
    applied: 1,
  })
  core.step(appendFrom(2n, 5, { index: 4, term: 3 }, []))
  const [answer] = sentOf(core, 'appendResponse')
  assert.ok(answer?.type === 'appendResponse')
  assert.deepEqual([answer.reject, answer.index, answer.hintIndex, answer.hintTerm], [true, 4, 3, 2])
})

test('5.3: a conflicting suffix is removed, matching entries stay', () => {
  const entries = [entry(1, 1), entry(2, 1, 'x'), entry(3, 1, 'y')]
  const core = lonelyCore({
    hardState: { term: 1, vote: 0n, commit: 1 },
    log: { snapshot: { index: 0, term: 0 }, entries },
    applied: 1,
  })
  core.step(appendFrom(2n, 2, { index: 1, term: 1 }, [entry(2, 1, 'x'), entry(3, 2, 'z')]))
  const [ready] = drainAll(core)
  assert.deepEqual(
    ready?.entries.map(({ index, term }) => [index, term]),
    [[3, 2]],
  )
})

test('5.3: an old, shorter append does not cut off later entries', () => {
  const core = lonelyCore()
  core.step(appendFrom(2n, 1, { index: 0, term: 0 }, [entry(1, 1), entry(2, 1), entry(3, 1)]))
  drainAll(core)
  core.step(appendFrom(2n, 1, { index: 0, term: 0 }, [entry(1, 1)]))
  assert.equal(core.status().lastIndex, 3)
})

test('5.3: append answers leave only after fsync, appends before', () => {
  const follower = lonelyCore()
  follower.step(appendFrom(2n, 1, { index: 0, term: 0 }, [entry(1, 1)], 1))
  const ready = follower.ready()
  assert.deepEqual(ready.sendNow, [])
  assert.equal(ready.sendAfterPersist.length, 1)
  assert.deepEqual(ready.committed, [], 'committed, but not yet on this disk')
  follower.advance({ through: 1, term: 1 }, 0)
  assert.deepEqual(
    drain(follower).committed.map(({ index }) => index),
    [1],
  )
})

test('5.4.1: a vote goes only to a log at least as up-to-date: later last term, or same term and not shorter', () => {
  const entries = [entry(1, 1), entry(2, 2), entry(3, 2)]
  const cases = [
    { last: { index: 3, term: 2 }, granted: true },
    { last: { index: 4, term: 2 }, granted: true },
    { last: { index: 1, term: 3 }, granted: true },
    { last: { index: 2, term: 2 }, granted: false },
    { last: { index: 9, term: 1 }, granted: false },
  ]
  for (const { last, granted } of cases) {
    const core = lonelyCore({
      hardState: { term: 2, vote: 0n, commit: 0 },
      log: { snapshot: { index: 0, term: 0 }, entries },
    })
    core.step(voteFrom(2n, 3, last))
    const [answer] = sentOf(core, 'voteResponse')
    assert.equal(answer?.type === 'voteResponse' && !answer.reject, granted, JSON.stringify(last))
  }
})

test('5.4.2 and figure 8: an entry of an earlier term is not committed by counting, only by one of the own term', () => {
  const core = leadingCore({
    hardState: { term: 2, vote: 0n, commit: 0 },
    log: { snapshot: { index: 0, term: 0 }, entries: [entry(1, 1), entry(2, 2)] },
  })
  assert.equal(core.status().term, 3)
  core.step(acceptFrom(2n, 3, 2))
  assert.equal(core.status().commit, 0, 'a majority has entry 2 of term 2')
  core.step(acceptFrom(2n, 3, 3))
  assert.equal(core.status().commit, 3)
})

test('8: a new leader appends an empty entry of its term', () => {
  const core = lonelyCore()
  core.campaign()
  drainAll(core)
  core.step(grantFrom(3n, 1))
  assert.deepEqual(drain(core).entries, [{ index: 1, term: 1, type: 'normal', data: new Uint8Array(0) }])
})

test('thesis 4.1: a second membership change waits until the first is applied, and both for the first commit of the term', () => {
  const core = leadingCore()
  assert.equal(core.proposeConfChange({ type: 'addLearner', member: 4n }), 'pending')
  core.step(acceptFrom(2n, 1, 1))
  drainAll(core)
  assert.equal(core.proposeConfChange({ type: 'addLearner', member: 4n }), 'accepted')
  assert.equal(core.proposeConfChange({ type: 'addLearner', member: 5n }), 'pending')
  drainAll(core)
  core.step(acceptFrom(2n, 1, 2))
  assert.equal(core.proposeConfChange({ type: 'addLearner', member: 5n }), 'pending', 'committed is not applied')
  drainAll(core)
  assert.equal(core.proposeConfChange({ type: 'addLearner', member: 5n }), 'accepted')
})

test('thesis 9.6: a pre-vote raises no term and binds nobody', () => {
  const core = lonelyCore({ preVote: true })
  core.step({ ...voteFrom(2n, 1, { index: 0, term: 0 }), type: 'preVote' } as never)
  core.step({ ...voteFrom(3n, 1, { index: 0, term: 0 }), type: 'preVote' } as never)
  const ready = drain(core)
  assert.equal(ready.hardState, undefined)
  assert.deepEqual(
    ready.sendAfterPersist.map((message) => message.type === 'preVoteResponse' && message.reject),
    [false, false],
  )
})
