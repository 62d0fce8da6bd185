import assert from 'node:assert/strict'
import test from 'node:test'
import { createMemoryStore, StorageError, type Store, type WatchBatch, type WatchSink } from '../../../storage/index.ts'
import { createTestEnv, settle, until } from '../doubles.ts'
import { configMap, createReadApi, type ReadApi, signal, story } from '../read/read-api.ts'

/** A store whose watch over everything can be ended by the test, as when its replica goes away. */
function breakableStore(): {
  readonly store: Store
  readonly end: (reason: StorageError | undefined) => void
  readonly watches: () => number
  readonly send: (batch: WatchBatch) => void
} {
  const inner = createMemoryStore({ env: createTestEnv() })
  let current: { sink: WatchSink; cancel(): void } | undefined
  let opened = 0
  const store: Store = {
    range: (request, options) => inner.range(request, options),
    txn: (request, options) => inner.txn(request, options),
    currentRevision: (options) => inner.currentRevision(options),
    watch(request, sink) {
      if (Buffer.from(request.key).toString() !== '/registry/') return inner.watch(request, sink)
      opened++
      let ended = false
      const watcher = inner.watch(request, {
        onBatch: (batch) => {
          if (!ended) sink.onBatch(batch)
        },
        onEnd: (reason) => {
          if (!ended) sink.onEnd(reason)
        },
      })
      current = {
        sink,
        cancel() {
          ended = true
          watcher.cancel()
        },
      }
      return watcher
    },
    compact: (request, options) => inner.compact(request, options),
    leaseGrant: (request, options) => inner.leaseGrant(request, options),
    leaseKeepAlive: (id, options) => inner.leaseKeepAlive(id, options),
    leaseRevoke: (id, options) => inner.leaseRevoke(id, options),
    leaseTimeToLive: (id, options) => inner.leaseTimeToLive(id, options),
    status: () => inner.status(),
    close: () => inner.close(),
  }
  return {
    store,
    end(reason) {
      const ending = current
      ending?.cancel()
      ending?.sink.onEnd(reason)
    },
    watches: () => opened,
    send: (batch) => current?.sink.onBatch(batch),
  }
}

async function withApi(
  options: Parameters<typeof createReadApi>[0],
  run: (api: ReadApi) => Promise<void>,
): Promise<void> {
  const api = await createReadApi(options)
  try {
    await run(api)
  } finally {
    await api.close()
  }
}

test('what is in the store before the cache starts is loaded, page by page', async () => {
  const store = createMemoryStore({ env: createTestEnv() })
  for (let index = 0; index < 1_203; index++) {
    const name = `cm-${String(index).padStart(4, '0')}`
    const value = Buffer.from(
      `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"${name}","namespace":"default"}}`,
    )
    const key = Buffer.from(`/registry/configmaps/default/${name}`)
    await store.txn({ compare: [], success: [{ type: 'put', key, value }], failure: [] }, { signal })
  }
  await withApi({ store }, async (api) => {
    assert.equal(api.cache.list('/registry/configmaps/').length, 1_203)
    assert.equal(api.cache.revision, 1_204)
    assert.equal(api.cache.get('/registry/configmaps/default/cm-0700')?.revision, 702)
    assert.equal(api.cache.get('/registry/secrets/default/cm-0700'), undefined)
  })
})

test('services and their longer prefix are kept apart', () =>
  withApi({}, async (api) => {
    await api.put('services', { metadata: { name: 's', namespace: 'default' }, spec: {} })
    await api.put('endpoints', { metadata: { name: 's', namespace: 'default' } })
    assert.equal(api.cache.list('/registry/services/specs/').length, 1)
    assert.equal(api.cache.list('/registry/services/endpoints/default/').length, 1)
    assert.ok(api.cache.get('/registry/services/specs/default/s'))
  }))

test('a store watch that ends is opened again where it stopped: watchers see no gap', async () => {
  const { store, end, watches } = breakableStore()
  await withApi({ store }, async (api) => {
    const { reply } = api.ask('watch', 'configmaps', { query: 'resourceVersion=1' })
    await api.put('configmaps', configMap('a'))
    await settle()
    end(new StorageError('ERR_STOPPED', 'the replica stopped'))
    await api.put('configmaps', configMap('b'))
    await api.put('configmaps', configMap('c'))
    api.env.advance(1_000)
    await until(() => story(reply).length === 3, 'all events')
    assert.deepEqual(story(reply), ['ADDED a 2', 'ADDED b 3', 'ADDED c 4'])
    assert.equal(watches(), 2)
  })
})

test('a cache that fell behind compaction loads anew and ends its watchers', async () => {
  const { store, end, watches } = breakableStore()
  await withApi({ store }, async (api) => {
    await api.put('configmaps', configMap('gone'))
    const { reply, done } = api.ask('watch', 'configmaps', { query: 'resourceVersion=2' })
    await settle()
    end(new StorageError('ERR_STOPPED', 'the replica stopped'))
    await api.remove('configmaps', 'default', 'gone')
    await api.put('configmaps', configMap('new'))
    await api.compact(4)
    api.env.advance(1_000)
    await done
    assert.equal(reply.memory.ended, true)
    await until(() => api.cache.revision === 4, 'the new load')
    assert.deepEqual(
      api.cache.list('/registry/configmaps/').map(({ name }) => name),
      ['new'],
    )
    assert.equal(watches(), 3)
    await api.put('configmaps', configMap('newer'))
    assert.equal(api.cache.revision, 5)
  })
})

test('a row that is no object is left out, the others are served', () =>
  withApi({}, async (api) => {
    const op = {
      type: 'put' as const,
      key: Buffer.from('/registry/configmaps/default/bad'),
      value: Buffer.from('k8s\0…'),
    }
    await api.store.txn({ compare: [], success: [op], failure: [] }, { signal })
    await api.put('configmaps', configMap('good'))
    assert.deepEqual(
      api.cache.list('/registry/configmaps/').map(({ name }) => name),
      ['good'],
    )
  }))

test('a read waits for its revision and no longer; closing fails it', () =>
  withApi({}, async (api) => {
    const wait = api.cache.waitUntil(2, { signal })
    await api.put('configmaps', configMap('a'))
    await wait
    const aborted = new AbortController()
    const cut = api.cache.waitUntil(99, { signal: aborted.signal })
    aborted.abort()
    await assert.rejects(cut)
    const open = api.cache.waitUntil(99, { signal })
    api.cache.close()
    await assert.rejects(open, /shutting down/)
  }))

test('B5 a store that repeats old revisions changes nothing', async () => {
  const { store, send } = breakableStore()
  await withApi({ store }, async (api) => {
    await api.put('configmaps', configMap('a'))
    await api.put('configmaps', configMap('a', { data: 'new' }))
    const { kvs } = await store.range({ key: Buffer.from('/registry/configmaps/default/a'), revision: 2 }, { signal })
    const { reply } = api.ask('watch', 'configmaps', { query: 'resourceVersion=3' })
    await settle()
    send({ revision: 2, events: [{ type: 'put', kv: kvs[0]! }] })
    send({ revision: 3, events: [{ type: 'put', kv: kvs[0]! }] })
    await settle()
    assert.deepEqual(story(reply), [])
    assert.equal(api.cache.get('/registry/configmaps/default/a')?.revision, 3)
    assert.equal(api.cache.revision, 3)
  })
})
