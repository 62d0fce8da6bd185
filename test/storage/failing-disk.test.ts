import assert from 'node:assert/strict'
import test from 'node:test'
import { DiskError } from '../../raft/index.ts'
import type { EmbeddedStore } from '../../storage/embedded.ts'
import type { StorageError, WatchBatch } from '../../storage/index.ts'
import type { DiskFault } from '../simulation/env/index.ts'
import { leaderOf, SimStore } from './sim-store.ts'

const seed = Number(process.env['SEED'] ?? 1)
const raft = { checkpointEntries: 10, catchUpEntries: 5 }

const faults: readonly Omit<DiskFault, 'path'>[] = [
  { operation: 'sync', code: 'EIO' },
  { operation: 'write', code: 'ENOSPC' },
]

function stateOf(store: EmbeddedStore, id: bigint) {
  return store.replicas().find((replica) => replica.id === id)
}

for (const fault of faults) {
  for (const where of ['wal', 'state']) {
    const name = `${fault.code} of a ${fault.operation} under the leader's ${where}`
    test(`${name}: it ends and shows it, the others go on, a restart heals`, async () => {
      const sim = new SimStore(seed, { raft })
      const store = await sim.open()
      for (let i = 0; i < 5; i++) await sim.put(store, `before/${i}`, 'x')
      const revisions: number[] = []
      const onBatch = (batch: WatchBatch) => void revisions.push(...batch.events.map(({ kv }) => kv.modRevision))
      store.watch(
        { key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0), startRevision: 2, prevKv: false },
        { onBatch, onEnd: () => undefined },
      )
      const leader = leaderOf(store)
      sim.machine.disk.faults.push({ ...fault, path: new RegExp(`${leader.name}/${where}`) })
      const acknowledged: string[] = []
      for (let i = 0; acknowledged.length < 20; i++) {
        const key = `during/${String(i).padStart(2, '0')}`
        try {
          await sim.put(store, key, 'x')
          acknowledged.push(key)
        } catch (error) {
          assert.equal((error as StorageError).code, 'ERR_OUTCOME_UNKNOWN')
        }
      }
      const broken = stateOf(store, leader.id)
      assert.equal(broken?.state, 'broken')
      assert.ok(broken.error instanceof DiskError && broken.error.code === fault.code, String(broken.error))
      assert.equal(broken.attached, false)
      assert.equal(store.replicas().filter(({ state }) => state === 'running').length, 2)
      // Started again on the same disk it breaks again, or waits for its next write; the others do not mind.
      await sim.call(() => store.startReplica(leader.id).catch(() => undefined))
      await sim.put(store, 'still', 'x')
      sim.machine.disk.faults.length = 0
      await sim.call(() => store.startReplica(leader.id))
      assert.equal(stateOf(store, leader.id)?.state, 'running')
      await sim.put(store, 'healed', 'x')
      await sim.simulation.run(() => new Set(store.replicas().map((replica) => replica.raft?.applied)).size === 1)
      const hashes = await sim.call(() => Promise.all(store.replicas().map(({ id }) => store.hash(id))))
      for (const hash of hashes) assert.deepEqual(hash, hashes[0])
      const revision = await sim.call((options) => store.currentRevision(options))
      await sim.simulation.run(() => revisions.at(-1) === revision)
      assert.deepEqual(
        revisions,
        Array.from({ length: revision - 1 }, (_, i) => i + 2),
      )
      sim.machine.crash()
      const again = await sim.open()
      const keys = await sim.keys(again)
      for (const key of [...acknowledged, 'still', 'healed']) assert.ok(keys.includes(key), key)
    })
  }
}

test('the only replica acknowledges nothing that its disk refused, waits, and goes on once it is started again', async () => {
  for (const fault of faults) {
    const sim = new SimStore(seed, { replicas: 1, raft })
    const store = await sim.open()
    await sim.put(store, 'before', 'x')
    sim.machine.disk.faults.push({ ...fault, path: /wal/ })
    await assert.rejects(sim.put(store, 'refused', 'x'), { code: 'ERR_OUTCOME_UNKNOWN' })
    await sim.run(100)
    assert.equal(store.replicas()[0]?.state, 'broken')
    await assert.rejects(sim.put(store, 'later', 'x'), { code: 'ERR_NO_LEADER' })
    // Begun while nobody serves: it waits as the calls do.
    const watched: string[] = []
    const onBatch = (batch: WatchBatch) => void watched.push(...batch.events.map(({ kv }) => String(kv.key)))
    store.watch({ key: Buffer.from('again'), startRevision: 0, prevKv: false }, { onBatch, onEnd: () => undefined })
    sim.machine.disk.faults.length = 0
    await sim.call(() => store.startReplica(1n))
    await sim.put(store, 'again', 'x')
    assert.deepEqual(watched, ['again'])
    assert.ok((await sim.keys(store)).includes('before'))
    assert.ok(!(await sim.keys(store)).includes('later'))
    sim.machine.crash()
    const keys = await sim.keys(await sim.open())
    assert.ok(keys.includes('before') && keys.includes('again'))
  }
})

