import assert from 'node:assert/strict'
import test from 'node:test'
import protobuf from 'protobufjs/minimal.js'
import { decodeProtobuf, nestingDepthMax, SchemaError, typeDescriptor } from '../../../schemas/index.ts'

const pod = typeDescriptor('io.k8s.api.core.v1.Pod')
const props = typeDescriptor('io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps')
const configMap = typeDescriptor('io.k8s.api.core.v1.ConfigMap')

function refused(hex: string, message: string, type = pod, code = 'ERR_SYNTAX'): void {
  assert.throws(
    () => decodeProtobuf(Buffer.from(hex, 'hex'), type),
    (error: unknown) => {
      assert.ok(error instanceof SchemaError)
      assert.deepEqual([error.code, error.message], [code, message])
      return true
    },
    hex,
  )
}

test('lengths beyond the end, negative or without end', () => {
  refused('0a', 'unexpected EOF')
  refused('0a05', 'unexpected EOF')
  refused('0affffffff0f', 'unexpected EOF')
  refused('0affffffffffffffffff01', 'proto: negative length found during unmarshaling')
  refused('0affffffffffffffffffff01', 'proto: integer overflow')
  refused(`0a${'80'.repeat(9)}`, 'unexpected EOF')
  // A nested length may not reach out of its own message, though there are bytes behind it.
  refused('0a030a0561626364', 'unexpected EOF')
})

test('tags and wire types that do not fit', () => {
  refused('00', 'proto: Pod: illegal tag 0 (wire type 0)')
  refused('0c', 'proto: Pod: wiretype end group for non-group')
  refused('0801', 'proto: wrong wireType = 0 for field Metadata')
  refused('0a020801', 'proto: wrong wireType = 0 for field Name')
  refused('ff07', 'proto: illegal wireType 7')
})

test('unknown fields are passed over, groups with all that is in them', () => {
  const unknown = ['f80701', 'f9070102030405060708', 'fa0702ffff', 'fd0701020304', 'fb070801fb07fc07fc07']
  for (const hex of unknown) {
    const object = decodeProtobuf(Buffer.from(`${hex}0a030a0170`, 'hex'), pod)
    assert.equal((object['metadata'] as Record<string, unknown>)['name'], 'p', hex)
  }
  refused('fb07', 'unexpected EOF')
  refused('fb070c0c', 'proto: Pod: wiretype end group for non-group')
  // Groups cost no stack.
  const deep = '0b'.repeat(1_000_000)
  refused(`fb07${deep}`, 'unexpected EOF')
})

test('text that is not UTF-8, and a replacement character that is', () => {
  refused('0a030a01ff', 'proto: invalid UTF-8 in string field')
  const object = decodeProtobuf(Buffer.from('0a050a03efbfbd', 'hex'), pod)
  assert.equal((object['metadata'] as Record<string, unknown>)['name'], '\ufffd')
})

test('nesting is bounded', () => {
  let bytes: Uint8Array = new Uint8Array(0)
  const wrap = (levels: number): Uint8Array => {
    for (let level = 0; level < levels; level++) {
      // JSONSchemaProps.not = 28
      bytes = protobuf.Writer.create()
        .uint32((28 << 3) | 2)
        .bytes(bytes)
        .finish()
    }
    return bytes
  }
  assert.doesNotThrow(() => decodeProtobuf(wrap(nestingDepthMax - 10), props))
  for (const more of [20, 20_000]) {
    assert.throws(
      () => decodeProtobuf(wrap(more), props),
      (error: unknown) => error instanceof SchemaError && error.code === 'ERR_DEPTH',
    )
  }
})

test('values that no object can hold', () => {
  // creationTimestamp far behind the year 9999
  refused('0a0942070880d0dbc3f407', 'Time.MarshalJSON: year outside of range [0,9999]')
  // JSONSchemaProps.maximum = NaN
  refused('49000000000000f87f', 'json: unsupported value: NaN', props)
  refused('49000000000000f0ff', 'json: unsupported value: -Inf', props)
})

test('map keys that are names of Object.prototype are keys', () => {
  const entry = (key: string): string => {
    const inner = protobuf.Writer.create().uint32(10).string(key).uint32(18).string('v').finish()
    return Buffer.from(protobuf.Writer.create().uint32(18).bytes(inner).finish()).toString('hex')
  }
  const object = decodeProtobuf(Buffer.from(entry('__proto__') + entry('constructor'), 'hex'), configMap)
  assert.deepEqual(Object.keys(object['data'] as object), ['__proto__', 'constructor'])
})

test('a message that comes in parts is put together, of a scalar the last counts', () => {
  const object = decodeProtobuf(Buffer.from('0a030a01610a060a016a1a016e', 'hex'), pod)
  assert.deepEqual({ ...(object['metadata'] as object) }, { name: 'j', namespace: 'n' })
})

test('packed numbers are numbers', () => {
  // PodSecurityContext.supplementalGroups = 4, packed: 1, 300
  const context = typeDescriptor('io.k8s.api.core.v1.PodSecurityContext')
  assert.deepEqual(decodeProtobuf(Buffer.from('220301ac02', 'hex'), context)['supplementalGroups'], [1, 300])
})
