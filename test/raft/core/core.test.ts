import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { decodeConfChange, describeEvent, encodeConfChange } from '../../../raft/core/index.ts'
import type { CoreEvent } from '../../../raft/core/index.ts'
import type { ConfChange, Message } from '../../../raft/types.ts'
import {
  acceptFrom,
  appendFrom,
  drain,
  drainAll,
  entry,
  grantFrom,
  leadingCore,
  lonelyCore,
  voteFrom,
} from './lonely-core.ts'

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

test('the write of overwritten entries, reported late, counts for nothing that replaced them', () => {
  const core = lonelyCore()
  core.step(appendFrom(2n, 1, { index: 0, term: 0 }, [entry(1, 1), entry(2, 1), entry(3, 1)]))
  core.ready()
  core.step(appendFrom(3n, 2, { index: 1, term: 1 }, [entry(2, 2), entry(3, 2)], 3))
  core.advance({ through: 3, term: 1 }, 0)
  const ready = core.ready()
  assert.deepEqual(
    ready.committed.map(({ index }) => index),
    [1],
    'only entry 1 of the first write survives',
  )
  assert.deepEqual(
    ready.entries.map(({ index, term }) => [index, term]),
    [
      [2, 2],
      [3, 2],
    ],
  )
})

test('one Ready is outstanding at a time; what is proposed meanwhile comes in the next', () => {
  const core = leadingCore()
  core.propose(encode('a'))
  core.ready()
  core.propose(encode('b'))
  assert.equal(core.hasReady(), false)
  assert.throws(() => core.ready(), /outstanding/)
  core.advance({ through: 2, term: 1 }, 0)
  assert.deepEqual(
    drain(core).entries.map(({ index }) => index),
    [3],
  )
})

test('proposals of one Ready share an append message, bounded in bytes', () => {
  const core = leadingCore({ limits: { appendBytesMax: 100 } })
  core.step(acceptFrom(2n, 1, 1))
  drainAll(core)
  for (let i = 0; i < 6; i++) core.propose(encode('0123456789'))
  const sizes = drain(core)
    .sendNow.filter((m) => m.to === 2n)
    .map((m) => (m.type === 'append' ? m.entries.length : -1))
  assert.deepEqual(sizes, [2, 2, 2])
})

test('uncommitted bytes are counted down by commits and counted anew by a new leader', () => {
  const core = leadingCore({ limits: { uncommittedBytesMax: 200 } })
  assert.equal(core.propose(new Uint8Array(120)), 'accepted')
  assert.equal(core.propose(new Uint8Array(120)), 'overloaded')
  drainAll(core)
  core.step(acceptFrom(2n, 1, 2))
  assert.equal(core.propose(new Uint8Array(120)), 'accepted')
})

test('a commit index alone owes no fsync', () => {
  const core = lonelyCore()
  core.step(appendFrom(2n, 1, { index: 0, term: 0 }, [entry(1, 1)]))
  drainAll(core)
  core.step(appendFrom(2n, 1, { index: 1, term: 1 }, [], 1))
  const ready = drain(core)
  assert.equal(ready.hardState?.commit, 1)
  assert.equal(ready.mustSync, false)
})

test('a core does not start on parts that do not belong together', () => {
  const log = (entries: ReturnType<typeof entry>[], index = 0) => ({
    snapshot: { index, term: index === 0 ? 0 : 1 },
    entries,
  })
  const hardState = { term: 1, vote: 0n, commit: 0 }
  assert.throws(() => lonelyCore({ hardState: { ...hardState, commit: 3 }, log: log([entry(1, 1)]) }), /log was lost/)
  assert.throws(() => lonelyCore({ hardState, log: log([entry(1, 1)]), applied: 2 }), /log was lost/)
  assert.throws(() => lonelyCore({ hardState, log: log([entry(1, 1), entry(3, 1)]) }), /gap/)
  assert.throws(() => lonelyCore({ hardState, log: log([], 5), applied: 2 }), /starts after/)
  assert.throws(() => lonelyCore({ hardState: { ...hardState, term: 0 }, log: log([entry(1, 1)]) }), /term/)
})

