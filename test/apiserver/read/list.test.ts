import assert from 'node:assert/strict'
import test from 'node:test'
import { ApiError } from '../../../apiserver/errors.ts'
import { MemoryReply, settle, until } from '../doubles.ts'
import { configMap, createReadApi, listBody, type ReadApi } from './read-api.ts'

async function withApi(run: (api: ReadApi) => Promise<void>): Promise<void> {
  const api = await createReadApi()
  try {
    await run(api)
  } finally {
    await api.close()
  }
}

async function list(api: ReadApi, query = '', namespace = 'default') {
  const { reply, done } = api.ask('list', 'configmaps', { namespace, query })
  await done
  return listBody(reply)
}

const names = (body: { readonly items: readonly { readonly metadata: { readonly name: string } }[] }): string[] =>
  body.items.map((item) => item.metadata.name)

const fails = (code: number, text?: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ApiError, String(error))
  assert.equal(error.code, code)
  if (text !== undefined) assert.match(error.message, text)
  return true
}

test('an empty list has items [] and the store revision', () =>
  withApi(async (api) => {
    const { reply, done } = api.ask('list', 'configmaps', { namespace: 'default' })
    await done
    assert.equal(
      reply.text,
      '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}\n',
    )
  }))

test('a list is in key order, its items without type meta and with their own revisions', () =>
  withApi(async (api) => {
    await api.put('configmaps', configMap('b'))
    await api.put('configmaps', configMap('a'))
    await api.put('configmaps', configMap('z', { namespace: 'another' }))
    const body = await list(api)
    assert.deepEqual(names(body), ['a', 'b'])
    assert.deepEqual(
      body.items.map((item) => item.metadata.resourceVersion),
      ['3', '2'],
    )
    assert.equal(body.metadata.resourceVersion, '4')
    assert.equal(body.items[0]?.kind, undefined)
    assert.deepEqual(names(await list(api, '', '')), ['z', 'a', 'b'])
  }))

test('pages keep the revision of the first one while objects change', () =>
  withApi(async (api) => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await api.put('configmaps', configMap(name))
    const first = await list(api, 'limit=2')
    assert.deepEqual(names(first), ['a', 'b'])
    assert.equal(first.metadata.remainingItemCount, 3)
    await api.remove('configmaps', 'default', 'c')
    await api.put('configmaps', configMap('ca'))
    const second = await list(api, `limit=2&continue=${first.metadata.continue}`)
    assert.deepEqual(names(second), ['c', 'd'])
    assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion)
    const third = await list(api, `limit=2&continue=${second.metadata.continue}`)
    assert.deepEqual(names(third), ['e'])
    assert.equal(third.metadata.continue, undefined)
  }))

test('a page whose root is not kept is read from the store and reads the same', () =>
  withApi(async (api) => {
    for (const name of ['a', 'b', 'c']) await api.put('configmaps', configMap(name))
    await api.remove('configmaps', 'default', 'b')
    await api.put('configmaps', configMap('d'))
    const exact = await list(api, 'resourceVersion=4&resourceVersionMatch=Exact')
    assert.deepEqual(names(exact), ['a', 'b', 'c'])
    assert.equal(exact.metadata.resourceVersion, '4')
    const paged = await list(api, 'resourceVersion=4&limit=2')
    assert.deepEqual(names(paged), ['a', 'b'])
    assert.equal(paged.metadata.remainingItemCount, 1)
    assert.deepEqual(names(await list(api, `continue=${paged.metadata.continue}`)), ['c'])
  }))

test('the continue token is what other servers and clients know', () =>
  withApi(async (api) => {
    for (const name of ['a', 'b']) await api.put('configmaps', configMap(name))
    const { metadata } = await list(api, 'limit=1')
    const token = Buffer.from(metadata.continue ?? '', 'base64url').toString()
    assert.equal(token, '{"v":"meta.k8s.io/v1","rv":3,"start":"a\\u0000"}')
  }))

