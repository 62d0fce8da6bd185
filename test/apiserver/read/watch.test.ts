import assert from 'node:assert/strict'
import test from 'node:test'
import { ApiError } from '../../../apiserver/errors.ts'
import { MemoryReply, settle, until } from '../doubles.ts'
import { configMap, createReadApi, lines, type ReadApi, story } from './read-api.ts'

async function withApi(
  run: (api: ReadApi) => Promise<void>,
  options?: Parameters<typeof createReadApi>[0],
): Promise<void> {
  const api = await createReadApi(options)
  try {
    await run(api)
  } finally {
    await api.close()
  }
}

test('a watch from a revision gets every later change, deletes with the revision of the delete', () =>
  withApi(async (api) => {
    await api.put('configmaps', configMap('a'))
    const { reply } = api.ask('watch', 'configmaps', { namespace: 'default', query: 'resourceVersion=2' })
    await api.put('configmaps', configMap('b'))
    await api.put('configmaps', configMap('other', { namespace: 'another' }))
    await api.put('configmaps', configMap('b', { data: 'x' }))
    await api.remove('configmaps', 'default', 'a')
    await settle()
    assert.deepEqual(story(reply), ['ADDED b 3', 'MODIFIED b 5', 'DELETED a 6'])
    assert.equal(reply.contentType, 'application/json')
  }))

test('a watch without a revision starts with what is there', () =>
  withApi(async (api) => {
    await api.put('configmaps', configMap('b'))
    await api.put('configmaps', configMap('a'))
    for (const query of ['', 'resourceVersion=0']) {
      const { reply } = api.ask('watch', 'configmaps', { query })
      await settle()
      assert.deepEqual(story(reply), ['ADDED a 3', 'ADDED b 2'])
    }
    const { reply } = api.ask('watch', 'configmaps', {
      query: 'sendInitialEvents=false&resourceVersionMatch=NotOlderThan',
    })
    await settle()
    await api.put('configmaps', configMap('c'))
    await settle()
    assert.deepEqual(story(reply), ['ADDED c 4'])
  }))

test('B59 initial events end with an annotated bookmark: revision unset, "0" and N', () =>
  withApi(async (api) => {
    await api.put('configmaps', configMap('a'))
    await api.put('secrets', { metadata: { name: 's', namespace: 'default' } })
    for (const version of ['', '&resourceVersion=0', '&resourceVersion=2']) {
      const { reply } = api.ask('watch', 'configmaps', {
        query: `sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true${version}`,
      })
      await settle()
      assert.deepEqual(story(reply), ['ADDED a 2', 'BOOKMARK  3'], version)
      assert.deepEqual(lines(reply)[1]?.object, {
        kind: 'ConfigMap',
        apiVersion: 'v1',
        metadata: { resourceVersion: '3', annotations: { 'k8s.io/initial-events-end': 'true' } },
      })
    }
  }))

test('an update that enters the selector is ADDED, one that leaves it DELETED with the old object', () =>
  withApi(async (api) => {
    await api.put('configmaps', configMap('a', { labels: { app: 'x' } }))
    const { reply } = api.ask('watch', 'configmaps', { query: 'resourceVersion=2&labelSelector=app%3Dy' })
    await api.put('configmaps', configMap('a', { labels: { app: 'y' }, data: '1' }))
    await api.put('configmaps', configMap('a', { labels: { app: 'y' }, data: '2' }))
    await api.put('configmaps', configMap('a', { labels: { app: 'z' }, data: '3' }))
    await api.remove('configmaps', 'default', 'a')
    await settle()
    assert.deepEqual(story(reply), ['ADDED a 3', 'MODIFIED a 4', 'DELETED a 5'])
    assert.equal(lines(reply)[2]?.object.data?.['value'], '2')
    assert.equal(lines(reply)[2]?.object.metadata.labels?.['app'], 'y')
  }))

test('bookmarks come every minute and before the deadline, only to those who asked', () =>
  withApi(async (api) => {
    const asked = api.ask('watch', 'configmaps', {
      query: 'allowWatchBookmarks=true&resourceVersion=1&timeoutSeconds=100',
    })
    const silent = api.ask('watch', 'configmaps', { query: 'resourceVersion=1&timeoutSeconds=100' })
    await settle()
    await api.put('secrets', { metadata: { name: 's', namespace: 'default' } })
    api.env.advance(60_000)
    await settle()
    assert.deepEqual(story(asked.reply), ['BOOKMARK  2'])
    await api.put('secrets', { metadata: { name: 't', namespace: 'default' } })
    api.env.advance(38_000)
    await settle()
    assert.deepEqual(story(asked.reply), ['BOOKMARK  2', 'BOOKMARK  3'])
    assert.equal(asked.reply.memory.ended, false)
    api.env.advance(2_000)
    await Promise.all([asked.done, silent.done])
    assert.equal(asked.reply.memory.ended, true)
    assert.equal(silent.reply.memory.ended, true)
    assert.equal(silent.reply.text, '')
  }))

