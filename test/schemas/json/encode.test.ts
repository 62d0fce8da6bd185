import assert from 'node:assert/strict'
import test from 'node:test'
import { decodeJson, encodeJson, resources, typeDescriptor, typeNames, typeOf } from '../../../schemas/index.ts'
import type { FieldDescriptor, GVK, ObjectValue, TypeDescriptor, TypeRef } from '../../../schemas/index.ts'

function round(text: string, gvk: GVK): string {
  const type = typeOf(gvk)
  assert.ok(type)
  return Buffer.from(encodeJson(decodeJson(Buffer.from(text), type).object, type, gvk)).toString()
}

const v1 = (kind: string): GVK => ({ group: '', version: 'v1', kind })

test('what Go always writes is written, in its order, type first', () => {
  assert.equal(
    round('{"spec":{"replicas":2},"metadata":{"name":"d"}}', { group: 'apps', version: 'v1', kind: 'Deployment' }),
    '{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"d"},"spec":{"replicas":2,"selector":null,' +
      '"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}}',
  )
})

test('times that are not pointers are null when not set', () => {
  assert.equal(
    round('{"status":{"conditions":[{"type":"Ready","status":"True"}]}}', v1('Pod')),
    '{"kind":"Pod","apiVersion":"v1","metadata":{},"spec":{"containers":null},"status":{"conditions":' +
      '[{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":null}]}}',
  )
})

test('map keys are sorted by their UTF-8 bytes', () => {
  // U+1F600 comes before U+FF01 in UTF-16 and after it in UTF-8.
  assert.equal(
    round('{"data":{"\u{1f600}":"3","\uff01":"2","b":"1","10":"0"}}', v1('ConfigMap')),
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{},"data":{"10":"0","b":"1","\uff01":"2","\u{1f600}":"3"}}',
  )
})

test('strings are escaped as Go escapes them', () => {
  assert.equal(
    round('{"data":{"a":"<&>\\u2028\\u2029\\b\\f\\n\\r\\t\\u0001\\"\\\\\\u007f\\u0080\\/"}}', v1('ConfigMap')),
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{},"data":{"a":' +
      '"\\u003c\\u0026\\u003e\\u2028\\u2029\\b\\f\\n\\r\\t\\u0001\\"\\\\\u007f\u0080/"}}',
  )
})

test('quantities, times, base64 and big integers are canonical', () => {
  assert.equal(
    round(
      '{"metadata":{"generation":9007199254740993,"creationTimestamp":"2026-01-01T01:00:00.9+01:00"},"data":{"a":"YWI=\\n"}}',
      v1('Secret'),
    ),
    '{"kind":"Secret","apiVersion":"v1","metadata":{"generation":9007199254740993,"creationTimestamp":' +
      '"2026-01-01T00:00:00Z"},"data":{"a":"YWI="}}',
  )
})

/** An object with every field of a type set, three levels deep. */
function sample(type: TypeDescriptor, depth: number): ObjectValue {
  const object = Object.create(null) as ObjectValue
  for (const field of type.fields) {
    const value = sampleValue(field.type, field, depth)
    if (value !== undefined) object[field.jsonName] = value
  }
  return object
}

function sampleValue(type: TypeRef, field: FieldDescriptor, depth: number): unknown {
  if (type.is === 'message') return depth === 0 ? undefined : sample(type.descriptor(), depth - 1)
  if (type.is === 'list' || type.is === 'map') {
    const item = sampleValue(type.of, field, depth)
    if (item === undefined) return undefined
    return type.is === 'list' ? [item, item] : { z: item, a: item }
  }
  const scalars = {
    bool: true,
    int32: 7,
    int64: 9007199254740993n,
    double: 0.5,
    bytes: 'YWI=',
    quantity: '1500m',
    time: '2026-01-01T00:00:00Z',
    microTime: '2026-01-01T00:00:00.000001Z',
    duration: '1h0m0s',
    intOrString: '25%',
    raw: { any: ['thing'] },
    fields: { 'f:metadata': {} },
    string: `<${field.jsonName}>`,
  }
  return type.is === 'enum' ? (type.values[0] ?? 'x') : scalars[type.is]
}

test('an object of every type with every field comes back byte for byte, without problems', () => {
  for (const name of typeNames()) {
    const type = typeDescriptor(name)
    const encoded = encodeJson(sample(type, 3), type)
    const { object, problems } = decodeJson(encoded, type)
    assert.deepEqual(problems, [], name)
    assert.equal(Buffer.from(encodeJson(object, type)).toString(), Buffer.from(encoded).toString(), name)
  }
})

test('an empty object of every resource is stable from the first encoding on', () => {
  for (const { gvk, type } of resources().flatMap(({ served }) => served)) {
    const first = Buffer.from(encodeJson(Object.create(null) as ObjectValue, type, gvk)).toString()
    assert.equal(round(first, gvk), first)
  }
})
