import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { parse } from 'yaml'
import { EncodingCache } from '../../../apiserver/encoding/encoding-cache.ts'
import { indentJson } from '../../../apiserver/encoding/json-text.ts'
import { negotiate } from '../../../apiserver/encoding/negotiation.ts'
import { yamlText } from '../../../apiserver/encoding/yaml-text.ts'
import { ApiError } from '../../../apiserver/errors.ts'
import { humanDuration } from '../../../apiserver/table/human-duration.ts'
import { createRequest } from '../doubles.ts'
import { configMap, createReadApi } from '../read/read-api.ts'

const request = (accept: string, query = '', agent = '') =>
  createRequest({}, { query, headers: { ...(accept !== '' && { accept }), 'user-agent': agent } })

test('the first clause that can be served is chosen', () => {
  const chosen = (accept: string) => {
    const { media, as } = negotiate(request(accept), 'object')
    return `${media} ${as}`
  }
  assert.equal(chosen(''), 'json Object')
  assert.equal(chosen('*/*'), 'json Object')
  assert.equal(chosen('application/vnd.kubernetes.protobuf,application/json'), 'protobuf Object')
  assert.equal(chosen('application/json,application/vnd.kubernetes.protobuf'), 'json Object')
  const tableOrJson = 'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json'
  assert.equal(chosen(tableOrJson), 'json Object', 'a Table has no protobuf form')
  assert.equal(chosen('application/yaml'), 'yaml Object')
  assert.equal(chosen('application/json;q=0.1,application/yaml;q=0.9'), 'yaml Object')
  assert.equal(
    chosen(
      'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json',
    ),
    'json Table',
  )
  assert.equal(chosen('application/json;as=Wrong;v=v1;g=meta.k8s.io,application/json'), 'json Object')
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  for (const [accept, use] of [
    ['application/cbor', 'object'],
    ['application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io', 'object'],
    ['text/html', 'object'],
    [table, 'value'],
    ['application/yaml', 'watch'],
  ] as const) {
    assert.throws(
      () => negotiate(request(accept), use),
      (error: unknown) => error instanceof ApiError && error.code === 406 && error.reason === 'NotAcceptable',
      accept,
    )
  }
})

test('people get indented JSON, programs compact, and pretty= overrules', () => {
  assert.equal(negotiate(request('', '', 'curl/8.0'), 'object').pretty, true)
  assert.equal(negotiate(request('', '', 'kubectl/v1.30'), 'object').pretty, false)
  assert.equal(negotiate(request('', 'pretty=false', 'curl/8.0'), 'object').pretty, false)
  assert.equal(negotiate(request('', 'pretty=1'), 'object').pretty, true)
  assert.equal(negotiate(request('', 'pretty=1'), 'watch').pretty, false)
})

test('indented JSON is what JSON.stringify would indent', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      assert.equal(indentJson(Buffer.from(JSON.stringify(value))), JSON.stringify(value, null, 2))
    }),
  )
})

test('YAML reads back as the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const plain = JSON.parse(JSON.stringify(value)) as unknown
      assert.deepEqual(parse(yamlText(plain)), plain)
    }),
  )
  const script = {
    data: { run: '#!/bin/sh\necho "a: b"\n\nexit 0\n', keep: 'a\n\n', strip: 'a\nb', yes: 'yes', n: '1' },
  }
  assert.deepEqual(parse(yamlText(script)), script)
  assert.match(yamlText(script), /run: \|\n {4}#!\/bin\/sh\n/)
})

test('durations read as kubectl users know them', () => {
  const second = 1000
  const minute = 60 * second
  const hour = 60 * minute
  const day = 24 * hour
  const cases: readonly (readonly [number, string])[] = [
    [-2 * second, '<invalid>'],
    [-second, '0s'],
    [0, '0s'],
    [119 * second, '119s'],
    [2 * minute, '2m'],
    [2 * minute + 5 * second, '2m5s'],
    [10 * minute + 5 * second, '10m'],
    [179 * minute, '179m'],
    [3 * hour, '3h'],
    [7 * hour + 5 * minute, '7h5m'],
    [8 * hour + 5 * minute, '8h'],
    [47 * hour, '47h'],
    [2 * day, '2d'],
    [7 * day + 3 * hour, '7d3h'],
    [8 * day + 3 * hour, '8d'],
    [729 * day, '729d'],
    [2 * 365 * day, '2y'],
    [2 * 365 * day + 3 * day, '2y3d'],
    [8 * 365 * day + 3 * day, '8y'],
  ]
  for (const [ms, text] of cases) assert.equal(humanDuration(ms), text, String(ms))
})

