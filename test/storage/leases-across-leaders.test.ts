import assert from 'node:assert/strict'
import test from 'node:test'
import { leaderOf, SimStore } from './sim-store.ts'

const seed = Number(process.env['SEED'] ?? 1)

test('a new leader gives every lease its whole time again, and then lets it expire', async () => {
  const sim = new SimStore(seed)
  const store = await sim.open()
  const { id } = await sim.call((options) => store.leaseGrant({ ttlSeconds: 10 }, options))
  await sim.put(store, 'held', 'x', id)
  await sim.run(7_000)
  const old = leaderOf(store)
  await sim.call(() => store.killReplica(old.id))
  await sim.put(store, 'other', 'x')
  assert.notEqual(leaderOf(store).id, old.id)
  // 10 s after the grant the former leader would have let it go.
  await sim.run(7_000)
  assert.deepEqual(await sim.keys(store), ['held', 'other'])
  const left = await sim.call((options) => store.leaseTimeToLive(id, { ...options, keys: true }))
  assert.ok(left.ttlSeconds <= 5 && left.ttlSeconds > 0, `${left.ttlSeconds} s`)
  assert.deepEqual(
    left.keys.map((key) => Buffer.from(key).toString()),
    ['held'],
  )
  await sim.run(6_000)
  assert.deepEqual(await sim.keys(store), ['other'])
  await assert.rejects(
    sim.call((options) => store.leaseKeepAlive(id, options)),
    { code: 'ERR_LEASE_NOT_FOUND' },
  )
})

test('a lease renewed at the new leader outlives the deadline of the old one, who comes back and revokes nothing', async () => {
  const sim = new SimStore(seed)
  const store = await sim.open()
  const { id } = await sim.call((options) => store.leaseGrant({ ttlSeconds: 6 }, options))
  await sim.put(store, 'held', 'x', id)
  await sim.run(5_000)
  const old = leaderOf(store)
  await sim.call(() => store.killReplica(old.id))
  await sim.call((options) => store.leaseKeepAlive(id, options))
  await sim.call(() => store.startReplica(old.id))
  for (let i = 0; i < 5; i++) {
    await sim.run(3_000)
    assert.equal(await sim.call((options) => store.leaseKeepAlive(id, options)), 6)
  }
  assert.deepEqual(await sim.keys(store), ['held'])
  await sim.run(8_000)
  assert.deepEqual(await sim.keys(store), [])
})

// etcd-io/etcd#15247 (B32): a leader that stood still woke up and revoked what had been renewed elsewhere.
test('B32: a machine that stood still for longer than the lease gives the time back before anything expires', async () => {
  const sim = new SimStore(seed)
  const store = await sim.open()
  const { id } = await sim.call((options) => store.leaseGrant({ ttlSeconds: 5 }, options))
  await sim.put(store, 'held', 'x', id)
  await sim.run(1_000)
  sim.machine.pause(30_000)
  await sim.run(31_000)
  assert.equal(await sim.call((options) => store.leaseKeepAlive(id, options)), 5)
  assert.deepEqual(await sim.keys(store), ['held'])
  await sim.run(7_000)
  assert.deepEqual(await sim.keys(store), [])
})

test('leases and what hangs on them are there after all replicas have started again', async () => {
  const sim = new SimStore(seed, { raft: { checkpointEntries: 5, catchUpEntries: 2 } })
  let store = await sim.open()
  const { id } = await sim.call((options) => store.leaseGrant({ ttlSeconds: 5 }, options))
  await sim.put(store, 'held', 'x', id)
  for (let i = 0; i < 20; i++) await sim.put(store, 'free', String(i))
  sim.machine.crash()
  store = await sim.open()
  assert.deepEqual(await sim.keys(store), ['free', 'held'])
  await sim.run(7_000)
  assert.deepEqual(await sim.keys(store), ['free'])
})
