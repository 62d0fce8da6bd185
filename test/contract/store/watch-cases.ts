import assert from 'node:assert/strict'
import type { StoreCase } from './store-contract.ts'
import { options, type StoreHarness } from './store-harness.ts'
import { WatchRecorder, type PlainEvent } from './watch-recorder.ts'

function watch(h: StoreHarness, startRevision: number, more: { readonly prevKv?: boolean } = {}) {
  const recorder = new WatchRecorder()
  const watcher = h.store.watch({ ...h.all, startRevision, prevKv: more.prevKv === true }, recorder)
  return { recorder, watcher }
}

function short(h: StoreHarness, events: readonly PlainEvent[]): string[] {
  return events.map(({ type, kv, prevKv }) => {
    const before = prevKv === undefined ? '' : ` was ${prevKv.value}`
    return `${type} ${kv.key.slice(h.prefix.length)}=${kv.value}${before}`
  })
}

export const watchCases: readonly StoreCase[] = [
  {
    name: 'a watch from the past replays and goes on live without a gap',
    async run(h) {
      const first = await h.put('a', '1')
      await h.put('a', '2')
      const { recorder, watcher } = watch(h, first)
      await h.put('b', '3')
      await h.delete('a')
      const events = await recorder.untilEvents(4)
      assert.deepEqual(short(h, events), ['put a=1', 'put a=2', 'put b=3', 'delete a='])
      assert.deepEqual(
        events.map((event) => event.kv.mod),
        [first, first + 1, first + 2, first + 3],
      )
      watcher.cancel()
    },
  },
  {
    name: 'a delete event carries key and revision alone',
    async run(h) {
      const first = await h.put('a', '1')
      const deleted = await h.delete('a')
      const { recorder, watcher } = watch(h, first)
      const event = (await recorder.untilEvents(2))[1]
      assert.deepEqual(event, {
        type: 'delete',
        kv: { key: `${h.prefix}a`, value: '', create: 0, mod: deleted, version: 0, lease: 0n },
      })
      watcher.cancel()
    },
  },
  {
    name: 'previous values come with live and with replayed events',
    async run(h) {
      const before = await h.store.currentRevision(options)
      const live = watch(h, before + 1, { prevKv: true })
      await h.put('a', '1')
      await h.put('a', '2')
      await h.delete('a')
      await h.put('a', '3')
      const replayed = watch(h, before + 1, { prevKv: true })
      const expected = ['put a=1', 'put a=2 was 1', 'delete a= was 2', 'put a=3']
      assert.deepEqual(short(h, await live.recorder.untilEvents(4)), expected)
      assert.deepEqual(short(h, await replayed.recorder.untilEvents(4)), expected)
      live.watcher.cancel()
      replayed.watcher.cancel()
    },
  },
  {
    name: 'all events of one revision come in one batch, in the order of the operations',
    async run(h) {
      const before = await h.store.currentRevision(options)
      const { recorder, watcher } = watch(h, before + 1)
      await h.put('c', '0')
      await h.txn([h.putOp('b', '1'), h.putOp('a', '1'), h.deleteOp('c')])
      assert.deepEqual(short(h, await recorder.untilEvents(4)), ['put c=0', 'put b=1', 'put a=1', 'delete c='])
      const last = recorder.batches.at(-1)
      assert.ok((last?.events.length ?? 0) >= 3)
      assert.ok((last?.revision ?? 0) >= before + 2)
      watcher.cancel()
    },
  },
  {
    name: 'only keys of the range arrive',
    async run(h) {
      const before = await h.store.currentRevision(options)
      const recorder = new WatchRecorder()
      const one = h.store.watch({ key: h.key('b'), startRevision: before + 1, prevKv: false }, recorder)
      for (const name of ['a', 'b', 'ba', 'c']) await h.put(name, name)
      await h.put('b', 'last')
      assert.deepEqual(short(h, await recorder.untilEvents(2)), ['put b=b', 'put b=last'])
      one.cancel()
    },
  },
  {
    name: 'an open range gets everything from its start on',
    async run(h) {
      const before = await h.store.currentRevision(options)
      const recorder = new WatchRecorder()
      const rangeEnd = Uint8Array.of(0)
      const watcher = h.store.watch({ key: h.key('b'), rangeEnd, startRevision: before + 1, prevKv: false }, recorder)
      for (const name of ['a', 'b', 'c']) await h.put(name, name)
      assert.deepEqual(short(h, await recorder.untilEvents(2)), ['put b=b', 'put c=c'])
      watcher.cancel()
    },
  },
  {
    name: 'a watch that starts in the future gets nothing older',
    async run(h) {
      const now = await h.store.currentRevision(options)
      const { recorder, watcher } = watch(h, now + 3)
      for (const value of ['1', '2', '3', '4']) await h.put('a', value)
      assert.deepEqual(short(h, await recorder.untilEvents(2)), ['put a=3', 'put a=4'])
      watcher.cancel()
    },
  },
  {
    name: 'a watch that starts in the future gets no progress before its start either',
    needs: 'noProgressBeforeStart',
    async run(h) {
      const now = await h.put('a', '0')
      const { recorder, watcher } = watch(h, now + 2)
      watcher.requestProgress()
      await h.put('a', '1')
      await h.put('a', '2')
      await recorder.until(() => recorder.progress.length === 1)
      assert.deepEqual([short(h, recorder.events), recorder.progress], [['put a=2'], [now + 2]])
      watcher.cancel()
    },
  },
  {
    name: 'progress of an idle watch tells the revision of the store (B8)',
    async run(h) {
      const { recorder, watcher } = watch(h, 0)
      const now = await h.store.currentRevision(options)
      watcher.requestProgress()
      await recorder.until(() => recorder.progress.length > 0)
      assert.ok((recorder.progress[0] ?? 0) >= now)
      assert.deepEqual(recorder.events, [])
      watcher.cancel()
    },
  },
  {
    name: 'progress comes behind the events it covers (B4)',
    needs: 'progressBehindEvents',
    async run(h) {
      const first = await h.put('a', '0')
      let last = first
      for (let value = 1; value < 50; value += 1) last = await h.put('a', String(value))
      const { recorder, watcher } = watch(h, first)
      watcher.requestProgress()
      await recorder.until(() => recorder.progress.length > 0)
      assert.equal(recorder.events.length, 50)
      assert.equal(recorder.batches.at(-1)?.events.length, 0)
      assert.ok((recorder.progress[0] ?? 0) >= last)
      watcher.cancel()
    },
  },
  {
    name: 'a watch below the compact revision ends with it',
    async run(h) {
      const first = await h.put('a', '1')
      const second = await h.put('a', '2')
      await h.store.compact({ revision: second, physical: false }, options)
      const { recorder } = watch(h, first)
      const reason = await recorder.untilEnd()
      assert.deepEqual([reason?.code, reason?.compactRevision], ['ERR_COMPACTED', second])
      assert.deepEqual(recorder.events, [])
    },
  },
  {
    name: 'a watch exactly at the compact revision sees the put there',
    async run(h) {
      await h.put('a', '1')
      const second = await h.put('a', '2')
      await h.put('a', '3')
      await h.store.compact({ revision: second, physical: true }, options)
      const { recorder, watcher } = watch(h, second)
      assert.deepEqual(short(h, await recorder.untilEvents(2)), ['put a=2', 'put a=3'])
      watcher.cancel()
    },
  },
  {
    name: 'a watch exactly at the compact revision sees the deletion there (B2)',
    needs: 'tombstoneAtCompactRevision',
    async run(h) {
      await h.put('a', '1')
      const deleted = await h.delete('a')
      await h.store.compact({ revision: deleted, physical: true }, options)
      const { recorder, watcher } = watch(h, deleted)
      assert.deepEqual(short(h, await recorder.untilEvents(1)), ['delete a='])
      watcher.cancel()
    },
  },
  {
    name: 'a watch for previous values that are compacted ends, the next revision has them (B9)',
    needs: 'previousValueOrCompacted',
    async run(h) {
      await h.put('a', '1')
      const second = await h.put('a', '2')
      await h.delete('a')
      await h.store.compact({ revision: second, physical: true }, options)
      const reason = await watch(h, second, { prevKv: true }).recorder.untilEnd()
      assert.deepEqual([reason?.code, reason?.compactRevision], ['ERR_COMPACTED', second + 1])
      const { recorder, watcher } = watch(h, second + 1, { prevKv: true })
      assert.deepEqual(short(h, await recorder.untilEvents(1)), ['delete a= was 2'])
      watcher.cancel()
    },
  },
  {
    name: 'a live watch survives compaction at the head',
    async run(h) {
      const first = await h.put('a', '1')
      const { recorder, watcher } = watch(h, first, { prevKv: true })
      await recorder.untilEvents(1)
      const second = await h.put('a', '2')
      await recorder.untilEvents(2)
      await h.store.compact({ revision: second, physical: true }, options)
      await h.delete('a')
      assert.deepEqual(short(h, (await recorder.untilEvents(3)).slice(2)), ['delete a= was 2'])
      watcher.cancel()
    },
  },
  {
    name: 'a watch of an empty range ends at once',
    async run(h) {
      const recorder = new WatchRecorder()
      h.store.watch({ key: h.key('b'), rangeEnd: h.key('a'), startRevision: 0, prevKv: false }, recorder)
      assert.equal((await recorder.untilEnd())?.code, 'ERR_EMPTY_KEY')
    },
  },
  {
    name: 'a cancelled watch ends once, without a reason, and hears nothing more',
    async run(h) {
      const { recorder, watcher } = watch(h, 0)
      watcher.cancel()
      watcher.cancel()
      assert.equal(await recorder.untilEnd(), undefined)
      const other = watch(h, (await h.store.currentRevision(options)) + 1)
      await h.put('a', '1')
      await other.recorder.untilEvents(1)
      assert.deepEqual(recorder.batches, [])
      other.watcher.cancel()
    },
  },
  {
    name: 'many revisions replay completely and in order',
    async run(h) {
      const first = (await h.store.currentRevision(options)) + 1
      const count = 1200
      await Promise.all(Array.from({ length: count }, (_, position) => h.put(`k${position % 7}`, String(position))))
      const { recorder, watcher } = watch(h, first, { prevKv: true })
      const events = await recorder.untilEvents(count)
      assert.deepEqual(
        events.map((event) => event.kv.mod),
        Array.from({ length: count }, (_, n) => first + n),
      )
      assert.ok(events.every((event) => event.kv.version > 1 === (event.prevKv !== undefined)))
      watcher.cancel()
    },
  },
]