test('resourceVersion 0 ignores the limit', () =>
  withApi(async (api) => {
    for (const name of ['a', 'b', 'c']) await api.put('configmaps', configMap(name))
    assert.deepEqual(names(await list(api, 'limit=1&resourceVersion=0')), ['a', 'b', 'c'])
  }))

test('B61 an exact list below the compacted revision is HTTP 410 Expired', () =>
  withApi(async (api) => {
    for (const name of ['a', 'b', 'c']) await api.put('configmaps', configMap(name))
    await api.compact(4)
    const failed = api.ask('list', 'configmaps', { query: 'resourceVersion=2&resourceVersionMatch=Exact' }).done
    await assert.rejects(failed, fails(410, /too old/))
  }))

test('an expired continue token is 410 with one that goes on at the current revision', () =>
  withApi(async (api) => {
    for (const name of ['a', 'b', 'c']) await api.put('configmaps', configMap(name))
    const first = await list(api, 'limit=1')
    await api.put('configmaps', configMap('bb'))
    await api.compact(5)
    const failed = api.ask('list', 'configmaps', {
      namespace: 'default',
      query: `limit=1&continue=${first.metadata.continue}`,
    }).done
    let token = ''
    await assert.rejects(failed, (error: unknown) => {
      token = error instanceof ApiError ? (error.continueToken ?? '') : ''
      return fails(410)(error)
    })
    assert.match(Buffer.from(token, 'base64url').toString(), /"rv":-1,/)
    const rest = await list(api, `limit=2&continue=${token}`)
    assert.deepEqual(names(rest), ['b', 'bb'])
    assert.equal(rest.metadata.resourceVersion, '5')
    assert.deepEqual(names(await list(api, `continue=${rest.metadata.continue}`)), ['c'])
  }))

test('B56 a future resourceVersion is 504 with cause ResourceVersionTooLarge after 3 s', () =>
  withApi(async (api) => {
    const { done } = api.ask('list', 'configmaps', { query: 'resourceVersion=99' })
    await settle()
    api.env.advance(3_000)
    await assert.rejects(done, (error: unknown) => {
      fails(504, /^Too large resource version: 99, current: 1$/)(error)
      assert.equal((error as ApiError).details?.causes?.[0]?.reason, 'ResourceVersionTooLarge')
      assert.equal((error as ApiError).details?.retryAfterSeconds, 1)
      return true
    })
  }))

test('B63 a read sees revisions made by keys outside the API', () =>
  withApi(async (api) => {
    const op = { type: 'put' as const, key: Buffer.from('elsewhere'), value: Buffer.from('x') }
    await api.store.txn({ compare: [], success: [op], failure: [] }, { signal: new AbortController().signal })
    assert.equal((await list(api)).metadata.resourceVersion, '2')
  }))

test('options that do not go together are 422, unreadable ones 400', () =>
  withApi(async (api) => {
    const cases: readonly (readonly [string, number, RegExp])[] = [
      ['resourceVersionMatch=Exact', 422, /forbidden unless resourceVersion is provided/],
      ['resourceVersionMatch=Exact&resourceVersion=0', 422, /forbidden for resourceVersion "0"/],
      ['resourceVersionMatch=Wrong&resourceVersion=1', 422, /Unsupported value: "Wrong"/],
      ['sendInitialEvents=true', 422, /sendInitialEvents is forbidden for list/],
      ['resourceVersion=abc', 400, /parsing "abc": invalid syntax/],
      ['limit=abc', 400, /parsing "abc"/],
      ['continue=%21', 400, /continue key is not valid/],
      ['labelSelector=%3Da', 400, /unable to parse/],
      ['fieldSelector=spec.x%3Da', 400, /"spec.x" is not a known field selector/],
    ]
    for (const [query, code, text] of cases) {
      await assert.rejects(api.ask('list', 'configmaps', { query }).done, fails(code, text), query)
    }
    const token = Buffer.from('{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets/a"}').toString('base64url')
    await assert.rejects(api.ask('list', 'configmaps', { query: `continue=${token}` }).done, fails(400, /not valid/))
    await assert.rejects(
      api.ask('list', 'configmaps', { query: `continue=${token}&resourceVersionMatch=Exact&resourceVersion=1` }).done,
      fails(422, /forbidden when continue/),
    )
  }))