test('a state machine ahead of the written commit index is fine', () => {
  const core = lonelyCore({
    hardState: { term: 1, vote: 0n, commit: 0 },
    log: { snapshot: { index: 0, term: 0 }, entries: [entry(1, 1), entry(2, 1)] },
    applied: 2,
  })
  assert.equal(core.status().commit, 2)
  assert.deepEqual(drain(core).committed, [])
})

test('membership changes survive encoding, and unknown bytes are no change', () => {
  for (const type of ['addVoter', 'addLearner', 'remove'] as const) {
    const change: ConfChange = { type, member: 0xfedc_ba98_7654_3210n }
    assert.deepEqual(decodeConfChange(encodeConfChange(change)), change)
  }
  assert.equal(decodeConfChange(new Uint8Array(10)), undefined)
  assert.equal(decodeConfChange(new Uint8Array(3)), undefined)
})

test('the last voter cannot be removed, and a voter is not demoted', () => {
  const core = lonelyCore({ membership: { voters: [1n], learners: [2n] } })
  assert.deepEqual(core.applyConfChange({ type: 'remove', member: 1n }).voters, [1n])
  assert.deepEqual(core.applyConfChange({ type: 'addLearner', member: 1n }), { voters: [1n], learners: [2n] })
  assert.deepEqual(core.applyConfChange({ type: 'addVoter', member: 2n }), { voters: [1n, 2n], learners: [] })
})

test('a removal that shrinks the quorum commits what was waiting', () => {
  const core = leadingCore({ membership: { voters: [1n, 2n, 3n, 4n], learners: [] } })
  core.step(grantFrom(3n, 1))
  drainAll(core)
  core.step(acceptFrom(2n, 1, 1))
  assert.equal(core.status().commit, 0, '2 of 4')
  core.applyConfChange({ type: 'remove', member: 4n })
  assert.equal(core.status().commit, 1, '2 of 3')
})

test('an answer that claims more than the leader has is ignored', () => {
  const core = leadingCore()
  core.step(acceptFrom(2n, 1, 99))
  assert.equal(core.status().progress?.get(2n)?.match, 0)
})

test('an append that contradicts a committed entry is reported and ignored', () => {
  const events: CoreEvent[] = []
  const core = lonelyCore({ onEvent: (event) => void events.push(event) })
  core.step(appendFrom(2n, 1, { index: 0, term: 0 }, [entry(1, 1), entry(2, 1)], 2))
  drainAll(core)
  core.step(appendFrom(3n, 2, { index: 1, term: 2 }, [entry(2, 2)]))
  assert.deepEqual(events.at(-1), { type: 'committedConflict', from: 3n, index: 1 })
  assert.equal(core.status().lastTerm, 1)
})

test('events read as etcd operators know them', () => {
  const lines: string[] = []
  const core = leadingCore({ onEvent: (event) => void lines.push(describeEvent(event)) })
  core.step(appendFrom(2n, 2, { index: 0, term: 0 }, []))
  assert.deepEqual(lines, [
    'became candidate at term 1',
    'became leader at term 1',
    'elected leader 1 at term 1',
    'lost leader 1 at term 2',
    'became follower at term 2',
    'elected leader 2 at term 2',
  ])
})