test('replicas that ended on a full disk come back by themselves when there is space, and a watch misses nothing', async () => {
  const sim = new SimStore(seed, { raft, revive: true })
  const store = await sim.open()
  await sim.put(store, 'before', 'x')
  const watched: string[] = []
  const onBatch = (batch: WatchBatch) => void watched.push(...batch.events.map(({ kv }) => String(kv.key)))
  const everything = { key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0), startRevision: 0, prevKv: false }
  store.watch(everything, { onBatch, onEnd: () => undefined })
  sim.machine.disk.faults.push({ operation: 'write', code: 'ENOSPC', path: /replica-[123]/ })
  await assert.rejects(sim.put(store, 'refused', 'x'))
  await sim.run(30_000)
  await assert.rejects(sim.put(store, 'later', 'x'), { code: 'ERR_NO_LEADER' })
  sim.machine.disk.faults.length = 0
  await sim.run(30_000)
  assert.ok(store.replicas().every(({ state }) => state === 'running'))
  await sim.put(store, 'after', 'x')
  const keys = await sim.keys(store)
  assert.ok(keys.includes('before') && keys.includes('after'))
  await sim.run(1_000)
  assert.deepEqual(watched.sort(), keys.filter((key) => key !== 'before').sort())
  // what is no want of space stays ended, and a closed store starts nothing
  const { id, name } = leaderOf(store)
  sim.machine.disk.faults.push({ operation: 'sync', code: 'EIO', path: new RegExp(`${name}/wal`) })
  await sim.put(store, 'moved', 'x').catch(() => undefined)
  sim.machine.disk.faults.length = 0
  await sim.run(30_000)
  assert.equal(stateOf(store, id)?.state, 'broken')
  await sim.call(() => store.close())
  const { changeCount } = sim.machine.disk
  await sim.run(30_000)
  assert.equal(sim.machine.disk.changeCount, changeCount)
})

test('a start goes on without the one replica whose disk is full, which joins when there is space', async () => {
  const sim = new SimStore(seed, { raft, revive: true })
  let store = await sim.open()
  await sim.put(store, 'before', 'x')
  await sim.call(() => store.close())
  sim.machine.disk.faults.push({ operation: 'write', code: 'ENOSPC', path: /replica-2/ })
  sim.machine.disk.faults.push({ operation: 'open', code: 'ENOSPC', path: /replica-2/ })
  store = await sim.open()
  await sim.put(store, 'without', 'x')
  assert.deepEqual(
    store.replicas().map(({ state }) => state),
    ['running', 'broken', 'running'],
  )
  sim.machine.disk.faults.length = 0
  await sim.run(30_000)
  await sim.put(store, 'with', 'x')
  await sim.run(5_000)
  assert.ok(store.replicas().every(({ state }) => state === 'running'))
  const hashes = await sim.call(() => Promise.all(store.replicas().map(({ id }) => store.hash(id))))
  for (const hash of hashes) assert.deepEqual(hash, hashes[0])
  assert.deepEqual((await sim.keys(store)).sort(), ['before', 'with', 'without'])
})

test('watches begun while no replica runs end when the store closes', async () => {
  const sim = new SimStore(seed, { replicas: 1 })
  const store = await sim.open()
  await sim.call(() => store.killReplica(1n))
  const ends: (StorageError | undefined)[] = []
  const sink = { onBatch: () => undefined, onEnd: (reason: StorageError | undefined) => void ends.push(reason) }
  store.watch({ key: Buffer.from('k'), startRevision: 0, prevKv: false }, sink)
  store.watch({ key: Buffer.from('k'), startRevision: 0, prevKv: false }, sink).cancel()
  assert.equal(ends.length, 1)
  await sim.call(() => store.close())
  assert.equal(ends.length, 2)
  store.watch({ key: Buffer.from('k'), startRevision: 0, prevKv: false }, sink)
  await sim.run(10)
  assert.deepEqual(
    ends.map((reason) => reason?.code),
    [undefined, undefined, 'ERR_STOPPED'],
  )
})

test('a replica whose start is under way when the store closes is closed before the directory is given free', async () => {
  const sim = new SimStore(seed)
  const store = await sim.open()
  const { id } = leaderOf(store)
  await sim.call(() => store.killReplica(id))
  const starting = store.startReplica(id)
  const twice = store.startReplica(id)
  assert.equal(starting, twice)
  const outcome = starting.catch((error: StorageError) => error.code)
  await sim.call(() => store.close())
  assert.equal(await sim.call(() => outcome), 'ERR_STOPPED')
  assert.ok(store.replicas().every(({ state }) => state !== 'running'))
  const { changeCount } = sim.machine.disk
  await sim.run(10_000)
  assert.equal(sim.machine.disk.changeCount, changeCount, 'something still writes')
})

test('a full disk: nothing is lost that was acknowledged, and a start goes on once there is space', async () => {
  const sim = new SimStore(seed, { raft })
  let store = await sim.open()
  await sim.put(store, 'first', 'x')
  sim.machine.disk.capacityBytes = sim.machine.disk.usedBytes + 20_000
  const acknowledged: string[] = ['first']
  const codes: string[] = []
  for (let i = 0; codes.length === 0; i++) {
    try {
      await sim.put(store, `k${i}`, 'x'.repeat(3_000))
      acknowledged.push(`k${i}`)
    } catch (error) {
      codes.push((error as StorageError).code)
    }
  }
  assert.match(codes.join(), /ERR_OUTCOME_UNKNOWN|ERR_NO_LEADER|ERR_STOPPED/)
  await sim.call(() => store.close())
  sim.machine.disk.capacityBytes = Number.POSITIVE_INFINITY
  store = await sim.open()
  const keys = await sim.keys(store)
  for (const key of acknowledged) assert.ok(keys.includes(key), key)
  await sim.put(store, 'space again', 'x')
})
