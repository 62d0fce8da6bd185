import assert from 'node:assert/strict'
import test from 'node:test'
import { bytes } from '../../contract/store/store-harness.ts'
import { seededRandom } from '../../contract/store/random-program.ts'
import { WatchRecorder } from '../../contract/store/watch-recorder.ts'
import { EngineRig } from './manual-env.ts'

const everything = { key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0) }

function watch(rig: EngineRig, startRevision: number, prevKv = false) {
  const recorder = new WatchRecorder()
  return { recorder, watcher: rig.engine.watch({ ...everything, startRevision, prevKv }, recorder) }
}

const revisions = (recorder: WatchRecorder) => recorder.events.map((event) => event.kv.mod)
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

test('B1: watchers that compaction overtakes end as compacted, nothing is skipped', () => {
  const rig = new EngineRig({ physicalLimit: () => rig.engine.compactRevision })
  rig.put('a', '0')
  const slow = Array.from({ length: 200 }, () => watch(rig, 2, true))
  rig.scheduler.turn()
  // The replay stands still from here: 10,000 revisions come, then history goes.
  for (let n = 0; n < 5_000; n += 1) rig.put(`k${n % 10}`, String(n))
  const behind = Array.from({ length: 200 }, () => watch(rig, 3, true))
  for (let n = 0; n < 5_000; n += 1) rig.put(`k${n % 10}`, String(n))
  rig.compact(rig.engine.revision - 10)
  rig.scheduler.settle()
  for (const { recorder } of [...slow, ...behind]) {
    const seen = revisions(recorder)
    assert.deepEqual(seen, range(seen[0] ?? 0, (seen[0] ?? 0) + seen.length - 1), 'no gap in what arrived')
    if (recorder.ended) {
      assert.deepEqual(
        [recorder.reason?.code, recorder.reason?.compactRevision],
        ['ERR_COMPACTED', rig.engine.compactRevision],
      )
    } else assert.equal(seen.at(-1), rig.engine.revision)
  }
  assert.ok(behind.every(({ recorder }) => recorder.ended))
  assert.ok(slow.every(({ recorder }) => !recorder.ended))
})

test('B2: the deletion exactly at the compacted revision is replayed', () => {
  const rig = new EngineRig({ physicalLimit: () => rig.engine.compactRevision })
  rig.put('a', '1')
  const deleted = rig.delete('a')
  rig.compact(deleted)
  rig.scheduler.settle()
  const { recorder } = watch(rig, deleted)
  rig.scheduler.settle()
  assert.deepEqual(
    recorder.events.map((event) => [event.type, event.kv.mod]),
    [['delete', deleted]],
  )
})

test('B4: progress asked for by another sink in the middle of a revision waits for its events', () => {
  const rig = new EngineRig()
  const second = new WatchRecorder()
  const first = new WatchRecorder()
  let ask = () => {}
  rig.engine.watch(
    { ...everything, startRevision: 0, prevKv: false },
    {
      onBatch: (batch) => {
        first.onBatch(batch)
        ask()
      },
      onEnd: (reason) => first.onEnd(reason),
    },
  )
  const watcher = rig.engine.watch({ key: bytes('a'), startRevision: 0, prevKv: false }, second)
  ask = () => watcher.requestProgress()
  const revision = rig.put('a', '1')
  rig.scheduler.settle()
  assert.deepEqual(
    second.batches.map((batch) => [batch.revision, batch.events.length]),
    [
      [revision, 1],
      [revision, 0],
    ],
  )
})

test('B4: progress asked for while a watch is behind comes after the last replayed event', () => {
  const rig = new EngineRig()
  for (let n = 0; n < 2_000; n += 1) rig.put('a', String(n))
  const { recorder, watcher } = watch(rig, 2)
  watcher.requestProgress()
  rig.scheduler.settle()
  assert.deepEqual(revisions(recorder), range(2, 2_001))
  assert.deepEqual([recorder.progress, recorder.batches.at(-1)?.events], [[2_001], []])
})

test('B5: watchers taken over by another engine get what they lack, nothing twice, and no progress going back', () => {
  const [ahead, behind] = [new EngineRig(), new EngineRig()]
  const { recorder, watcher } = watch(ahead, 0)
  for (const rig of [ahead, behind]) for (let n = 2; n <= 5; n += 1) rig.put('a', String(n))
  for (let n = 6; n <= 8; n += 1) ahead.put('a', String(n))
  assert.deepEqual(revisions(recorder), range(2, 8))
  const detached = ahead.engine.detachWatchers()
  watcher.requestProgress()
  behind.engine.attachWatchers(detached)
  behind.scheduler.settle()
  for (let n = 6; n <= 10; n += 1) behind.put('a', String(n))
  behind.scheduler.settle()
  assert.deepEqual(revisions(recorder), range(2, 10))
  assert.deepEqual(recorder.progress, [10])
  // And the other way: the new engine is ahead.
  const further = new EngineRig()
  for (let n = 2; n <= 15; n += 1) further.put('a', String(n))
  further.engine.attachWatchers(behind.engine.detachWatchers())
  further.scheduler.settle()
  assert.deepEqual(revisions(recorder), range(2, 15))
  watcher.cancel()
  assert.deepEqual([recorder.ended, further.engine.watcherCount], [true, 0])
})

