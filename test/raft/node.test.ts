import assert from 'node:assert/strict'
import test from 'node:test'
import type { RaftNode } from '../../raft/seams.ts'
import type { Message } from '../../raft/types.ts'
import { Group } from './group.ts'

const seed = Number(process.env['SEED'] ?? 1)
const signal = new AbortController().signal

async function started(size: number, options: ConstructorParameters<typeof Group>[2] = {}): Promise<Group> {
  const group = new Group(seed, size, options)
  await group.start()
  group.member(1n).node.campaign()
  return group
}

/** Handlers at once: a rejection in the middle of a run must not be unhandled. */
function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'resolved',
    (error: { code: string }) => error.code,
  )
}

test('a lone member elects itself and a proposal resolves with what apply returned', async () => {
  const group = await started(1)
  const leader = await group.leader()
  assert.equal(await group.simulation.finish(group.propose(leader, 'a')), 1)
  assert.equal(await group.simulation.finish(group.propose(leader, 'b')), 2)
  assert.deepEqual(leader.machine.values, ['a', 'b'])
})

// etcd-io/etcd#14370 (B24)
test('a lone member acknowledges nothing before its fsync', async () => {
  for (let at = 1; at <= 12; at++) {
    const group = await started(1)
    const leader = await group.leader()
    const { disk } = group.machine(1n)
    let crashed = false
    disk.crashAtChange = disk.changeCount + at
    disk.onCrashPoint = () => {
      crashed = true
      group.crash(1n)
    }
    const acknowledged: string[] = []
    const work = async () => {
      for (let i = 0; ; i++) {
        await group.propose(leader, `v${i}`)
        acknowledged.push(`v${i}`)
      }
    }
    void work()
    await group.simulation.run(() => crashed)
    disk.crashAtChange = Number.POSITIVE_INFINITY
    const again = await group.boot(1n)
    again.node.campaign()
    await group.settle()
    assert.deepEqual(again.machine.values.slice(0, acknowledged.length), acknowledged)
  }
})

test('three members apply the same, whoever is asked', async () => {
  const group = await started(3)
  await group.leader()
  await group.settle()
  const results = group.ids.map((id) => group.propose(group.member(id), `from ${id}`))
  await group.simulation.finish(Promise.all(results))
  await group.settle()
  const [first, ...others] = group.ids.map((id) => group.member(id).machine.values)
  assert.equal(first?.length, 3)
  for (const other of others) assert.deepEqual(other, first)
})

test('all members restarted hold everything that was acknowledged', async () => {
  const group = await started(3)
  const leader = await group.leader()
  for (let i = 0; i < 50; i++) await group.simulation.finish(group.propose(leader, `v${i}`))
  for (const id of group.ids) group.crash(id)
  await group.start()
  group.member(2n).node.campaign()
  await group.settle()
  for (const id of group.ids) assert.equal(group.member(id).machine.values.length, 50)
})

test('when the leader is killed another takes over and nothing acknowledged is lost', async () => {
  const group = await started(3)
  const leader = await group.leader()
  for (let i = 0; i < 10; i++) await group.simulation.finish(group.propose(leader, `v${i}`))
  group.crash(leader.node.id)
  const next = await group.leader()
  assert.notEqual(next.node.id, leader.node.id)
  await group.simulation.finish(group.propose(next, 'after'))
  assert.equal(next.machine.values.length, 11)
  await group.boot(leader.node.id)
  await group.settle()
  assert.deepEqual(group.member(leader.node.id).machine.values, next.machine.values)
})

test('a proposal is refused without a leader, and its outcome is unknown once the leader is lost', async () => {
  const group = new Group(seed, 3)
  await group.start()
  assert.equal(await group.simulation.finish(codeOf(group.propose(group.member(1n), 'early'))), 'ERR_NO_LEADER')
  group.member(1n).node.campaign()
  const leader = await group.leader()
  await group.settle()
  group.isolate(leader.node.id)
  const late = codeOf(group.propose(leader, 'cut off'))
  assert.equal(await group.simulation.finish(late), 'ERR_OUTCOME_UNKNOWN')
})

