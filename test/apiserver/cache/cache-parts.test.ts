import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { EventWindow } from '../../../apiserver/cache/event-window.ts'
import { FanOut } from '../../../apiserver/cache/fan-out.ts'
import { compareKeys } from '../../../apiserver/store-keys.ts'
import { RetainedRoots } from '../../../apiserver/cache/retained-roots.ts'
import { SortedObjects } from '../../../apiserver/cache/sorted-objects.ts'
import type { CachedObject } from '../../../apiserver/types.ts'
import { createTestEnv, settle } from '../doubles.ts'

const prefix = '/registry/things/'
const object = (key: string, revision = 1, bytes = 10): CachedObject => ({
  key,
  revision,
  stored: new Uint8Array(bytes),
  offsets: { body: 0, metadata: 0, resourceVersion: 0, commaBefore: false, commaAfter: false, metadataEnd: 0 },
  name: key,
  namespace: '',
  uid: '',
  labels: {},
  fields: {},
  deleting: false,
})
const seeded = process.env['SEED'] === undefined ? {} : { seed: Number(process.env['SEED']) }

test('keys order by their UTF-8 bytes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
      assert.equal(Math.sign(compareKeys(a, b)), Buffer.compare(Buffer.from(a), Buffer.from(b)))
    }),
    seeded,
  )
  assert.ok(compareKeys('\uffff', '\u{1f600}') < 0)
})

test('sorted objects agree with a sorted map, and old roots never change', () => {
  const change = fc.record({ key: fc.integer({ min: 0, max: 900 }), remove: fc.boolean() })
  fc.assert(
    fc.property(fc.array(change, { minLength: 100, maxLength: 2_000 }), (changes) => {
      const twin = new Map<string, CachedObject>()
      let root = SortedObjects.empty(prefix)
      let kept: { root: SortedObjects; keys: string[] } | undefined
      const keysOf = (of: SortedObjects, under = prefix, from?: string): string[] =>
        of.range(under, from).map(({ key }) => key)
      for (const [index, { key: number, remove }] of changes.entries()) {
        const key = `${prefix}ns-${number % 7}/name-${number}`
        if (remove && index > 50) {
          twin.delete(key)
          root = root.without(key)
        } else {
          twin.set(key, object(key, index))
          root = root.with(twin.get(key)!)
        }
        if (index === 60) kept = { root, keys: keysOf(root) }
      }
      const sorted = [...twin.keys()].toSorted((a, b) => compareKeys(a, b))
      assert.deepEqual(keysOf(root), sorted)
      assert.equal(root.size, twin.size)
      for (const [key, value] of twin) assert.equal(root.get(key), value)
      assert.equal(root.get(`${prefix}nothing`), undefined)
      const under = `${prefix}ns-3/`
      assert.deepEqual(
        keysOf(root, under),
        sorted.filter((key) => key.startsWith(under)),
      )
      const from = `${under}name-3\u0000`
      assert.deepEqual(
        keysOf(root, under, from),
        sorted.filter((key) => key.startsWith(under) && key >= from),
      )
      assert.deepEqual(kept && keysOf(kept.root), kept?.keys)
      assert.deepEqual(keysOf(SortedObjects.from(prefix, root.range(prefix))), sorted)
    }),
    { numRuns: 25, ...seeded },
  )
})

test('sorted objects hold thousands, in order of arrival or against it', () => {
  for (const reverse of [false, true]) {
    const keys = Array.from({ length: 5_000 }, (_, index) => `${prefix}${String(index).padStart(5, '0')}`)
    let root = SortedObjects.empty(prefix)
    for (const key of reverse ? keys.toReversed() : keys) root = root.with(object(key))
    assert.deepEqual(
      root.range(prefix).map(({ key }) => key),
      keys,
    )
    for (const key of keys) root = root.without(key)
    assert.equal(root.size, 0)
    assert.deepEqual(root.range(prefix), [])
  }
})

test('the window keeps young events up to its bounds, and a minimum of old ones', () => {
  const window = new EventWindow(10, { eventsMin: 3, eventsMax: 5, ageMs: 1_000, bytesMax: 100_000 })
  for (let index = 0; index < 5; index++) window.push({ revision: 20 + index * 10, object: object('a') }, 0)
  assert.equal(window.length, 5)
  assert.equal(window.startRevision, 10)
  assert.equal(window.sequenceAt(9), undefined)
  assert.equal(window.sequenceAt(10), 0)
  assert.equal(window.sequenceAt(29), 1)
  assert.equal(window.sequenceAt(30), 2)
  assert.equal(window.sequenceAt(999), 5)
  window.push({ revision: 70, object: object('a') }, 10)
  assert.equal(window.length, 5)
  assert.equal(window.startRevision, 20)
  assert.equal(window.sequenceAt(19), undefined)
  assert.equal(window.sequenceAt(20), 1)
  window.trim(5_000)
  assert.equal(window.length, 3)
  assert.equal(window.firstSequence, 4)
  assert.equal(window.at(4).revision, 50)
  assert.throws(() => window.at(3), RangeError)
  window.push({ revision: 80, previous: object('a', 1, 200_000) }, 5_000)
  assert.equal(window.length, 0, 'an event above the byte bound leaves at once')
  assert.equal(window.startRevision, 80)
  assert.equal(window.lastSequence, 7)
})

test('retained roots leave by count, age and the bytes they keep alive', () => {
  const roots = new RetainedRoots()
  const objects = SortedObjects.empty(prefix)
  for (let revision = 1; revision <= 70; revision++) {
    roots.retain({ prefix, revision, objects, atMs: revision, supersededBytes: 0 })
  }
  assert.equal(roots.size, 64)
  assert.equal(roots.find(prefix, 6), undefined)
  assert.equal(roots.find(prefix, 7), objects)
  roots.trim(300_000 + 50, () => 0)
  assert.equal(roots.find(prefix, 49), undefined)
  assert.equal(roots.find(prefix, 50), objects)
  roots.trim(100, () => 33 * 1024 * 1024)
  assert.equal(roots.size, 0)
})

test('a live watcher that a burst within one turn has passed is told so', async () => {
  const window = new EventWindow(1, { eventsMin: 2, eventsMax: 4, ageMs: 1_000, bytesMax: 100_000 })
  const fanOut = new FanOut(createTestEnv(), window, () => 10)
  const taken: number[] = []
  const ends: string[] = []
  const attachment = fanOut.attach(
    {
      namespace: '',
      name: '',
      take: (event) => taken.push(event.sequence) > 0,
      flush() {},
      onEnd: (reason) => void ends.push(reason),
    },
    0,
  )
  assert.equal(attachment.settledRevision(), 10)
  for (let index = 0; index < 3; index++) window.push({ revision: 2 + index, object: object('a') }, 0)
  fanOut.onEvents()
  assert.equal(attachment.settledRevision(), 1, 'nothing of the round has been handed over yet')
  await settle(2)
  assert.deepEqual(taken, [1, 2, 3])
  assert.equal(attachment.settledRevision(), 10)
  for (let index = 0; index < 6; index++) window.push({ revision: 5 + index, object: object('a') }, 0)
  fanOut.onEvents()
  await settle(2)
  assert.deepEqual(taken, [1, 2, 3])
  assert.deepEqual(ends, ['expired'])
  assert.equal(fanOut.watcherCount, 0)
})