test('selectors choose, and hide the remaining count', () =>
  withApi(async (api) => {
    for (const [index, name] of ['a', 'b', 'c', 'd'].entries()) {
      await api.put('configmaps', configMap(name, { labels: { odd: String(index % 2) } }))
    }
    const page = await list(api, 'labelSelector=odd%3D0&limit=1')
    assert.deepEqual(names(page), ['a'])
    assert.equal(page.metadata.remainingItemCount, undefined)
    assert.deepEqual(names(await list(api, `labelSelector=odd%3D0&continue=${page.metadata.continue}`)), ['c'])
    assert.deepEqual(names(await list(api, 'fieldSelector=metadata.name%3Dc')), ['c'])
    const single = await list(api, 'fieldSelector=metadata.name%3Db&limit=1')
    assert.deepEqual([names(single), single.metadata.continue], [['b'], undefined])
    const anywhere = await list(api, 'fieldSelector=metadata.name%3Db&limit=1', '')
    assert.deepEqual([names(anywhere), typeof anywhere.metadata.continue], [['b'], 'string'])
    assert.deepEqual(names(await list(api, 'fieldSelector=metadata.name!%3Dc')), ['a', 'b', 'd'])
  }))

test('a long list stops writing while the client does not read, and is complete in the end', () =>
  withApi(async (api) => {
    const data = 'x'.repeat(2_000)
    for (let index = 0; index < 1_500; index++) {
      await api.put('configmaps', configMap(`cm-${String(index).padStart(5, '0')}`, { data }))
    }
    const reply = new MemoryReply()
    reply.memory.blocked = true
    const { done } = api.ask('list', 'configmaps', { reply })
    await until(() => reply.memory.bufferedBytes > 0, 'a first piece')
    await settle()
    assert.ok(reply.memory.bufferedBytes <= 768 * 1024, `holds ${reply.memory.bufferedBytes}`)
    while (!reply.memory.closed) {
      reply.memory.drain()
      await settle(2)
    }
    await done
    assert.ok(reply.memory.bufferedBytesMost <= 768 * 1024)
    const body = listBody(reply)
    assert.equal(body.items.length, 1_500)
    assert.equal(body.items[1_499]?.metadata.name, 'cm-01499')
    assert.ok(reply.memory.chunks.every((chunk) => chunk.length <= 128 * 1024))
  }))

test('a list that cannot be finished is cut, not ended', () =>
  withApi(async (api) => {
    for (let index = 0; index < 600; index++) {
      await api.put('configmaps', configMap(`cm-${index}`, { data: 'x'.repeat(2_000) }))
    }
    const reply = new MemoryReply()
    reply.memory.blocked = true
    const deadline = new AbortController()
    const { done } = api.ask('list', 'configmaps', { reply, signal: deadline.signal })
    await until(() => reply.memory.bufferedBytes > 512 * 1024, 'a full socket')
    deadline.abort()
    await done
    assert.equal(reply.memory.destroyed, true)
  }))

test('get answers the whole object with type meta and revision, 404 for none', () =>
  withApi(async (api) => {
    await api.put('configmaps', configMap('a', { data: 'x' }))
    const { reply, done } = api.ask('get', 'configmaps', { namespace: 'default', name: 'a' })
    await done
    assert.equal(
      reply.text,
      '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"uid-a",' +
        '"resourceVersion":"2","creationTimestamp":"2029-12-31T23:55:00Z"},"data":{"value":"x"}}\n',
    )
    const missing = api.ask('get', 'configmaps', { namespace: 'default', name: 'b' }).done
    await assert.rejects(missing, fails(404, /^configmaps "b" not found$/))
  }))