test('an abort before proposing is ERR_ABORTED, after it ERR_OUTCOME_UNKNOWN, and stop ends what waits', async () => {
  const group = await started(3)
  const leader = await group.leader()
  await group.settle()
  assert.equal(await group.simulation.finish(codeOf(group.propose(leader, 'x', AbortSignal.abort()))), 'ERR_ABORTED')
  const controller = new AbortController()
  const aborted = codeOf(group.propose(leader, 'y', controller.signal))
  controller.abort()
  assert.equal(await group.simulation.finish(aborted), 'ERR_OUTCOME_UNKNOWN')
  const waiting = codeOf(group.propose(leader, 'z'))
  const read = codeOf(leader.node.readIndex({ signal }))
  await group.simulation.finish(leader.node.stop())
  assert.equal(await waiting, 'ERR_OUTCOME_UNKNOWN')
  assert.equal(await read, 'ERR_STOPPED')
  assert.equal(await leader.node.ended, undefined)
  assert.equal(await codeOf(group.propose(leader, 'late')), 'ERR_STOPPED')
})

test('reads of one turn share a round and see every write acknowledged before', async () => {
  const group = await started(3)
  const leader = await group.leader()
  await group.simulation.finish(group.propose(leader, 'a'))
  const index = leader.machine.appliedIndex
  const rounds = new Set<bigint>()
  group.lose = (message) => {
    if (message.type === 'readIndex') rounds.add(message.readId)
    return false
  }
  const follower = group.running().find(({ node }) => node.id !== leader.node.id)!
  const reads = Array.from({ length: 20 }, () => follower.node.readIndex({ signal }))
  const answers = await group.simulation.finish(Promise.all(reads))
  assert.equal(rounds.size, 1)
  for (const answer of answers) assert.ok(answer >= index)
  assert.ok(follower.machine.appliedIndex >= index)
})

test('a read whose round is lost is tried again with a new id', async () => {
  const group = await started(3)
  const leader = await group.leader()
  await group.settle()
  const ids: bigint[] = []
  group.lose = (message) => {
    if (message.type !== 'readIndex') return false
    ids.push(message.readId)
    return ids.length < 3
  }
  const follower = group.running().find(({ node }) => node.id !== leader.node.id)!
  await group.simulation.finish(follower.node.readIndex({ signal }))
  assert.equal(new Set(ids).size, 3)
})

test('a cut off leader answers no read', async () => {
  const group = await started(3)
  const old = await group.leader()
  await group.settle()
  group.isolate(old.node.id)
  let answered = false
  const read = old.node.readIndex({ signal }).then(() => (answered = true))
  const next = await group.leader()
  await group.simulation.finish(group.propose(next, 'newer'))
  assert.equal(answered, false)
  group.heal()
  await group.simulation.finish(read)
  assert.deepEqual(old.machine.values, ['newer'])
})

test('a follower that lags behind the log gets a snapshot each time, and then entries', async () => {
  const group = await started(3, { checkpointEntries: 40, catchUpEntries: 10 })
  const leader = await group.leader()
  await group.settle()
  const lagging = group.running().find(({ node }) => node.id !== leader.node.id)!
  for (let round = 1; round <= 3; round++) {
    group.isolate(lagging.node.id)
    for (let i = 0; i < 200; i++) await group.simulation.finish(group.propose(leader, `v${round}.${i}`))
    assert.ok(leader.node.status().firstIndex > round * 200 - 100)
    group.heal()
    await group.settle()
    assert.equal(lagging.machine.installed, round)
  }
  await group.simulation.finish(group.propose(leader, 'last'))
  await group.settle()
  assert.deepEqual(lagging.machine.values, leader.machine.values)
  // And what it installed is what it restarts from.
  group.crash(lagging.node.id)
  const again = await group.boot(lagging.node.id)
  await group.settle()
  assert.deepEqual(again.machine.values, leader.machine.values)
})

