import assert from 'node:assert/strict'
import test from 'node:test'
import { writeStatus } from '../../../apiserver/status-reply.ts'
import { ApiError } from '../../../apiserver/errors.ts'
import type { Exchange } from '../../../apiserver/exchange.ts'
import { createResponder } from '../../../apiserver/encoding/responder.ts'
import { createResourceRegistry } from '../../../apiserver/registry.ts'
import { strategyFor } from '../../../apiserver/strategies/index.ts'
import {
  decodeEnvelope,
  decodeProtobuf,
  encodeJsonText,
  type Envelope,
  type ObjectValue,
  resources,
  typeOf,
} from '../../../schemas/index.ts'
import { createRequest, createTestEnv, MemoryReply, until } from '../doubles.ts'
import { configMap, createReadApi, type ReadApi, signal } from '../read/read-api.ts'
import { startTestServer } from '../write/api-server.ts'

const protobuf = 'application/vnd.kubernetes.protobuf'
const partial = `${protobuf};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`
const partialList = `${protobuf};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`

interface Opened {
  readonly apiVersion: string
  readonly kind: string
  /** Canonical JSON, parsed: plain objects to compare. */
  readonly value: ReturnType<typeof JSON.parse>
}

function open(bytes: Uint8Array): Opened {
  const { apiVersion, kind, raw }: Envelope = decodeEnvelope(bytes)
  const [version = '', group = ''] = apiVersion.split('/').reverse()
  const type = typeOf({ group, version, kind })
  assert.ok(type !== undefined, `${apiVersion} ${kind}`)
  return { apiVersion, kind, value: JSON.parse(encodeJsonText(decodeProtobuf(raw, type), type)) }
}

/** Events of a watch stream. */
function frames(bytes: Buffer): readonly { readonly type: string; readonly object: Opened }[] {
  const events: { type: string; object: Opened }[] = []
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt32BE(at)
    const frame = bytes.subarray(at + 4, at + 4 + length)
    assert.equal(frame.length, length, 'a whole frame')
    at += 4 + length
    // {type = 1, object = 2 {raw = 1}}
    assert.equal(frame[0], 0x0a)
    const type = frame.toString('utf8', 2, 2 + frame[1]!)
    const start = frame.indexOf('k8s\0')
    events.push({ type, object: open(frame.subarray(start)) })
  }
  return events
}

function reading(name: string, run: (api: ReadApi) => Promise<void>): void {
  test(name, async () => {
    const api = await createReadApi()
    try {
      await run(api)
    } finally {
      await api.close()
    }
  })
}

async function bytesOf(api: ReadApi, verb: 'get' | 'list', accept: string, query = '', name = ''): Promise<Buffer> {
  const { reply, done } = api.ask(verb, 'configmaps', { accept, query, name, namespace: name === '' ? '' : 'default' })
  await done
  assert.equal(reply.contentType, protobuf)
  if (reply.body !== undefined) return Buffer.from(reply.body)
  await until(() => reply.memory.ended, 'the end of the list')
  return Buffer.concat(reply.memory.chunks)
}

async function json(api: ReadApi, verb: 'get' | 'list', name = ''): Promise<ReturnType<typeof JSON.parse>> {
  const { reply, done } = api.ask(verb, 'configmaps', { name, namespace: name === '' ? '' : 'default' })
  await done
  return JSON.parse(reply.text)
}

reading('get and list say in protobuf what they say in JSON', async (api) => {
  await api.put('configmaps', configMap('a', { data: 'x' }))
  await api.put('configmaps', configMap('b', { data: 'y' }))
  const one = open(await bytesOf(api, 'get', protobuf, '', 'a'))
  const { kind, apiVersion, ...expected } = await json(api, 'get', 'a')
  assert.deepEqual([one.kind, one.apiVersion, one.value], [kind, apiVersion, expected])
  const list = open(await bytesOf(api, 'list', protobuf))
  const all = await json(api, 'list')
  assert.deepEqual([list.kind, list.apiVersion], ['ConfigMapList', 'v1'])
  assert.deepEqual([list.value.metadata, list.value.items], [all.metadata, all.items])
  // Once more, now from the cache of encodings.
  assert.deepEqual(open(await bytesOf(api, 'list', protobuf)), list)
  const page = open(await bytesOf(api, 'list', protobuf, 'limit=1'))
  assert.equal(page.value.items.length, 1)
  assert.equal(page.value.metadata.remainingItemCount, 1)
  assert.ok(page.value.metadata.continue.length > 0)
})

reading('an empty list has its metadata', async (api) => {
  const list = open(await bytesOf(api, 'list', protobuf))
  assert.equal(list.value.items ?? null, null)
  assert.match(list.value.metadata.resourceVersion, /^\d+$/)
})

reading('metadata alone, of one object and of a list', async (api) => {
  await api.put('configmaps', configMap('a', { data: 'x' }))
  const one = open(await bytesOf(api, 'get', partial, '', 'a'))
  assert.deepEqual([one.kind, one.apiVersion], ['PartialObjectMetadata', 'meta.k8s.io/v1'])
  const { metadata } = await json(api, 'get', 'a')
  assert.deepEqual(one.value, { metadata })
  const list = open(await bytesOf(api, 'list', partialList))
  assert.deepEqual([list.kind, list.value.items], ['PartialObjectMetadataList', [{ metadata }]])
  // Neither takes the other's place in the cache.
  assert.equal(open(await bytesOf(api, 'get', protobuf, '', 'a')).kind, 'ConfigMap')
})

