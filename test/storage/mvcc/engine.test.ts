import assert from 'node:assert/strict'
import test from 'node:test'
import { silentLogger, StorageError, type StorageErrorCode } from '../../../storage/index.ts'
import { loadMvccEngine } from '../../../storage/mvcc/engine.ts'
import { VolatileBackend } from '../../../storage/mvcc/volatile-backend.ts'
import { seededRandom } from '../../contract/store/random-program.ts'
import { bytes, plainKv, text } from '../../contract/store/store-harness.ts'
import { WatchRecorder } from '../../contract/store/watch-recorder.ts'
import { EngineRig } from './manual-env.ts'

const everything = { key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0) }

/** Starts again from what the backend holds, believing its checkpoint. */
async function restart(rig: EngineRig): Promise<EngineRig> {
  const next = new EngineRig({
    backend: rig.backend,
    scheduler: rig.scheduler,
    engine: await loadMvccEngine({ backend: rig.backend, scheduler: rig.scheduler, log: silentLogger }),
  })
  next.index = rig.index
  return next
}

function thrown(call: () => unknown): StorageErrorCode | undefined {
  try {
    call()
  } catch (error) {
    if (error instanceof StorageError) return error.code
    throw error
  }
  return undefined
}

test('the engine reads at every revision what a naive twin remembers, through compaction and restart', async (context) => {
  const seed = Number(process.env['SEED'] ?? 20_261_130)
  context.diagnostic(`SEED=${seed}`)
  const random = seededRandom(seed)
  let rig = new EngineRig()
  /** Revision -> key -> value: everything that was ever true. */
  const states: Map<string, string>[] = [new Map(), new Map()]
  let leases = new Map<bigint, Set<string>>()
  const now = () => new Map(states.at(-1))
  const detach = (key: string) => leases.forEach((keys) => keys.delete(key))
  for (let step = 0; step < 2_500; step += 1) {
    const key = `k${random(12)}`
    const dice = random(100)
    if (dice < 50) {
      const ids = [...leases.keys()]
      const lease = random(3) === 0 ? (ids[random(ids.length)] ?? 0n) : 0n
      const state = now().set(key, String(step))
      detach(key)
      leases.get(lease)?.add(key)
      rig.put(key, String(step), lease)
      states.push(state)
    } else if (dice < 70) {
      const to = `k${random(12)}`
      const state = now()
      const gone = [...state.keys()].filter((name) => name >= key && name < to)
      for (const name of gone) {
        state.delete(name)
        detach(name)
      }
      const outcome = rig.txn({ type: 'delete', key: bytes(key), rangeEnd: bytes(to) })
      assert.equal(outcome.responses[0]?.count, gone.length)
      if (gone.length > 0) states.push(state)
    } else if (dice < 74) {
      const id = BigInt(1 + random(4))
      const outcome = rig.apply({ type: 'leaseGrant', id, ttlSeconds: 10 })
      assert.equal(outcome.type === 'refused', leases.has(id))
      if (!leases.has(id)) leases.set(id, new Set())
    } else if (dice < 78) {
      const id = BigInt(1 + random(4))
      const keys = leases.get(id)
      assert.equal(rig.apply({ type: 'leaseRevoke', id }).type === 'refused', keys === undefined)
      const state = now()
      for (const name of keys ?? []) state.delete(name)
      if (keys !== undefined && keys.size > 0) states.push(state)
      leases.delete(id)
    } else if (dice < 82) {
      const revision = rig.engine.revision - random(30)
      if (revision > rig.engine.compactRevision) rig.compact(revision)
    } else if (dice < 85) {
      await rig.backend.checkpoint(rig.engine.state())
      rig.engine.resumeCompaction()
    } else if (dice < 86) {
      await rig.backend.checkpoint(rig.engine.state())
      const before = await rig.hash()
      rig = await restart(rig)
      assert.equal(await rig.hash(), before)
    } else if (dice < 90) {
      rig.scheduler.turn()
    }
    assert.equal(rig.engine.revision, states.length - 1, `step ${step}`)
    assert.equal(rig.engine.keyCount, states.at(-1)?.size)
    const revision = Math.max(1, rig.engine.revision - random(40))
    if (revision < rig.engine.compactRevision) {
      assert.equal(
        thrown(() => rig.engine.rangeNow({ ...everything, revision })),
        'ERR_COMPACTED',
      )
    } else {
      const { kvs } = rig.engine.rangeNow({ ...everything, revision })
      const expected = [...(states[revision] ?? [])].sort(([a], [b]) => (a < b ? -1 : 1))
      assert.deepEqual(
        kvs.map((kv) => [text(kv.key), text(kv.value)]),
        expected,
        `SEED=${seed} step ${step}`,
      )
    }
    for (const [id, keys] of leases) assert.deepEqual(rig.engine.leaseKeys(id).map(text), [...keys].sort())
  }
})

test('B16: a compacted tombstone at the head does not take the revision down after a restart', async () => {
  const rig = new EngineRig()
  rig.put('a', '1')
  const deleted = rig.delete('a')
  const last = rig.put('b', '1')
  rig.delete('b')
  rig.compact(last + 1)
  await rig.backend.checkpoint(rig.engine.state())
  rig.engine.resumeCompaction()
  rig.scheduler.settle()
  // Worst case: even the tombstone at the compacted revision is gone from the disk.
  for await (const heads of rig.backend.heads()) for (const head of heads) rig.backend.remove(head)
  const again = await restart(rig)
  assert.equal(again.engine.revision, last + 1)
  assert.ok(again.put('a', '2') > deleted + 2)
})