test('a crash at any step of installing a snapshot leaves a member that recovers', async () => {
  for (let at = 1; at <= 24; at++) {
    const group = new Group(seed * 100 + at, 3, { checkpointEntries: 40, catchUpEntries: 10 })
    await group.start()
    group.member(1n).node.campaign()
    const leader = await group.leader()
    await group.settle()
    const victim = leader.node.id === 3n ? 2n : 3n
    group.isolate(victim)
    const texts = Array.from({ length: 120 }, (_, i) => `v${i}`)
    for (const text of texts) await group.simulation.finish(group.propose(leader, text))
    const { disk } = group.machine(victim)
    let crashed = false
    disk.crashAtChange = disk.changeCount + at
    disk.onCrashPoint = () => {
      crashed = true
      group.crash(victim)
    }
    group.heal()
    const { node } = group.member(victim)
    const { lastIndex } = leader.node.status()
    // The core learns what is applied only when the marker is durable too.
    await group.simulation.run(() => crashed || node.status().applied >= lastIndex)
    disk.crashAtChange = Number.POSITIVE_INFINITY
    if (crashed) await group.boot(victim)
    await group.settle()
    assert.deepEqual(group.member(victim).machine.values, texts, `crash point ${at}`)
  }
})

// Its commit index was written without it, and the log refused to open.
test('a member stopped while a snapshot waits for a running checkpoint starts again', async () => {
  const group = await started(3, { checkpointEntries: 40, catchUpEntries: 10 })
  const leader = await group.leader()
  await group.settle()
  const victim = leader.node.id === 3n ? 2n : 3n
  const { node, machine } = group.member(victim)
  let release = (): void => undefined
  machine.checkpointAfter = new Promise((resolve) => (release = resolve))
  const texts = Array.from({ length: 170 }, (_, i) => `v${i}`)
  for (const [i, text] of texts.entries()) {
    if (i === 50) {
      await group.settle()
      group.isolate(victim)
    }
    await group.simulation.finish(group.propose(leader, text))
  }
  group.heal()
  await group.simulation.run(() => machine.staged > 0)
  await group.simulation.run(group.simulation.now + 5)
  const stopping = node.stop()
  release()
  await group.simulation.finish(stopping)
  group.crash(victim)
  await group.boot(victim)
  await group.settle()
  assert.deepEqual(group.member(victim).machine.values, texts)
})

// etcd-io/etcd#3068 (B46)
test('a leader that cannot persist ends with the error, and another leads', async () => {
  const group = await started(3)
  const leader = await group.leader()
  await group.settle()
  group.machine(leader.node.id).disk.faults.push({ operation: 'sync', code: 'EIO' })
  const outcome = codeOf(group.propose(leader, 'lost?'))
  const error = await group.simulation.finish(leader.node.ended)
  assert.equal((error as { code?: string }).code, 'EIO')
  assert.equal(await outcome, 'ERR_OUTCOME_UNKNOWN')
  const next = (): RaftNode | undefined =>
    group.running().find(({ node }) => node.status().role === 'leader' && node.id !== leader.node.id)?.node
  await group.simulation.run(() => next() !== undefined)
})

test('members stopped in good order start with the end of the log, and one that was behind needs no snapshot', async () => {
  const group = await started(3, { stopCatchUpBytes: 2_000 })
  const leader = await group.leader()
  await group.settle()
  const behind = group.running().find(({ node }) => node.id !== leader.node.id)!.node.id
  for (let i = 0; i < 300; i++) await group.simulation.finish(group.propose(leader, `value ${i}`))
  await group.settle()
  group.isolate(behind)
  for (let i = 0; i < 10; i++) await group.simulation.finish(group.propose(leader, `late ${i}`))
  const { lastIndex } = leader.node.status()
  await group.simulation.finish(Promise.all(group.running().map(({ node }) => node.stop({ checkpoint: true }))))
  group.heal()
  // What a stop in good order leaves is durable.
  for (const id of group.ids) group.crash(id)
  await group.start()
  const again = group.member(leader.node.id)
  assert.equal(again.machine.appliedIndex, lastIndex)
  const { firstIndex } = again.node.status()
  assert.ok(firstIndex > lastIndex - 80 && firstIndex < lastIndex - 60, `the log begins at ${firstIndex}`)
  again.node.campaign()
  await group.settle()
  assert.equal(group.member(behind).machine.installed, 0)
  assert.deepEqual(group.member(behind).machine.values, again.machine.values)
})

