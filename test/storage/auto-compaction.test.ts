import assert from 'node:assert/strict'
import test from 'node:test'
import { autoCompactionIntervalMs, startAutoCompaction } from '../../storage/auto-compaction.ts'
import { silentLogger, StorageError, type StorageErrorCode, type Store } from '../../storage/index.ts'
import { SimNode } from '../simulation/env/sim-node.ts'
import { Simulation } from '../simulation/env/simulation.ts'
import { SimStore } from './sim-store.ts'

const intervalMs = 1_000

/** A store that takes note of compactions, and answers as told. */
class Double implements Pick<Store, 'compact' | 'status'> {
  revision = 1
  compactRevision = 0
  readonly asked: { readonly revision: number; readonly at: number; readonly signal: AbortSignal }[] = []
  answer: StorageErrorCode | 'waits' | undefined
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  status() {
    return { revision: this.revision, compactRevision: this.compactRevision, keyCount: 0 }
  }

  async compact({ revision }: { readonly revision: number }, { signal }: { readonly signal: AbortSignal }) {
    this.asked.push({ revision, at: this.#now(), signal })
    if (this.answer === 'waits') await new Promise((resolve) => signal.addEventListener('abort', resolve))
    else if (this.answer !== undefined) throw new StorageError(this.answer, 'told so')
    else this.compactRevision = revision
  }

  get told(): readonly (readonly [number, number])[] {
    return this.asked.map(({ revision, at }) => [at, revision])
  }
}

function started() {
  const simulation = new Simulation(1)
  const store = new Double(() => simulation.now)
  const { scheduler } = new SimNode(simulation, 'n1').boot()
  const stop = startAutoCompaction({ store, scheduler, log: silentLogger, intervalMs })
  return { simulation, store, stop }
}

test('each interval the revision of one interval before goes, so that one to two intervals of history stay', async () => {
  const { simulation, store, stop } = started()
  for (const revision of [10, 20, 30]) {
    store.revision = revision
    await simulation.run(simulation.now + intervalMs)
  }
  assert.deepEqual(store.told, [
    [2_000, 10],
    [3_000, 20],
  ])
  stop()
  await simulation.run(simulation.now + 5 * intervalMs)
  assert.equal(store.asked.length, 2)
})

test('an idle store, and one that others compact further, is left alone', async () => {
  const { simulation, store } = started()
  await simulation.run(3_500)
  assert.deepEqual(store.told, [])
  store.revision = 50
  store.compactRevision = 50
  await simulation.run(9_500)
  assert.deepEqual(store.told, [])
})

test('a compaction that does not pass is tried again, at the same revision, ten times an interval', async () => {
  const { simulation, store } = started()
  store.revision = 10
  store.answer = 'ERR_OVERLOADED'
  await simulation.run(2_350)
  assert.deepEqual(store.told, [
    [2_000, 10],
    [2_100, 10],
    [2_200, 10],
    [2_300, 10],
  ])
  store.answer = undefined
  await simulation.run(2_950)
  assert.equal(store.asked.length, 5)
  assert.equal(store.compactRevision, 10)
})

test('that somebody else has compacted meanwhile is no failure', async () => {
  const { simulation, store } = started()
  store.revision = 10
  store.answer = 'ERR_COMPACTED'
  await simulation.run(2_900)
  assert.deepEqual(store.told, [[2_000, 10]])
})

test('one that still waits gives way to the next, and to the end', async () => {
  const { simulation, store, stop } = started()
  store.answer = 'waits'
  store.revision = 10
  await simulation.run(2_500)
  store.revision = 20
  await simulation.run(4_500)
  assert.deepEqual(store.told, [
    [2_000, 10],
    [3_000, 10],
    [4_000, 20],
  ])
  assert.deepEqual(
    store.asked.map(({ signal }) => signal.aborted),
    [true, true, false],
  )
  stop()
  assert.equal(store.asked[2]?.signal.aborted, true)
  await simulation.run(9_000)
  assert.equal(store.asked.length, 3)
})

test('the embedded store keeps five minutes of history, and the window is what it says', async () => {
  assert.equal(autoCompactionIntervalMs, 300_000)
  const sim = new SimStore(1, { compaction: { intervalMs: 60_000 } })
  const store = await sim.open()
  const revisions: number[] = []
  for (let i = 0; i < 20; i++) {
    revisions.push(await sim.put(store, 'k', String(i)))
    await sim.run(10_000)
  }
  const read = (revision: number) => {
    return sim.call((options) => store.range({ key: Buffer.from('k'), revision }, options))
  }
  const { compactRevision } = store.status()
  // 200 s: the turn at 180 s took what was there at 120 s.
  assert.ok(compactRevision >= (revisions[11] ?? 0) && compactRevision <= (revisions[12] ?? 0), `${compactRevision}`)
  assert.equal((await read(compactRevision)).kvs.length, 1)
  await assert.rejects(read(compactRevision - 1), { code: 'ERR_COMPACTED' })
})