test('without timeoutSeconds a watch ends between half an hour and an hour', () =>
  withApi(async (api) => {
    const { reply } = api.ask('watch', 'configmaps', { query: 'resourceVersion=1' })
    await settle()
    api.env.advance(1_799_000)
    assert.equal(reply.memory.ended, false)
    api.env.advance(1_801_000)
    assert.equal(reply.memory.ended, true)
  }))

test('B61 a watch from a compacted revision is a 200 with an ERROR event 410 Expired', () =>
  withApi(async (api) => {
    for (const name of ['a', 'b', 'c']) await api.put('configmaps', configMap(name))
    await api.compact(4)
    const { reply, done } = api.ask('watch', 'configmaps', { query: 'resourceVersion=2' })
    await done
    assert.equal(reply.status, 200)
    const [line] = lines(reply)
    assert.equal(line?.type, 'ERROR')
    assert.equal(line?.object.kind, 'Status')
    assert.equal(line?.object.code, 410)
    assert.equal(line?.object.reason, 'Expired')
    assert.equal(line?.object.message, 'too old resource version: 2 (4)')
    assert.equal(reply.memory.ended, true)
  }))

test('B56 a watch from a future revision is an ERROR event 504 after 3 s', () =>
  withApi(async (api) => {
    const { reply, done } = api.ask('watch', 'configmaps', { query: 'resourceVersion=50' })
    await settle()
    assert.equal(reply.memory.headSent, true)
    api.env.advance(3_000)
    await done
    assert.deepEqual(story(reply), ['ERROR Timeout 504'])
  }))

test('a watch older than the window replays from the history of the store, without gap or repeat', () =>
  withApi(
    async (api) => {
      const expected: string[] = []
      for (let index = 0; index < 40; index++) {
        const name = `cm-${index % 7}`
        const revision = await api.put('configmaps', configMap(name, { data: String(index) }))
        if (revision > 5) expected.push(`${revision <= 8 ? 'ADDED' : 'MODIFIED'} ${name} ${revision}`)
      }
      const { reply } = api.ask('watch', 'configmaps', { query: 'resourceVersion=5' })
      for (let index = 0; index < 10; index++) {
        const revision = await api.put('configmaps', configMap('cm-0', { data: `later ${index}` }))
        expected.push(`MODIFIED cm-0 ${revision}`)
      }
      await until(() => lines(reply).length === expected.length, 'all events')
      assert.deepEqual(story(reply), expected)
    },
    { limits: { eventsMin: 3, eventsMax: 5, ageMs: 1, bytesMax: 1e9 } },
  ))

test('B11 a watcher that does not read holds bounded memory, reads on when it drains, and blocks nobody', () =>
  withApi(async (api) => {
    const slow = new MemoryReply()
    slow.memory.blocked = true
    api.ask('watch', 'configmaps', { query: 'resourceVersion=1', reply: slow })
    const fast = api.ask('watch', 'configmaps', { query: 'resourceVersion=1' })
    await settle()
    const data = 'x'.repeat(10_000)
    for (let index = 0; index < 200; index++) await api.put('configmaps', configMap(`cm-${index}`, { data }))
    await settle()
    assert.equal(lines(fast.reply).length, 200)
    assert.ok(slow.memory.bufferedBytes <= 300 * 1024, `holds ${slow.memory.bufferedBytes}`)
    while (lines(slow).length < 200) {
      slow.memory.drain()
      await settle(3)
    }
    assert.deepEqual(story(slow), story(fast.reply))
    assert.ok(slow.memory.bufferedBytesMost <= 600 * 1024)
  }))

test('B11 a watcher that takes nothing for ten seconds is cut off; one that drains in time is not', () =>
  withApi(async (api) => {
    const stalled = new MemoryReply()
    const slow = new MemoryReply()
    const initial = new MemoryReply()
    for (const { memory } of [stalled, slow, initial]) memory.blocked = true
    const { done } = api.ask('watch', 'configmaps', { query: 'resourceVersion=1', reply: stalled })
    api.ask('watch', 'configmaps', { query: 'resourceVersion=1', reply: slow })
    await settle()
    const data = 'x'.repeat(100_000)
    for (let index = 0; index < 10; index++) await api.put('configmaps', configMap(`cm-${index}`, { data }))
    const listing = api.ask('watch', 'configmaps', { reply: initial })
    await settle()
    for (let second = 0; second < 10; second++) {
      assert.ok(!stalled.memory.closed && !initial.memory.closed, `after ${second} s`)
      slow.memory.drain()
      await settle(3)
      api.env.advance(1_000)
    }
    await Promise.all([done, listing.done])
    assert.ok(stalled.memory.destroyed && initial.memory.destroyed, 'cut, not ended')
    assert.ok(!slow.memory.closed)
    assert.equal(lines(slow).length, 10)
    api.env.advance(60_000)
    assert.ok(!slow.memory.closed, 'its clock stopped when it drained')
  }))