test('a member whose last checkpoint fails stops all the same, and replays its log', async () => {
  const group = await started(3, { stopCatchUpBytes: 0 })
  const leader = await group.leader()
  await group.settle()
  for (let i = 0; i < 20; i++) await group.simulation.finish(group.propose(leader, `v${i}`))
  const { id } = leader.node
  group.machine(id).disk.faults.push({ operation: 'sync', code: 'ENOSPC', path: /state/ })
  await group.simulation.finish(leader.node.stop({ checkpoint: true }))
  assert.equal(await group.simulation.finish(leader.node.ended), undefined)
  group.machine(id).disk.faults.length = 0
  group.crash(id)
  const again = await group.boot(id)
  await group.settle()
  assert.equal(again.machine.values.length, 20)
})

test('leadership moves on request', async () => {
  const group = await started(3)
  const leader = await group.leader()
  await group.settle()
  const to = leader.node.id === 2n ? 3n : 2n
  await group.simulation.finish(leader.node.transferLeadership(to))
  assert.equal(group.member(to).node.status().leader, to)
})

test('a learner is added, made a voter and removed, and a restart from a checkpoint knows it', async () => {
  const group = await started(3, { checkpointEntries: 10 })
  const leader = await group.leader()
  await group.settle()
  const change = (type: 'addLearner' | 'addVoter' | 'remove') =>
    group.simulation.finish(leader.node.proposeConfChange({ type, member: 4n }, { signal }))
  assert.deepEqual((await change('addLearner')).learners, [4n])
  for (let i = 0; i < 30; i++) await group.simulation.finish(group.propose(leader, `v${i}`))
  const follower = group.running().find(({ node }) => node.id !== leader.node.id)!.node.id
  await group.settle()
  group.crash(follower)
  const again = await group.boot(follower)
  assert.deepEqual(again.machine.membership.learners, [4n])
  assert.deepEqual((await change('addVoter')).voters, [1n, 2n, 3n, 4n])
  await group.settle()
  assert.deepEqual((await change('remove')).voters, [1n, 2n, 3n])
})

test('a forwarded proposal that the network doubles is applied once, however late the double comes', async () => {
  const group = await started(3)
  const leader = await group.leader()
  await group.settle()
  const follower = group.running().find(({ node }) => node.id !== leader.node.id)!
  const doubles: Message[] = []
  group.lose = (message) => {
    if (message.type === 'propose' && doubles.length < 2) doubles.push(message)
    return false
  }
  await group.simulation.finish(group.propose(follower, 'a'))
  await group.simulation.finish(group.propose(leader, 'b'))
  group.resend(doubles)
  await group.simulation.finish(group.propose(leader, 'c'))
  assert.deepEqual(leader.machine.values, ['a', 'b', 'c'])
})

test('a snapshot that is no longer wanted once it is staged is discarded', async () => {
  const group = await started(3)
  const leader = await group.leader()
  await group.settle()
  const follower = group.running().find(({ node }) => node.id !== leader.node.id)!
  const { term, lastTerm } = leader.node.status()
  const source = await leader.machine.openSnapshot()
  // The log will have reached this index by the time the stream ends.
  const index = leader.machine.appliedIndex + 1
  async function* slow() {
    await group.propose(leader, 'meanwhile')
    await group.settle()
    yield* source.chunks
  }
  const meta = { ...source.meta, index, term: lastTerm }
  const addressed = { from: leader.node.id, to: follower.node.id, term }
  const sent = group.sendSnapshot(
    { type: 'snapshot', ...addressed, snapshot: meta },
    { ...source, meta, chunks: slow() },
  )
  await group.simulation.finish(sent)
  await group.simulation.run(() => follower.machine.discarded === 1)
  assert.equal(follower.machine.installed, 0)
})