test('B17: the head is readable after put, delete, compaction at the head and restart', async () => {
  const rig = new EngineRig()
  rig.put('a', '1')
  const deleted = rig.delete('a')
  rig.compact(deleted)
  await rig.backend.checkpoint(rig.engine.state())
  rig.engine.resumeCompaction()
  rig.scheduler.settle()
  const again = await restart(rig)
  assert.deepEqual([again.engine.revision, again.engine.compactRevision], [deleted, deleted])
  assert.deepEqual(again.engine.rangeNow({ ...everything, revision: deleted }).kvs, [])
  assert.deepEqual(again.engine.rangeNow(everything).revision, deleted)
})

test('rows above the checkpoint are not believed', async () => {
  const rig = new EngineRig()
  const believed = rig.put('a', '1')
  await rig.backend.checkpoint(rig.engine.state())
  rig.put('a', '2')
  rig.put('b', '1')
  const again = await restart(rig)
  assert.deepEqual([again.engine.revision, again.engine.keyCount], [believed, 1])
  assert.deepEqual(
    again.engine
      .rangeNow(everything)
      .kvs.map(plainKv)
      .map((kv) => kv.value),
    ['1'],
  )
})

test('B2: the deletion exactly at the compacted revision is replayed after a restart too', async () => {
  const rig = new EngineRig()
  rig.put('a', '1')
  const deleted = rig.delete('a')
  rig.compact(deleted)
  await rig.backend.checkpoint(rig.engine.state())
  rig.engine.resumeCompaction()
  rig.scheduler.settle()
  assert.equal(rig.backend.rowCount, 1)
  const again = await restart(rig)
  const recorder = new WatchRecorder()
  again.engine.watch({ ...everything, startRevision: deleted, prevKv: false }, recorder)
  again.scheduler.settle()
  assert.deepEqual(
    recorder.events.map((event) => [event.type, event.kv.mod]),
    [['delete', deleted]],
  )
})

test('B25: replicas refuse the same entries whether or not their rows are physically gone', async () => {
  const kept = new EngineRig()
  const gone = new EngineRig({ physicalLimit: () => gone.engine.compactRevision })
  const answers = [kept, gone].map((rig) => {
    rig.put('a', '1')
    const second = rig.put('a', '2')
    rig.compact(second)
    rig.scheduler.settle()
    const read = { type: 'range', key: bytes('a'), revision: second - 1 } as const
    const refused = [
      rig.apply({
        type: 'txn',
        request: { compare: [], success: [{ type: 'put', key: bytes('b'), value: bytes('1') }, read], failure: [] },
      }),
      rig.apply({
        type: 'txn',
        request: {
          compare: [],
          success: [{ type: 'put', key: bytes('b'), value: bytes('1'), lease: 9n }],
          failure: [],
        },
      }),
      rig.apply({ type: 'compact', revision: second }),
      rig.apply({ type: 'leaseRevoke', id: 9n }),
    ]
    rig.put('c', '1')
    return { refused, revision: rig.engine.revision }
  })
  assert.equal(kept.backend.rowCount, gone.backend.rowCount + 1)
  assert.deepEqual(answers[0], answers[1])
  assert.deepEqual(
    answers[0]?.refused.map((one) => one.type === 'refused' && one.code),
    ['ERR_COMPACTED', 'ERR_LEASE_NOT_FOUND', 'ERR_COMPACTED', 'ERR_LEASE_NOT_FOUND'],
  )
  assert.equal(await kept.hash(), await gone.hash())
})

test('physical compaction waits for a checkpoint, keeps what a pin needs, and then removes dead rows', async () => {
  const rig = new EngineRig()
  for (let n = 0; n < 3_000; n += 1) rig.put(`k${n % 3}`, String(n))
  const release = rig.engine.pin()
  const pinned = rig.engine.revision
  for (let n = 0; n < 100; n += 1) rig.put('k0', 'x')
  rig.compact(rig.engine.revision)
  rig.scheduler.settle()
  assert.equal(rig.backend.rowCount, 3_100)
  await rig.backend.checkpoint(rig.engine.state())
  rig.engine.resumeCompaction()
  rig.scheduler.turn()
  assert.ok(rig.backend.rowCount > 2_000, 'one turn removes one slice')
  rig.scheduler.settle()
  assert.equal(rig.backend.rowCount, 103)
  let finished = false
  const done = rig.engine.whenPhysicallyCompacted(pinned + 100).then(() => (finished = true))
  release()
  assert.equal(finished, false)
  rig.scheduler.settle()
  await done
  assert.equal(rig.backend.rowCount, 3)
})

test('a failed write breaks the engine for good instead of leaving half a transaction', () => {
  class FullDisk extends VolatileBackend {
    full = false
    override put(...row: Parameters<VolatileBackend['put']>): void {
      if (this.full && row[0].sub === 1) throw new Error('no space')
      super.put(...row)
    }
  }
  const backend = new FullDisk()
  const rig = new EngineRig({ backend })
  rig.put('a', '1')
  backend.full = true
  const put = (key: string) => ({ type: 'put', key: bytes(key), value: bytes('2') }) as const
  assert.throws(() => rig.txn(put('a'), put('b')), /no space/)
  assert.equal(
    thrown(() => rig.put('c', '3')),
    'ERR_STOPPED',
  )
  assert.equal(
    thrown(() => rig.engine.rangeNow(everything)),
    'ERR_STOPPED',
  )
})

test('apply from inside a watch sink is refused', () => {
  const rig = new EngineRig()
  let inner: unknown
  rig.engine.watch(
    { ...everything, startRevision: 0, prevKv: false },
    {
      onBatch: () => {
        try {
          rig.put('b', '1')
        } catch (error) {
          inner = error
        }
      },
      onEnd: () => {},
    },
  )
  rig.put('a', '1')
  assert.match(String(inner), /inside apply/)
  assert.equal(rig.engine.revision, 2)
})