const number = fc.oneof(fc.nat(6), fc.constantFrom(-1, 0.5, Number.NaN, 2 ** 53, Number.POSITIVE_INFINITY))
const member = fc.constantFrom(0n, 1n, 2n, 3n, 9n)
const garbageEntry = fc.record({
  index: number,
  term: number,
  type: fc.constantFrom('normal', 'confChange'),
  data: fc.uint8Array({ maxLength: 12 }),
})
const garbage = fc.record({
  type: fc.constantFrom(
    'propose',
    'append',
    'appendResponse',
    'preVote',
    'vote',
    'preVoteResponse',
    'voteResponse',
    'heartbeat',
    'heartbeatResponse',
    'snapshot',
    'readIndex',
    'readIndexResponse',
    'timeoutNow',
    'transferLeader',
  ),
  from: member,
  to: fc.constantFrom(1n, 1n, 1n, 2n),
  term: number,
  entries: fc.array(garbageEntry, { maxLength: 3 }),
  previousIndex: number,
  previousTerm: number,
  commit: number,
  commitTerm: number,
  index: number,
  reject: fc.boolean(),
  hintIndex: number,
  hintTerm: number,
  lastIndex: number,
  lastTerm: number,
  transfer: fc.boolean(),
  readId: fc.bigInt({ min: 0n, max: 5n }),
  transferee: member,
  snapshot: fc.record({ index: number, term: number, membership: fc.constant({ voters: [1n, 2n, 3n], learners: [] }) }),
})
const action = fc.oneof(
  { weight: 6, arbitrary: garbage.map((message) => ({ message: message as unknown as Message })) },
  { weight: 2, arbitrary: fc.constantFrom('tick' as const, 'drain' as const, 'propose' as const, 'campaign' as const) },
)

test('no message of a peer makes a core throw, and term and commit never fall', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), fc.boolean(), (actions, lead) => {
      const core = lead ? leadingCore() : lonelyCore({ preVote: true, checkQuorum: true })
      for (const next of actions) {
        const before = core.status()
        if (typeof next === 'object') core.step(next.message)
        else if (next === 'tick') core.tick()
        else if (next === 'campaign') core.campaign()
        else if (next === 'propose') core.propose(encode('x'))
        else drainAll(core)
        const after = core.status()
        assert.ok(after.term >= before.term && after.commit >= before.commit && after.commit <= after.lastIndex)
      }
      drainAll(core)
    }),
    { numRuns: 1_500 },
  )
})

test('a vote for itself counts only when the Ready that holds it is on disk, not an earlier one', () => {
  const core = lonelyCore({ membership: { voters: [1n], learners: [] } })
  core.step(voteFrom(9n, 1, { index: 0, term: 0 }))
  core.ready()
  core.campaign()
  core.advance({ through: 0, term: 0 }, 0)
  assert.equal(core.status().role, 'candidate')
  drain(core)
  assert.equal(core.status().role, 'leader')
})

test('a granted pre-vote for another term is none', () => {
  const core = lonelyCore({ preVote: true })
  core.campaign()
  core.step({ ...grantFrom(2n, 5), type: 'preVoteResponse' } as Message)
  assert.equal(core.status().role, 'preCandidate')
  core.step({ ...grantFrom(2n, 1), type: 'preVoteResponse' } as Message)
  assert.equal(core.status().role, 'candidate')
})

test('a follower commits no further than what the append has confirmed', () => {
  const entries = [entry(1, 1), entry(2, 1), entry(3, 1)]
  const core = lonelyCore({
    hardState: { term: 1, vote: 0n, commit: 0 },
    log: { snapshot: { index: 0, term: 0 }, entries },
  })
  core.step(appendFrom(2n, 2, { index: 1, term: 1 }, [], 3))
  assert.equal(core.status().commit, 1, 'entries 2 and 3 may differ at the leader')
})

test('nobody stands while a committed membership change is not applied', () => {
  const events: CoreEvent[] = []
  const change = {
    index: 1,
    term: 1,
    type: 'confChange',
    data: encodeConfChange({ type: 'addVoter', member: 4n }),
  } as const
  const core = lonelyCore({
    hardState: { term: 1, vote: 0n, commit: 1 },
    log: { snapshot: { index: 0, term: 0 }, entries: [change] },
    onEvent: (event) => void events.push(event),
  })
  core.campaign()
  assert.equal(core.status().role, 'follower')
  assert.deepEqual(events, [{ type: 'campaignRefused', reason: 'membershipUnapplied' }])
  drain(core)
  core.campaign()
  assert.equal(core.status().role, 'candidate')
})

