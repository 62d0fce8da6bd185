import assert from 'node:assert/strict'
import type { Compare, Op } from '../../../storage/store.ts'
import type { StoreCase } from './store-contract.ts'
import { bytes, options, plainKv, plainResult, rejects, text } from './store-harness.ts'

export const kvCases: readonly StoreCase[] = [
  {
    name: 'a new key has version 1, a put counts it up and keeps where it was created',
    async run(h) {
      const created = await h.put('a', '1')
      const changed = await h.put('a', '2')
      assert.equal(changed, created + 1)
      const key = `${h.prefix}a`
      assert.deepEqual(await h.get('a'), { key, value: '2', create: created, mod: changed, version: 2, lease: 0n })
      assert.deepEqual((await h.get('a', created))?.value, '1')
    },
  },
  {
    name: 'a key put again after its deletion starts over',
    async run(h) {
      await h.put('a', '1')
      await h.put('a', '2')
      const deleted = await h.delete('a')
      assert.equal(await h.get('a'), undefined)
      assert.equal((await h.get('a', deleted - 1))?.value, '2')
      const again = await h.put('a', '3')
      const found = await h.get('a')
      assert.deepEqual([found?.create, found?.version], [again, 1])
    },
  },
  {
    name: 'a transaction that changes nothing makes no revision',
    async run(h) {
      const before = await h.put('a', '1')
      const nothing = await h.txn([h.getOp('a'), h.deleteOp('missing')])
      assert.equal(nothing.revision, before)
      assert.equal(nothing.responses[1]?.count, 0)
      assert.equal((await h.txn([])).revision, before)
      assert.equal(await h.store.currentRevision(options), before)
    },
  },
  {
    name: 'all changes of a transaction have one revision',
    async run(h) {
      await h.put('gone', 'x')
      const { revision } = await h.txn([h.putOp('a', '1'), h.putOp('b', '2'), h.deleteOp('gone')])
      assert.equal((await h.get('a'))?.mod, revision)
      assert.equal((await h.get('b'))?.mod, revision)
      assert.deepEqual(await h.list(), ['a=1', 'b=2'])
    },
  },
  {
    name: 'keys come in byte order, not in order of text',
    async run(h) {
      for (const name of ['b', 'a\xff', 'a', 'a\x00', 'B', '\xc3\xa9']) await h.put(name, '')
      assert.deepEqual(await h.list(), ['B=', 'a=', 'a\x00=', 'a\xff=', 'b=', '\xc3\xa9='])
    },
  },
  {
    name: 'a range is half-open, and empty when its end is not above its start',
    async run(h) {
      for (const name of ['a', 'b', 'c']) await h.put(name, name)
      const names = async (from: string, to: string) => {
        const { kvs } = await h.store.range({ key: h.key(from), rangeEnd: h.key(to) }, options)
        return kvs.map((kv) => text(kv.value)).join('')
      }
      assert.equal(await names('a', 'c'), 'ab')
      assert.equal(await names('b', 'b'), '')
      assert.equal(await names('c', 'a'), '')
    },
  },
  {
    name: 'a range end of one zero byte means every key from the start on',
    async run(h) {
      await h.put('a', '1')
      await h.put('b', '2')
      const { kvs } = await h.store.range({ key: h.key('b'), rangeEnd: Uint8Array.of(0), limit: 1 }, options)
      assert.deepEqual(
        kvs.map((kv) => text(kv.key)),
        [`${h.prefix}b`],
      )
      const every = await h.store.range({ key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0), countOnly: true }, options)
      assert.ok(every.count >= 2)
    },
  },
  {
    name: 'a limit cuts and says so, the count does not notice it',
    async run(h) {
      for (const name of ['a', 'b', 'c']) await h.put(name, name)
      const cut = await h.store.range({ ...h.all, limit: 2 }, options)
      assert.deepEqual([cut.kvs.length, cut.count, cut.more], [2, 3, true])
      const whole = await h.store.range({ ...h.all, limit: 3 }, options)
      assert.deepEqual([whole.kvs.length, whole.count, whole.more], [3, 3, false])
    },
  },
  {
    name: 'keysOnly blanks values, countOnly gives no pairs',
    async run(h) {
      await h.put('a', 'value')
      const keys = await h.store.range({ ...h.all, keysOnly: true }, options)
      assert.deepEqual(
        keys.kvs.map((kv) => [text(kv.value), kv.version]),
        [['', 1]],
      )
      const count = await h.store.range({ ...h.all, countOnly: true }, options)
      assert.deepEqual([count.kvs.length, count.count, count.more], [0, 1, false])
    },
  },
  {
    name: 'a range at an older revision sees that revision, and says the current one',
    async run(h) {
      const first = await h.put('a', '1')
      await h.put('b', '1')
      await h.delete('a')
      const last = await h.put('c', '1')
      const old = await h.store.range({ ...h.all, revision: first }, options)
      assert.deepEqual([old.kvs.length, old.count, old.revision], [1, 1, last])
      assert.deepEqual(await h.list(first + 1), ['a=1', 'b=1'])
    },
  },
  {
    name: 'a serializable range answers too',
    async run(h) {
      await h.put('a', '1')
      assert.equal((await h.store.range({ ...h.all, serializable: true }, options)).count, 1)
    },
  },
  {
    name: 'a range above the current revision is refused',
    async run(h) {
      const now = await h.put('a', '1')
      await rejects(h.store.range({ ...h.all, revision: now + 1 }, options), 'ERR_FUTURE_REVISION')
    },
  },
  {
    name: 'a key that is not given is refused wherever it stands',
    async run(h) {
      const none = new Uint8Array(0)
      await rejects(h.store.range({ key: none }, options), 'ERR_EMPTY_KEY')
      for (const op of [
        { type: 'range', key: none },
        { type: 'put', key: none, value: none },
        { type: 'delete', key: none },
        { type: 'txn', compare: [], success: [{ type: 'delete', key: none }], failure: [] },
      ] satisfies Op[]) {
        await rejects(h.txn([op]), 'ERR_EMPTY_KEY')
      }
      await rejects(h.txn([], [{ key: none, op: '=', target: 'mod', is: 0 }]), 'ERR_EMPTY_KEY')
    },
  },
  {
    name: 'compares look at revision, version, value and lease',
    async run(h) {
      const created = await h.put('a', 'm')
      const changed = await h.put('a', 'm')
      const key = h.key('a')
      const holding: Compare[] = [
        { key, op: '=', target: 'mod', is: changed },
        { key, op: '<', target: 'mod', is: changed + 1 },
        { key, op: '>', target: 'create', is: created - 1 },
        { key, op: '=', target: 'version', is: 2 },
        { key, op: '!=', target: 'version', is: 1 },
        { key, op: '=', target: 'value', is: bytes('m') },
        { key, op: '>', target: 'value', is: bytes('ma').subarray(0, 0) },
        { key, op: '<', target: 'value', is: bytes('ma') },
        { key, op: '=', target: 'lease', is: 0n },
      ]
      for (const compare of holding) assert.ok(await h.succeeds(compare), `${compare.target} ${compare.op}`)
      const failing: Compare[] = [
        { key, op: '=', target: 'mod', is: created },
        { key, op: '>', target: 'version', is: 2 },
        { key, op: '!=', target: 'value', is: bytes('m') },
        { key, op: '>', target: 'lease', is: 0n },
      ]
      for (const compare of failing) assert.ok(!(await h.succeeds(compare)), `${compare.target} ${compare.op}`)
    },
  },
  {
    name: 'on a missing key numbers are 0 and no value compare holds',
    async run(h) {
      const key = h.key('missing')
      for (const target of ['mod', 'create', 'version'] as const) {
        assert.ok(await h.succeeds({ key, op: '=', target, is: 0 }))
        assert.ok(!(await h.succeeds({ key, op: '!=', target, is: 0 })))
      }
      assert.ok(await h.succeeds({ key, op: '=', target: 'lease', is: 0n }))
      for (const op of ['=', '!=', '<', '>'] as const) {
        assert.ok(!(await h.succeeds({ key, op, target: 'value', is: bytes('x') })), op)
      }
    },
  },
  {
    name: 'a compare with a range must hold for every key in it',
    async run(h) {
      await h.put('a', 'x')
      await h.put('b', 'x')
      const all = { key: h.all.key, rangeEnd: h.all.rangeEnd }
      assert.ok(await h.succeeds({ ...all, op: '=', target: 'value', is: bytes('x') }))
      await h.put('b', 'y')
      assert.ok(!(await h.succeeds({ ...all, op: '=', target: 'value', is: bytes('x') })))
      const nothing = { key: h.key('q'), rangeEnd: h.key('r') }
      assert.ok(await h.succeeds({ ...nothing, op: '=', target: 'version', is: 0 }))
      assert.ok(!(await h.succeeds({ ...nothing, op: '=', target: 'value', is: bytes('x') })))
    },
  },
  {
    name: 'a failed compare takes the other branch, and only that',
    async run(h) {
      const missing: Compare = { key: h.key('a'), op: '=', target: 'mod', is: 0 }
      const create = () => h.txn([h.putOp('a', '1')], [missing], [h.getOp('a')])
      assert.equal((await create()).succeeded, true)
      const second = await create()
      assert.equal(second.succeeded, false)
      assert.equal(text(second.responses[0]?.kvs[0]?.value ?? bytes('none')), '1')
    },
  },
  {
    name: 'a read in a transaction sees earlier writes of the same, not later ones',
    async run(h) {
      const result = await h.txn([h.getOp('a'), h.putOp('a', '1'), h.getOp('a'), h.deleteOp('b'), h.putOp('c', '1')])
      assert.equal(result.responses[0]?.count, 0)
      const seen = result.responses[2]?.kvs[0]
      assert.deepEqual(seen && [text(seen.value), seen.modRevision], ['1', result.revision])
    },
  },
  {
    name: 'nested transactions see earlier writes, but compare with the state before all of them',
    async run(h) {
      const nested = (is: number): Op => ({
        type: 'txn',
        compare: [{ key: h.key('a'), op: '=', target: 'version', is }],
        success: [h.getOp('a')],
        failure: [h.putOp(`b${is}`, 'failure')],
      })
      const result = await h.txn([h.putOp('a', '1'), nested(0), nested(1)])
      const [, first, second] = result.responses
      assert.equal(first?.txn?.succeeded, true)
      assert.equal(text(first?.txn?.responses[0]?.kvs[0]?.value ?? bytes('none')), '1')
      assert.equal(second?.txn?.succeeded, false)
      assert.equal((await h.get('b1'))?.mod, result.revision)
    },
  },
  {
    name: 'a put and a delete give the values before them when asked',
    async run(h) {
      await h.put('a', '1')
      await h.put('b', '2')
      const result = await h.txn([
        h.putOp('a', '3', { prevKv: true }),
        h.putOp('new', '4', { prevKv: true }),
        { type: 'delete', key: h.key('b'), rangeEnd: h.key('c'), prevKv: true },
      ])
      const values = result.responses.map((response) => response.prevKvs.map((kv) => text(kv.value)).join())
      assert.deepEqual(values, ['1', '', '2'])
      assert.equal(result.responses[2]?.count, 1)
      const silent = await h.txn([h.putOp('a', '5')])
      assert.equal(silent.responses[0]?.prevKvs.length, 0)
    },
  },
  {
    name: 'a range is deleted in one revision',
    async run(h) {
      for (const name of ['a', 'b', 'c']) await h.put(name, name)
      const before = await h.store.currentRevision(options)
      const result = await h.txn([{ type: 'delete', key: h.key('a'), rangeEnd: h.key('c') }])
      assert.deepEqual([result.revision, result.responses[0]?.count], [before + 1, 2])
      assert.deepEqual(await h.list(), ['c=c'])
      const nothing = await h.txn([{ type: 'delete', key: h.key('a'), rangeEnd: h.key('c') }])
      assert.equal(nothing.revision, before + 1)
    },
  },
  {
    name: 'a key written twice in one branch is refused, in two branches it is not',
    async run(h) {
      await rejects(h.txn([h.putOp('a', '1'), h.putOp('a', '2')]), 'ERR_DUPLICATE_KEY')
      await rejects(h.txn([h.putOp('a', '1'), h.deleteOp('a')]), 'ERR_DUPLICATE_KEY')
      await rejects(h.txn([h.deleteOp('a'), h.putOp('a', '1')]), 'ERR_DUPLICATE_KEY')
      await rejects(
        h.txn([h.putOp('b', '1'), { type: 'delete', key: h.key('a'), rangeEnd: h.key('c') }]),
        'ERR_DUPLICATE_KEY',
      )
      const nested: Op = { type: 'txn', compare: [], success: [h.putOp('a', '1')], failure: [h.putOp('a', '2')] }
      await rejects(h.txn([h.putOp('a', '1'), nested]), 'ERR_DUPLICATE_KEY')
      await rejects(h.txn([h.deleteOp('a'), nested]), 'ERR_DUPLICATE_KEY')
      await h.txn([nested])
      await h.txn([h.putOp('a', '1')], [], [h.putOp('a', '2')])
      await h.txn([h.deleteOp('a'), { type: 'delete', key: h.key('a'), rangeEnd: h.key('c') }])
      assert.deepEqual(await h.list(), [])
    },
  },
  {
    name: 'a refused transaction changes nothing, even when the branch not taken is at fault',
    async run(h) {
      const before = await h.put('a', '1')
      await rejects(h.txn([h.putOp('a', '2')], [], [h.putOp('b', '1'), h.putOp('b', '2')]), 'ERR_DUPLICATE_KEY')
      assert.equal((await h.get('a'))?.value, '1')
      assert.equal(await h.store.currentRevision(options), before)
    },
  },
  {
    name: 'a transaction has at most 128 operations, a nested one what its parent left',
    async run(h) {
      const puts = (count: number, from = 0) =>
        Array.from({ length: count }, (_, position) => h.putOp(`k${from + position}`, 'x'))
      const nested = (count: number): Op => ({ type: 'txn', compare: [], success: puts(count, 1000), failure: [] })
      await h.txn(puts(128))
      await rejects(h.txn(puts(129)), 'ERR_TOO_MANY_OPS')
      const compares = Array.from({ length: 129 }, () => ({ key: h.key('a'), op: '=', target: 'mod', is: 0 }) as const)
      await rejects(h.txn([], compares), 'ERR_TOO_MANY_OPS')
      await h.txn([...puts(27), nested(100)])
      await rejects(h.txn([...puts(28), nested(100)]), 'ERR_TOO_MANY_OPS')
    },
  },
  {
    name: 'a read at a compacted or future revision inside a transaction refuses the whole (B25)',
    async run(h) {
      const first = await h.put('a', '1')
      const second = await h.put('a', '2')
      await h.store.compact({ revision: second, physical: false }, options)
      const at = (revision: number): Op => ({ type: 'range', key: h.key('a'), revision })
      await rejects(h.txn([h.putOp('b', '1'), at(first)]), 'ERR_COMPACTED')
      await rejects(h.txn([h.putOp('b', '1'), at(second + 1)]), 'ERR_FUTURE_REVISION')
      const nested: Op = { type: 'txn', compare: [], success: [at(first)], failure: [] }
      await rejects(h.txn([h.putOp('b', '1'), nested]), 'ERR_COMPACTED')
      assert.deepEqual([await h.get('b'), await h.store.currentRevision(options)], [undefined, second])
      // A branch that is not taken reads nothing.
      assert.equal((await h.txn([h.putOp('b', '1'), at(second)], [], [at(first)])).succeeded, true)
    },
  },
  {
    name: 'after compaction older revisions are refused, the compacted one is not',
    async run(h, capabilities) {
      const first = await h.put('a', '1')
      const second = await h.put('a', '2')
      const third = await h.put('a', '3')
      await h.store.compact({ revision: second, physical: true }, options)
      await rejects(h.store.range({ ...h.all, revision: first }, options), 'ERR_COMPACTED')
      assert.equal((await h.get('a', second))?.value, '2')
      assert.equal((await h.get('a', third))?.value, '3')
      if (capabilities.fullStatus) assert.equal(h.store.status().compactRevision, second)
    },
  },
  {
    name: 'compaction refuses what is compacted and what is to come',
    async run(h) {
      const now = await h.put('a', '1')
      await h.store.compact({ revision: now, physical: true }, options)
      await rejects(h.store.compact({ revision: now, physical: false }, options), 'ERR_COMPACTED')
      await rejects(h.store.compact({ revision: now - 1, physical: false }, options), 'ERR_COMPACTED')
      await rejects(h.store.compact({ revision: now + 1, physical: false }, options), 'ERR_FUTURE_REVISION')
    },
  },
  {
    name: 'the head stays readable when its only row is a compacted tombstone (B17)',
    async run(h) {
      await h.put('a', '1')
      const deleted = await h.delete('a')
      await h.store.compact({ revision: deleted, physical: true }, options)
      const head = await h.store.range({ ...h.all, revision: deleted }, options)
      assert.deepEqual([head.count, head.revision], [0, deleted])
      assert.equal(await h.put('a', '2'), deleted + 1)
    },
  },
  {
    name: 'a large value comes back whole',
    async run(h) {
      const value = 'x'.repeat(1_000_000)
      await h.put('large', value)
      assert.equal((await h.get('large'))?.value, value)
    },
  },
  {
    name: 'an empty value is a value',
    async run(h) {
      await h.put('a', '')
      assert.ok(await h.succeeds({ key: h.key('a'), op: '=', target: 'value', is: new Uint8Array(0) }))
      assert.equal((await h.get('a'))?.value, '')
    },
  },
  {
    name: 'a read-only transaction reads several ranges at one revision',
    async run(h) {
      await h.put('a', '1')
      const now = await h.put('b', '2')
      const result = await h.txn([h.getOp('a'), { type: 'range', ...h.all, limit: 1 }])
      assert.equal(result.revision, now)
      assert.deepEqual(
        result.responses.map((response) => plainResult(response).count),
        [1, 2],
      )
      assert.deepEqual(
        result.responses[1]?.kvs.map(plainKv).map((kv) => kv.value),
        ['1'],
      )
    },
  },
]