test('B7: a thousand watchers made while writes go on see every revision from their start', () => {
  const seed = Number(process.env['SEED'] ?? 7)
  const random = seededRandom(seed)
  const rig = new EngineRig()
  const made: { readonly start: number; readonly recorder: WatchRecorder }[] = []
  while (made.length < 1000) {
    const dice = random(10)
    if (dice < 3) rig.put(`k${random(5)}`, 'x')
    else if (dice < 5) rig.scheduler.turn()
    else {
      const start = Math.max(1, rig.engine.revision - random(20) + 3)
      made.push({ start, recorder: watch(rig, start, random(2) === 0).recorder })
    }
  }
  for (let n = 0; n < 5; n += 1) rig.put('last', 'x')
  rig.scheduler.settle()
  for (const { start, recorder } of made) {
    assert.deepEqual(revisions(recorder), range(Math.max(2, start), rig.engine.revision), `SEED=${seed} start ${start}`)
  }
})

test('B8: an idle live watch gets the progress it asks for, each time once', () => {
  const rig = new EngineRig()
  rig.put('a', '1')
  const { recorder, watcher } = watch(rig, 0)
  watcher.requestProgress()
  watcher.requestProgress()
  rig.scheduler.settle()
  watcher.requestProgress()
  rig.scheduler.settle()
  assert.deepEqual(recorder.progress, [2, 2])
})

test('B9: a previous value that is compacted ends the watch, and resuming where it says works', () => {
  const rig = new EngineRig()
  rig.put('a', '1')
  const second = rig.put('a', '2')
  rig.put('a', '3')
  rig.compact(second)
  const { recorder } = watch(rig, second, true)
  rig.scheduler.settle()
  assert.deepEqual([recorder.reason?.code, recorder.events], ['ERR_COMPACTED', []])
  const resumed = watch(rig, recorder.reason?.compactRevision ?? 0, true).recorder
  rig.scheduler.settle()
  assert.deepEqual(
    resumed.events.map((event) => event.prevKv?.value),
    ['2'],
  )
})

test('a creation exactly at the compacted revision needs no previous value', () => {
  const rig = new EngineRig()
  const created = rig.put('a', '1')
  rig.compact(created)
  const { recorder } = watch(rig, created, true)
  rig.scheduler.settle()
  assert.deepEqual(revisions(recorder), [created])
})

test('a replaying watch gets at most 1000 revisions a batch and yields between batches', () => {
  const rig = new EngineRig()
  for (let n = 0; n < 3_000; n += 1) rig.put('a', String(n))
  const { recorder } = watch(rig, 2)
  assert.equal(recorder.batches.length, 0)
  rig.scheduler.turn()
  assert.equal(recorder.batches.length, 1)
  rig.scheduler.settle()
  assert.ok(recorder.batches.every((batch) => batch.events.length <= 1000))
  assert.deepEqual(revisions(recorder), range(2, 3_001))
})

test('a sink that throws loses its watch, the others and the store go on', () => {
  const rig = new EngineRig()
  let reason: string | undefined
  rig.engine.watch(
    { ...everything, startRevision: 0, prevKv: false },
    {
      onBatch: () => {
        throw new Error('broken sink')
      },
      onEnd: (end) => (reason = end?.code),
    },
  )
  const { recorder } = watch(rig, 0)
  rig.put('a', '1')
  rig.put('a', '2')
  assert.equal(reason, 'ERR_STOPPED')
  assert.deepEqual([revisions(recorder), rig.engine.watcherCount], [[2, 3], 1])
})

test('a watch cancelled or made by another sink in the middle of a revision hears nothing of it', () => {
  const rig = new EngineRig()
  const late = new WatchRecorder()
  const victim = new WatchRecorder()
  let act = () => {}
  rig.engine.watch({ ...everything, startRevision: 0, prevKv: false }, { onBatch: () => act(), onEnd: () => {} })
  const watcher = rig.engine.watch({ ...everything, startRevision: 0, prevKv: false }, victim)
  act = () => {
    watcher.cancel()
    rig.engine.watch({ ...everything, startRevision: 0, prevKv: false }, late)
    act = () => {}
  }
  rig.put('a', '1')
  assert.deepEqual([victim.events, victim.ended, late.events], [[], true, []])
  rig.put('a', '2')
  assert.deepEqual(revisions(late), [3])
})

test('closing ends every watch without a reason, later watches end as stopped', () => {
  const rig = new EngineRig()
  const { recorder } = watch(rig, 0)
  rig.engine.close()
  assert.deepEqual([recorder.ended, recorder.reason], [true, undefined])
  const late = watch(rig, 0).recorder
  rig.scheduler.settle()
  assert.equal(late.reason?.code, 'ERR_STOPPED')
})