reading('a list of more than one piece is whole', async (api) => {
  for (let index = 0; index < 40; index++)
    await api.put('configmaps', configMap(`m${index}`, { data: 'x'.repeat(20_000) }))
  const bytes = await bytesOf(api, 'list', protobuf)
  assert.ok(bytes.length > 800_000)
  const list = open(bytes)
  assert.equal(list.value.items.length, 40)
  assert.deepEqual(list.value.items, (await json(api, 'list')).items)
})

reading('a watch is frames of four bytes length and an event, its errors too', async (api) => {
  const first = await api.put('configmaps', configMap('a', { data: 'x' }))
  const stop = new AbortController()
  const query = `resourceVersion=${first}&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`
  const { reply, done } = api.ask('watch', 'configmaps', {
    accept: `${protobuf};stream=watch`,
    query,
    signal: stop.signal,
  })
  await until(() => reply.memory.chunks.length > 0, 'the first events')
  const second = await api.put('configmaps', configMap('a', { data: 'y' }))
  const third = await api.remove('configmaps', 'default', 'a')
  await until(() => frames(Buffer.concat(reply.memory.chunks)).length === 4, 'four events')
  stop.abort()
  await done
  assert.equal(reply.contentType, `${protobuf};stream=watch`)
  const events = frames(Buffer.concat(reply.memory.chunks))
  assert.deepEqual(
    events.map(({ type, object }) => [
      type,
      object.kind,
      object.value.metadata.resourceVersion,
      object.value.data?.value,
    ]),
    [
      ['ADDED', 'ConfigMap', String(first), 'x'],
      ['BOOKMARK', 'ConfigMap', String(first), undefined],
      ['MODIFIED', 'ConfigMap', String(second), 'y'],
      ['DELETED', 'ConfigMap', String(third), 'y'],
    ],
  )
  assert.deepEqual(events[1]!.object.value.metadata.annotations, { 'k8s.io/initial-events-end': 'true' })
  await api.compact(third)
  const old = api.ask('watch', 'configmaps', { accept: protobuf, query: `resourceVersion=${first}` })
  await old.done
  const [error] = frames(Buffer.concat(old.reply.memory.chunks))
  assert.deepEqual([error!.type, error!.object.kind, error!.object.value.code], ['ERROR', 'Status', 410])
})

reading('watchers of one event in JSON and in protobuf each get their own', async (api) => {
  const first = await api.put('configmaps', configMap('a', { data: 'x' }))
  const stop = new AbortController()
  const query = `resourceVersion=${first}`
  const asked = [protobuf, 'application/json', partial].map((accept) =>
    api.ask('watch', 'configmaps', { accept, query, signal: stop.signal }),
  )
  await until(() => asked.every(({ reply }) => reply.contentType !== ''), 'all heads')
  await api.put('configmaps', configMap('a', { data: 'y' }))
  await until(() => asked.every(({ reply }) => reply.memory.chunks.length > 0), 'the event')
  stop.abort()
  await Promise.all(asked.map(({ done }) => done))
  const [whole, text, meta] = asked.map(({ reply }) => Buffer.concat(reply.memory.chunks))
  assert.equal(frames(whole!)[0]!.object.kind, 'ConfigMap')
  assert.equal(JSON.parse(text!.toString('utf8')).object.data.value, 'y')
  assert.equal(frames(meta!)[0]!.object.kind, 'PartialObjectMetadata')
})

test('values that are not stored, and errors', () => {
  const env = createTestEnv(1)
  const registry = createResourceRegistry({ resources: resources(), strategyFor })
  const responder = createResponder({ env, registry })
  const request = createRequest({}, { headers: { accept: `${protobuf},application/json` }, signal })
  const say = (value: ObjectValue): MemoryReply => {
    const reply = new MemoryReply()
    responder.value(request, reply, { status: 201, value })
    return reply
  }
  const review = { kind: 'SelfSubjectAccessReview', apiVersion: 'authorization.k8s.io/v1', status: { allowed: true } }
  const answer = say(review)
  assert.equal(answer.contentType, protobuf)
  assert.deepEqual(open(answer.body!).value.status, { allowed: true })
  // No protobuf form: JSON, which such clients take as well.
  const other = say({ kind: 'Unheard', apiVersion: 'example.com/v1' })
  assert.equal(other.contentType, 'application/json')

  const errorReply = (accept: string): MemoryReply => {
    const reply = new MemoryReply()
    const exchange = { target: '/api/v1/pods/x', headers: { accept }, reply } as unknown as Exchange
    writeStatus(exchange, new ApiError(404, 'NotFound', 'pods "x" not found', { details: { name: 'x', kind: 'pods' } }))
    return reply
  }
  const failed = errorReply(protobuf)
  assert.deepEqual([failed.status, failed.contentType], [404, protobuf])
  const { kind, apiVersion, value } = open(failed.body!)
  assert.deepEqual(
    [kind, apiVersion, value.reason, value.code, value.details],
    ['Status', 'v1', 'NotFound', 404, { name: 'x', kind: 'pods' }],
  )
  assert.equal(errorReply('application/json, application/vnd.kubernetes.protobuf').contentType, 'application/json')
})

test('what a dry run would have written does not stay in the cache of encodings', async () => {
  const server = await startTestServer()
  try {
    const path = 'default:configmaps/m'
    const accept = protobuf
    await server.call('create', 'default:configmaps', { metadata: { name: 'm' }, data: { a: '1' } })
    const changed = { metadata: { name: 'm' }, data: { a: '2' } }
    const dry = await server.call('update', path, changed, { query: 'dryRun=All', accept })
    assert.equal(open(dry.bytes).value.data.a, '2')
    const patch = { contentType: 'application/merge-patch+json', accept }
    const real = await server.call('patch', path, {}, patch)
    assert.equal(open(real.bytes).value.data.a, '1')
  } finally {
    await server.close()
  }
})
