import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { makeCachedObject, NotCanonicalError, scanStored } from '../../../apiserver/encoding/stored-object.ts'
import { spliceBody, spliceMetadata, spliceObject, empty } from '../../../apiserver/encoding/splice.ts'
import { spliceItemInto } from '../../../apiserver/encoding/object-encoder.ts'
import { encodeJson, resources, typeOf, type ObjectValue } from '../../../schemas/index.ts'
import { readStrategy } from '../read/read-api.ts'

const gvk = { group: '', version: 'v1', kind: 'ConfigMap' }
const resource = resources().find(({ group, plural }) => group === '' && plural === 'configmaps')!
const encode = (object: ObjectValue): Uint8Array => encodeJson(object, typeOf(gvk)!, gvk)
const cached = (stored: Uint8Array | string) =>
  makeCachedObject({
    resource,
    strategy: readStrategy('configmaps'),
    key: '/registry/configmaps/default/a',
    revision: 7,
    stored: typeof stored === 'string' ? Buffer.from(stored) : stored,
  })

test('the resourceVersion goes in behind uid, whatever is around it', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['{"name":"a","uid":"u","labels":{"x":"y"}}', '{"name":"a","uid":"u","resourceVersion":"7","labels":{"x":"y"}}'],
    ['{"name":"a"}', '{"name":"a","resourceVersion":"7"}'],
    ['{"labels":{"x":"y"}}', '{"resourceVersion":"7","labels":{"x":"y"}}'],
    ['{}', '{"resourceVersion":"7"}'],
  ]
  for (const [metadata, expected] of cases) {
    const bytes = Buffer.from(`{"kind":"ConfigMap","apiVersion":"v1","metadata":${metadata},"data":{"k":"v"}}`)
    const of = { bytes, offsets: scanStored(bytes).offsets }
    assert.equal(
      spliceObject(of, 7, empty, empty).toString(),
      `{"kind":"ConfigMap","apiVersion":"v1","metadata":${expected},"data":{"k":"v"}}`,
    )
    const item = `{"metadata":${expected},"data":{"k":"v"}}`
    assert.equal(spliceBody(of, 7, Buffer.from('{'), empty).toString(), item)
    const out = Buffer.alloc(500)
    assert.equal(out.toString('utf8', 0, spliceItemInto(out, 0, of, 7)), item)
    assert.equal(spliceMetadata(of, 7, Buffer.from('{'), Buffer.from('}')).toString(), `{"metadata":${expected}}`)
  }
})

test('what is not canonical is refused, anchored at the head', () => {
  const refused = [
    '',
    '{}',
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}',
    '{"kind":"ConfigMap","apiVersion":"v1","metadata": {}}',
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name": "a"}}',
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"uid":"u","name":"a"}}',
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","name":"b"}}',
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"}}',
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","unknown":1}}',
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}',
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}} ',
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":}}',
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a",}}',
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a',
    '{"kind":"ConfigMap","apiVersion":"v1","data":{},"metadata":{"name":"a"}}',
  ]
  for (const text of refused) assert.throws(() => scanStored(Buffer.from(text)), NotCanonicalError, text)
})

test('text inside annotations that looks like metadata changes nothing', () => {
  const trap = '"},"uid":"fake","resourceVersion":"1","labels":{"a":"b"}\\'
  const object = cached(encode({ metadata: { name: 'a', uid: 'real', annotations: { trap, '"metadata":{': trap } } }))
  assert.equal(object.uid, 'real')
  assert.deepEqual({ ...object.labels }, {})
  const answer = JSON.parse(
    spliceObject({ bytes: object.stored, offsets: object.offsets }, 7).toString(),
  ) as ObjectValue
  assert.equal((answer['metadata'] as ObjectValue)['resourceVersion'], '7')
})

test('bytes of another writer are decoded and encoded once', () => {
  const object = cached(
    '{ "metadata": {"uid":"u", "resourceVersion":"3", "name":"a"}, "apiVersion":"v1", "kind":"ConfigMap" }',
  )
  assert.equal(
    Buffer.from(object.stored).toString(),
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","uid":"u"}}',
  )
  assert.throws(() => cached('{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}'))
  assert.throws(() => cached('no json'))
})

test('labels and fields are own keys only, "__proto__" among them', () => {
  const object = cached(
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","labels":{"__proto__":"x","b":"c"}}}',
  )
  assert.equal(object.labels['__proto__'], 'x')
  assert.equal(object.labels['constructor'], undefined)
  assert.deepEqual({ ...object.fields }, { 'metadata.name': 'a', 'metadata.namespace': '' })
})

test('for any metadata the walk agrees with a parser', () => {
  const text = fc.string({ unit: 'grapheme' })
  const metadata = fc.record(
    {
      name: text,
      namespace: text,
      uid: text,
      labels: fc.dictionary(text, text),
      annotations: fc.dictionary(text, text),
      finalizers: fc.array(text),
      deletionTimestamp: fc.constant('2024-01-01T00:00:00Z'),
    },
    { requiredKeys: ['name'] },
  )
  fc.assert(
    fc.property(metadata, fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (value, revision) => {
      const stored = encode({ metadata: value, data: { a: 'b' } })
      const head = scanStored(stored)
      const parsed = JSON.parse(Buffer.from(stored).toString()) as { metadata: Record<string, unknown> }
      assert.equal(head.name, parsed.metadata['name'] ?? '')
      assert.equal(head.namespace, parsed.metadata['namespace'] ?? '')
      assert.equal(head.uid, parsed.metadata['uid'] ?? '')
      assert.equal(head.deleting, parsed.metadata['deletionTimestamp'] !== undefined)
      const answer = JSON.parse(
        spliceObject({ bytes: stored, offsets: head.offsets }, revision).toString(),
      ) as typeof parsed
      assert.equal(answer.metadata['resourceVersion'], String(revision))
      delete answer.metadata['resourceVersion']
      assert.deepEqual(answer, parsed)
    }),
    { numRuns: 300, ...(process.env['SEED'] !== undefined && { seed: Number(process.env['SEED']) }) },
  )
})
