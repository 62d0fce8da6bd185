import assert from 'node:assert/strict'
import type { StoreCase } from './store-contract.ts'
import { options, rejects, text } from './store-harness.ts'
import { WatchRecorder } from './watch-recorder.ts'

export const leaseCases: readonly StoreCase[] = [
  {
    name: 'a lease without an id gets a positive one',
    async run(h) {
      const lease = await h.store.leaseGrant({ ttlSeconds: 100 }, options)
      assert.ok(lease.id > 0n && lease.id < 2n ** 63n)
      assert.equal(lease.ttlSeconds, 100)
      await h.store.leaseRevoke(lease.id, options)
    },
  },
  {
    name: 'a time to live below the minimum is raised to 2 s, one above the maximum refused',
    async run(h) {
      const lease = await h.store.leaseGrant({ ttlSeconds: 1 }, options)
      assert.equal(lease.ttlSeconds, 2)
      await h.store.leaseRevoke(lease.id, options)
      await rejects(h.store.leaseGrant({ ttlSeconds: 9_000_000_001 }, options), 'ERR_LEASE_TTL_TOO_LARGE')
    },
  },
  {
    name: 'an id in use is refused, one beyond 2^53 is kept exactly',
    async run(h) {
      const id = 7_587_862_094_425_041_933n
      assert.equal((await h.store.leaseGrant({ id, ttlSeconds: 100 }, options)).id, id)
      await rejects(h.store.leaseGrant({ id, ttlSeconds: 100 }, options), 'ERR_LEASE_EXISTS')
      await h.put('a', '1', { lease: id })
      assert.equal((await h.get('a'))?.lease, id)
      await h.store.leaseRevoke(id, options)
    },
  },
  {
    name: 'granting a lease makes no revision',
    async run(h) {
      const before = await h.put('a', '1')
      const { id } = await h.store.leaseGrant({ ttlSeconds: 100 }, options)
      assert.equal(await h.store.currentRevision(options), before)
      await h.store.leaseRevoke(id, options)
      assert.equal(await h.store.currentRevision(options), before)
    },
  },
  {
    name: 'revoking deletes the attached keys in byte order and in one revision',
    async run(h) {
      const { id } = await h.store.leaseGrant({ ttlSeconds: 100 }, options)
      for (const name of ['c', 'a', 'b']) await h.put(name, name, { lease: id })
      const last = await h.put('free', 'x')
      const recorder = new WatchRecorder()
      const watcher = h.store.watch({ ...h.all, startRevision: last + 1, prevKv: false }, recorder)
      await h.store.leaseRevoke(id, options)
      const events = await recorder.untilEvents(3)
      assert.deepEqual(
        events.map((event) => [event.type, event.kv.key.slice(h.prefix.length), event.kv.mod]),
        ['a', 'b', 'c'].map((name) => ['delete', name, last + 1]),
      )
      assert.deepEqual(await h.list(), ['free=x'])
      watcher.cancel()
    },
  },
  {
    name: 'a put without the lease detaches the key, one with another lease moves it',
    async run(h) {
      const one = await h.store.leaseGrant({ ttlSeconds: 100 }, options)
      const two = await h.store.leaseGrant({ ttlSeconds: 100 }, options)
      await h.put('detached', '1', { lease: one.id })
      await h.put('detached', '2')
      await h.put('moved', '1', { lease: one.id })
      await h.put('moved', '2', { lease: two.id })
      await h.store.leaseRevoke(one.id, options)
      assert.deepEqual(await h.list(), ['detached=2', 'moved=2'])
      await h.store.leaseRevoke(two.id, options)
      assert.deepEqual(await h.list(), ['detached=2'])
    },
  },
  {
    name: 'a deleted key does not come back to its lease',
    async run(h) {
      const { id } = await h.store.leaseGrant({ ttlSeconds: 100 }, options)
      await h.put('a', '1', { lease: id })
      await h.delete('a')
      await h.put('a', '2')
      await h.store.leaseRevoke(id, options)
      assert.deepEqual(await h.list(), ['a=2'])
    },
  },
  {
    name: 'a put with an unknown lease refuses the whole transaction',
    async run(h) {
      const before = await h.store.currentRevision(options)
      await rejects(h.txn([h.putOp('a', '1'), h.putOp('b', '1', { lease: 4242n })]), 'ERR_LEASE_NOT_FOUND')
      assert.deepEqual([await h.list(), await h.store.currentRevision(options)], [[], before])
    },
  },
  {
    name: 'keep-alive, time to live and revoke do not know a lease that is gone',
    async run(h) {
      const { id } = await h.store.leaseGrant({ ttlSeconds: 100 }, options)
      assert.equal(await h.store.leaseKeepAlive(id, options), 100)
      await h.store.leaseRevoke(id, options)
      await rejects(h.store.leaseKeepAlive(id, options), 'ERR_LEASE_NOT_FOUND')
      await rejects(h.store.leaseTimeToLive(id, options), 'ERR_LEASE_NOT_FOUND')
      await rejects(h.store.leaseRevoke(id, options), 'ERR_LEASE_NOT_FOUND')
    },
  },
  {
    name: 'time to live tells what was granted, what is left, and the keys',
    async run(h) {
      const { id } = await h.store.leaseGrant({ ttlSeconds: 100 }, options)
      await h.put('b', '1', { lease: id })
      await h.put('a', '1', { lease: id })
      const told = await h.store.leaseTimeToLive(id, { ...options, keys: true })
      assert.equal(told.grantedTtlSeconds, 100)
      assert.ok(told.ttlSeconds > 0 && told.ttlSeconds <= 100)
      assert.deepEqual(told.keys.map(text).sort(), [`${h.prefix}a`, `${h.prefix}b`])
      assert.deepEqual((await h.store.leaseTimeToLive(id, options)).keys, [])
      await h.store.leaseRevoke(id, options)
    },
  },
  {
    name: 'a lease that nobody renews ends, and its keys with it',
    async run(h) {
      const { id } = await h.store.leaseGrant({ ttlSeconds: 2 }, options)
      const put = await h.put('a', '1', { lease: id })
      const recorder = new WatchRecorder()
      const watcher = h.store.watch({ ...h.all, startRevision: put + 1, prevKv: false }, recorder)
      assert.equal((await recorder.untilEvents(1))[0]?.type, 'delete')
      watcher.cancel()
    },
  },
]