test('B11 watchers that do not read share large frames', () =>
  withApi(async (api) => {
    const replies = Array.from({ length: 3 }, () => new MemoryReply())
    for (const reply of replies) {
      reply.memory.blocked = true
      api.ask('watch', 'configmaps', { query: 'resourceVersion=1', reply })
    }
    await settle()
    // Both in one turn of the event loop, so in one write of each watcher.
    const data = 'x'.repeat(10_000)
    await Promise.all([1, 2].map((index) => api.put('configmaps', configMap(`cm-${index}`, { data }))))
    await settle()
    const [first, ...others] = replies.map((reply) => new Set(reply.memory.chunks))
    assert.equal(first?.size, 2)
    for (const other of others) assert.deepEqual([...other], [...(first ?? [])], 'the same buffers')
    for (const other of others) for (const chunk of other) assert.ok(first?.has(chunk))
  }))

test('B1 a watcher that the window has passed is told 410, never skipped', () =>
  withApi(
    async (api) => {
      const slow = new MemoryReply()
      slow.memory.blocked = true
      const { done } = api.ask('watch', 'configmaps', { query: 'resourceVersion=1', reply: slow })
      await settle()
      const data = 'x'.repeat(100_000)
      for (let index = 0; index < 50; index++) {
        await api.put('configmaps', configMap(`cm-${index}`, { data }))
        await settle(2)
      }
      slow.memory.blocked = false
      slow.memory.drain()
      await done
      const told = story(slow)
      assert.equal(told.at(-1), 'ERROR Expired 410')
      const revisions = lines(slow)
        .slice(0, -1)
        .map((line) => Number(line.object.metadata.resourceVersion))
      assert.deepEqual(
        revisions,
        revisions.map((_, index) => index + 2),
      )
    },
    { limits: { eventsMin: 3, eventsMax: 5, ageMs: 1, bytesMax: 1e9 } },
  ))

test('a watcher of one name or namespace stays live however far the window moves', () =>
  withApi(
    async (api) => {
      const one = api.ask('watch', 'configmaps', { namespace: 'quiet', name: 'me', query: 'resourceVersion=1' })
      const namespace = api.ask('watch', 'configmaps', { namespace: 'quiet', query: 'resourceVersion=1' })
      await settle()
      for (let index = 0; index < 30; index++) {
        await api.put('configmaps', configMap('busy', { data: String(index) }))
        await settle(2)
      }
      await api.put('configmaps', configMap('you', { namespace: 'quiet' }))
      await api.put('configmaps', configMap('me', { namespace: 'quiet' }))
      await settle()
      assert.deepEqual(story(one.reply), ['ADDED me 33'])
      assert.deepEqual(story(namespace.reply), ['ADDED you 32', 'ADDED me 33'])
    },
    { limits: { eventsMin: 2, eventsMax: 4, ageMs: 1, bytesMax: 1e9 } },
  ))

test('an event is encoded once for all watchers of the same form', () =>
  withApi(async (api) => {
    const replies = Array.from(
      { length: 3 },
      () => api.ask('watch', 'configmaps', { query: 'resourceVersion=1' }).reply,
    )
    await settle()
    await api.put('configmaps', configMap('a'))
    await settle()
    const [first] = replies[0]!.memory.chunks
    assert.ok(first !== undefined)
    for (const reply of replies) assert.equal(reply.memory.chunks[0], first)
  }))

test('close ends watches cleanly; a client that leaves ends its own', () =>
  withApi(async (api) => {
    const gone = api.ask('watch', 'configmaps', { query: 'resourceVersion=1' })
    const stays = api.ask('watch', 'configmaps', { query: 'resourceVersion=1' })
    await settle()
    gone.reply.memory.disconnect()
    await gone.done
    api.handlers.close()
    await stays.done
    assert.equal(stays.reply.memory.ended, true)
    const late = api.ask('watch', 'configmaps', { query: 'resourceVersion=1' })
    await late.done
    assert.equal(late.reply.memory.ended, true)
  }))

test('watch options that do not go together are 422 before the head', () =>
  withApi(async (api) => {
    for (const query of [
      'sendInitialEvents=true',
      'sendInitialEvents=true&resourceVersionMatch=Exact',
      'resourceVersionMatch=NotOlderThan',
    ]) {
      const { reply, done } = api.ask('watch', 'configmaps', { query })
      await assert.rejects(done, (error: unknown) => error instanceof ApiError && error.code === 422, query)
      assert.equal(reply.memory.headSent, false)
    }
  }))

test('a Table watch carries its columns once; a metadata watch carries metadata alone', () =>
  withApi(async (api) => {
    const table = api.ask('watch', 'configmaps', {
      query: 'resourceVersion=1',
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    })
    const partial = api.ask('watch', 'configmaps', {
      query: 'resourceVersion=1',
      accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
    })
    await settle()
    await api.put('configmaps', configMap('a', { data: 'x' }))
    await api.put('configmaps', configMap('b', { data: 'x' }))
    await settle()
    const [first, second] = lines(table.reply)
    assert.ok(Array.isArray(first?.object.columnDefinitions))
    assert.equal(second?.object.columnDefinitions, null)
    assert.equal(second?.object.rows?.[0]?.cells[0], 'b')
    const [only] = lines(partial.reply)
    assert.equal(only?.object.kind, 'PartialObjectMetadata')
    assert.equal(only?.object.data, undefined)
    assert.equal(only?.object.metadata.resourceVersion, '2')
  }))