test('encodings leave the cache least recently used first', () => {
  const cache = new EncodingCache<{ bytes: Uint8Array }>(3 * 1_200)
  let made = 0
  let source = new Uint8Array(1)
  const get = (id: string): void => {
    cache.get(id, source, () => {
      made++
      return { bytes: new Uint8Array(1_000) }
    })
  }
  for (const id of ['a', 'b', 'c', 'a', 'd']) get(id)
  assert.equal(made, 4)
  get('a')
  assert.equal(made, 4)
  get('b')
  assert.equal(made, 5)
  assert.ok(cache.bytes <= 3 * 1_200)
  // The same key and revision made from something else: a dry run.
  source = new Uint8Array(1)
  get('b')
  assert.equal(made, 6)
  assert.ok(cache.bytes <= 3 * 1_200)
})

test('a list comes as Table, metadata, YAML and indented, each complete', async () => {
  const api = await createReadApi()
  try {
    await api.put('configmaps', configMap('a', { data: 'x' }))
    await api.put('configmaps', configMap('b', { data: 'y' }))
    const answer = async (accept: string, query = ''): Promise<string> => {
      const { reply, done } = api.ask('list', 'configmaps', { accept, query })
      await done
      return reply.text
    }
    const tableAccept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const table = JSON.parse(await answer(tableAccept)) as {
      kind: string
      metadata: object
      columnDefinitions: { name: string }[]
      rows: { cells: unknown[]; object: { kind: string; metadata: { name: string } } }[]
    }
    assert.equal(table.kind, 'Table')
    assert.deepEqual(table.metadata, { resourceVersion: '3' })
    assert.equal(table.columnDefinitions[0]?.name, 'Name')
    assert.equal(table.columnDefinitions.at(-1)?.name, 'Age')
    assert.deepEqual(table.rows[0]?.cells, ['a', 1, '5m'])
    assert.equal(table.rows[0]?.object.kind, 'PartialObjectMetadata')
    assert.match(await answer(tableAccept, 'includeObject=None'), /"object":null/)
    assert.match(await answer(tableAccept, 'includeObject=Object'), /"object":\{"kind":"ConfigMap",/)

    const partial = await answer('application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io')
    assert.match(
      partial,
      /^\{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io\/v1","metadata":\{"resourceVersion":"3"\},"items":\[\{"kind":"PartialObjectMetadata",/,
    )
    assert.doesNotMatch(partial, /"data"/)

    const compact = await answer('application/json')
    assert.deepEqual(parse(await answer('application/yaml')), JSON.parse(compact))
    assert.equal(await answer('application/json', 'pretty=true'), JSON.stringify(JSON.parse(compact), null, 2))
    const nothing = 'labelSelector=none'
    assert.deepEqual(parse(await answer('application/yaml', nothing)), JSON.parse(await answer('', nothing)))
    assert.equal(
      await answer('', `pretty=true&${nothing}`),
      JSON.stringify(JSON.parse(await answer('', nothing)), null, 2),
    )
  } finally {
    await api.close()
  }
})

test('a stored core Event is served as events.k8s.io/v1, and back in lists and watches', async () => {
  const api = await createReadApi()
  try {
    await api.put('events', {
      metadata: { name: 'e', namespace: 'default' },
      involvedObject: { kind: 'Pod', name: 'p' },
      message: 'hello',
      type: 'Normal',
    })
    const at = { group: 'events.k8s.io', version: 'v1', namespace: 'default' }
    const { reply, done } = api.ask('list', 'events', at)
    await done
    const body = JSON.parse(reply.text) as { apiVersion: string; items: Record<string, unknown>[] }
    assert.equal(body.apiVersion, 'events.k8s.io/v1')
    assert.equal(body.items[0]?.['note'], 'hello')
    assert.deepEqual(body.items[0]?.['regarding'], { kind: 'Pod', name: 'p' })
  } finally {
    await api.close()
  }
})