test('a snapshot older than what is committed is refused with the commit index', () => {
  const core = lonelyCore()
  core.step(appendFrom(2n, 1, { index: 0, term: 0 }, [entry(1, 1), entry(2, 1), entry(3, 1)], 3))
  drainAll(core)
  core.compact(3)
  const membership = { voters: [1n, 2n, 3n], learners: [] }
  core.step({ type: 'snapshot', from: 2n, to: 1n, term: 1, snapshot: { index: 2, term: 1, membership } })
  const ready = drain(core)
  assert.equal(ready.snapshot, undefined)
  const [answer] = ready.sendAfterPersist
  assert.equal(answer?.type === 'appendResponse' && answer.index, 3)
})

test('a snapshot that makes whole uncommitted entries known is not installed', () => {
  const core = lonelyCore()
  core.step(appendFrom(2n, 1, { index: 0, term: 0 }, [entry(1, 1), entry(2, 1)]))
  drainAll(core)
  const membership = { voters: [1n, 2n, 3n], learners: [] }
  core.step({ type: 'snapshot', from: 2n, to: 1n, term: 1, snapshot: { index: 2, term: 1, membership } })
  const ready = drain(core)
  assert.equal(ready.snapshot, undefined)
  assert.deepEqual(
    ready.committed.map(({ index }) => index),
    [1, 2],
  )
})

test('reads beyond the bound are dropped, not queued', () => {
  const core = leadingCore({ limits: { pendingReadsMax: 2 } })
  for (const id of [1n, 2n, 3n]) core.readIndex(id)
  assert.deepEqual(
    drainAll(core).flatMap(({ readStates }) => readStates),
    [{ id: 3n, index: -1 }],
  )
})

test('a membership change applied late does not reach into the membership of a snapshot that came meanwhile', () => {
  const core = lonelyCore()
  const change: ConfChange = { type: 'addLearner', member: 4n }
  const added = { index: 1, term: 1, type: 'confChange', data: encodeConfChange(change) } as const
  core.step(appendFrom(2n, 1, { index: 0, term: 0 }, [added], 1))
  drain(core)
  assert.equal(core.ready().committed.length, 1)
  // The driver is still applying entry 1 when a snapshot arrives in which member 4 has been removed again.
  const membership = { voters: [1n, 2n, 3n], learners: [] }
  core.step({ type: 'snapshot', from: 2n, to: 1n, term: 1, snapshot: { index: 9, term: 1, membership } })
  assert.deepEqual(core.applyConfChange(change).learners, [4n])
  core.advance({ through: 0, term: 0 }, 1)
  assert.equal(drain(core).snapshot?.index, 9)
  assert.deepEqual(core.status().membership, membership)
})

test('a second snapshot while the first is being installed replaces it afterwards', () => {
  const core = lonelyCore()
  const membership = { voters: [1n, 2n, 3n], learners: [] }
  const send = (index: number): void =>
    core.step({ type: 'snapshot', from: 2n, to: 1n, term: 1, snapshot: { index, term: 1, membership } })
  send(5)
  assert.equal(core.ready().snapshot?.index, 5)
  send(9)
  core.advance({ through: 5, term: 1 }, 5)
  core.campaign()
  assert.equal(core.status().role, 'follower')
  assert.equal(drain(core).snapshot?.index, 9)
  assert.equal(core.status().applied, 9)
  core.step(appendFrom(2n, 1, { index: 9, term: 1 }, [entry(10, 1)], 10))
  assert.deepEqual(
    drainAll(core).flatMap(({ committed }) => committed.map(({ index }) => index)),
    [10],
  )
})
