import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import {
  decodeJson,
  decodeValue,
  encodeGenericJson,
  encodeJson,
  nestingDepthMax,
  parseJson,
  SchemaError,
  type TypeDescriptor,
  typeDescriptor,
} from '../../../schemas/index.ts'

const pod = typeDescriptor('io.k8s.api.core.v1.Pod')
const configMap = typeDescriptor('io.k8s.api.core.v1.ConfigMap')
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))

const bytes = (text: string): Uint8Array => Buffer.from(text)
const decode = (text: string, type: TypeDescriptor = pod) => decodeJson(bytes(text), type)
const messages = (text: string, type?: TypeDescriptor) => decode(text, type).problems.map(({ message }) => message)
const plain = (value: unknown): unknown => JSON.parse(encodeGenericJson(value))

/** Go reads the integer -0 as 0; which zero it is does not matter here. */
const withoutMinusZero = (text: string): unknown => JSON.parse(text, (_, value: unknown) => (value === 0 ? 0 : value))

function refusal(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof SchemaError) return `${error.code} ${error.message}`
    throw error
  }
  return 'no refusal'
}

test('unknown fields are dropped and reported with their whole path', () => {
  const text = '{"spec":{"foo":{"x":1},"containers":[{"name":"a","bar":1},{"baz":[]}]}}'
  assert.deepEqual(messages(text), [
    'unknown field "spec.foo"',
    'unknown field "spec.containers[0].bar"',
    'unknown field "spec.containers[1].baz"',
  ])
  assert.deepEqual(plain(decode(text).object), { spec: { containers: [{ name: 'a' }, {}] } })
})

test('of duplicate fields the last counts, and each is reported once', () => {
  const text = '{"metadata":{"name":"a","name":"b","name":null,"labels":{"x":"1","x":"2"}}}'
  assert.deepEqual(messages(text), ['duplicate field "metadata.name"', 'duplicate field "metadata.labels.x"'])
  assert.deepEqual(plain(decode(text).object), { metadata: { labels: { x: '2' } } })
})

test('a duplicate after a null or empty first one is noticed too', () => {
  assert.deepEqual(messages('{"metadata":{"name":null,"name":"b"}}'), ['duplicate field "metadata.name"'])
  assert.deepEqual(messages('{"metadata":{"labels":{},"labels":{"a":"b"}}}'), ['duplicate field "metadata.labels"'])
})

test('field names are matched by case', () => {
  assert.deepEqual(messages('{"Metadata":{"name":"a"}}'), ['unknown field "Metadata"'])
})

test('no more than a hundred problems are reported', () => {
  const members = Array.from({ length: 150 }, (_, index) => `"f${index}":1`).join(',')
  assert.equal(messages(`{${members}}`).length, 100)
})

test('null and empty optional fields are absent, null items are zero values', () => {
  const text = '{"metadata":{"labels":{"a":null}},"spec":{"hostNetwork":false,"nodeName":"","containers":[null]}}'
  assert.deepEqual(plain(decode(text).object), { metadata: { labels: { a: '' } }, spec: { containers: [{}] } })
})

test('keepEmpty keeps what an apply configuration says by a zero value', () => {
  const text = '{"metadata":{"finalizers":[]},"spec":{"hostNetwork":false,"nodeName":""}}'
  assert.deepEqual(plain(decodeJson(bytes(text), pod, { keepEmpty: true }).object), JSON.parse(text))
})

test('wrong types read as Go puts them', () => {
  const into = 'ERR_TYPE json: cannot unmarshal'
  const cases: readonly (readonly [string, string])[] = [
    ['[1]', `${into} array into Go value of type v1.Pod`],
    [
      '{"spec":{"containers":"x"}}',
      `${into} string into Go struct field PodSpec.spec.containers of type []v1.Container`,
    ],
    [
      '{"spec":{"containers":["x"]}}',
      `${into} string into Go struct field PodSpec.spec.containers of type v1.Container`,
    ],
    [
      '{"spec":{"containers":[{"name":5}]}}',
      `${into} number into Go struct field Container.spec.containers.name of type string`,
    ],
    [
      '{"spec":{"containers":[{"ports":[{"protocol":{}}]}]}}',
      `${into} object into Go struct field ContainerPort.spec.containers.ports.protocol of type v1.Protocol`,
    ],
    [
      '{"metadata":{"labels":{"a":true}}}',
      `${into} bool into Go struct field ObjectMeta.metadata.labels of type string`,
    ],
    [
      '{"metadata":{"generation":1.0}}',
      `${into} number 1.0 into Go struct field ObjectMeta.metadata.generation of type int64`,
    ],
    [
      '{"spec":{"priority":2147483648}}',
      `${into} number 2147483648 into Go struct field PodSpec.spec.priority of type int32`,
    ],
    [
      '{"metadata":{"creationTimestamp":1}}',
      `${into} number into Go struct field ObjectMeta.metadata.creationTimestamp of type string`,
    ],
    [
      '{"metadata":{"creationTimestamp":"x"}}',
      'ERR_TYPE parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
    ],
    [
      '{"spec":{"overhead":{"cpu":"1x"}}}',
      "ERR_TYPE quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ],
  ]
  for (const [text, wanted] of cases)
    assert.equal(
      refusal(() => decode(text)),
      wanted,
    )
  const secret = typeDescriptor('io.k8s.api.core.v1.Secret')
  assert.equal(
    refusal(() => decode('{"data":{"a":"%%"}}', secret)),
    'ERR_TYPE illegal base64 data at input byte 0',
  )
})

test('a syntax error later in the text goes before a type error', () => {
  assert.equal(
    refusal(() => decode('{"spec":5,"x":}')),
    "ERR_SYNTAX invalid character '}' looking for beginning of value",
  )
})

test('syntax errors read as those of Go', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['', 'unexpected end of JSON input'],
    ['{"a":1', 'unexpected end of JSON input'],
    ['{"a" 1}', "invalid character '1' after object key"],
    ['{"a":1 "b":2}', `invalid character '"' after object key:value pair`],
    ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
    ['[1,]', "invalid character ']' looking for beginning of value"],
    ['[1 2]', "invalid character '2' after array element"],
    ["{'a':1}", "invalid character '\\'' looking for beginning of object key string"],
    ['{"a":tru}', "invalid character '}' in literal true (expecting 'e')"],
    ['{"a":NaN}', "invalid character 'N' looking for beginning of value"],
    ['{"a":01}', "invalid character '1' after object key:value pair"],
    ['{"a":1.}', "invalid character '}' after decimal point in numeric literal"],
    ['{"a":1e}', "invalid character '}' in exponent of numeric literal"],
    ['{"a":"\n"}', "invalid character '\\n' in string literal"],
    ['{"a":"\\x"}', "invalid character 'x' in string escape code"],
    ['{"a":"\\u12g4"}', "invalid character 'g' in \\u hexadecimal character escape"],
    ['{} {}', "invalid character '{' after top-level value"],
    ['\ufeff{}', "invalid character 'ï' looking for beginning of value"],
  ]
  for (const [text, wanted] of cases)
    assert.equal(
      refusal(() => parseJson(bytes(text))),
      `ERR_SYNTAX ${wanted}`,
    )
})

test('bytes that are not UTF-8 are refused, encoded surrogates too; escaped ones become U+FFFD', () => {
  for (const bad of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80]]) {
    const data = Buffer.concat([Buffer.from('{"data":{"a":"'), Buffer.from(bad), Buffer.from('"}}')])
    assert.match(
      refusal(() => decodeJson(data, configMap)),
      /^ERR_SYNTAX/,
    )
  }
  assert.deepEqual(plain(decode('{"data":{"a":"\\ud800x\\ud83d\\ude00"}}', configMap).object), {
    data: { a: '\ufffdx\u{1f600}' },
  })
})

test('__proto__ and constructor are keys like any other', () => {
  const text = '{"data":{"__proto__":"p","constructor":"c"}}'
  const { object } = decode(text, configMap)
  assert.equal(Object.getPrototypeOf(object['data']), null)
  assert.equal(
    Buffer.from(encodeJson(object, configMap)).toString(),
    '{"metadata":{},"data":{"__proto__":"p","constructor":"c"}}',
  )
  assert.deepEqual(messages('{"__proto__":{}}'), ['unknown field "__proto__"'])
})

test('a million levels are refused without exhausting the stack; the limit itself is taken', () => {
  for (const open of ['[', '{"a":', '{"spec":']) {
    assert.equal(
      refusal(() => parseJson(bytes(open.repeat(1e6)))),
      'ERR_DEPTH exceeded max depth',
    )
    assert.match(
      refusal(() => decode(open.repeat(1e6))),
      /^ERR_(DEPTH|TYPE)/,
    )
  }
  const deepest = `${'['.repeat(nestingDepthMax)}${']'.repeat(nestingDepthMax)}`
  assert.equal(encodeGenericJson(parseJson(bytes(deepest)).value), deepest)
  assert.equal(
    refusal(() => parseJson(bytes(`[${deepest}]`))),
    'ERR_DEPTH exceeded max depth',
  )
})

test('recursive types are bounded as raw values are', () => {
  const props = typeDescriptor('io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps')
  assert.equal(
    refusal(() => decode('{"not":'.repeat(1e5), props)),
    'ERR_DEPTH exceeded max depth',
  )
})

test('integers beyond 2^53 survive as bigint', () => {
  const { object } = decode('{"metadata":{"generation":9223372036854775807}}')
  assert.equal((object['metadata'] as Record<string, unknown>)['generation'], 9223372036854775807n)
  assert.match(
    refusal(() => decode('{"metadata":{"generation":9223372036854775808}}')),
    /into Go struct field/,
  )
  assert.equal(parseJson(bytes('-9007199254740993')).value, -9007199254740993n)
})

test('any JSON parses as JSON.parse has it, and comes back', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      assert.deepEqual(withoutMinusZero(encodeGenericJson(parseJson(bytes(text)).value)), withoutMinusZero(text))
    }),
    { seed, numRuns: 300 },
  )
})

test('any damaged text is refused exactly when JSON.parse refuses it', () => {
  const base = '{"a":[1,-2.5e3,true,null,"x\\n\\u00e9"],"b":{"c":{}}}'
  fc.assert(
    fc.property(fc.nat(base.length - 1), fc.constantFrom(...'{}[]",:\\0 1eE+-.tnu\u0001'.split('')), (at, char) => {
      const text = base.slice(0, at) + char + base.slice(at + 1)
      let good = true
      try {
        JSON.parse(text)
      } catch {
        good = false
      }
      assert.equal(refusal(() => parseJson(bytes(text))) === 'no refusal', good, text)
    }),
    { seed, numRuns: 500 },
  )
})

test('decodeValue makes of a parsed value what decodeJson makes of its text', () => {
  const text =
    '{"metadata":{"name":"a","labels":{"a":null},"creationTimestamp":"2026-01-01T01:00:00+01:00"},"spec":{"foo":1,' +
    '"hostNetwork":false,"containers":[{"name":"c","resources":{"limits":{"cpu":"1000m","memory":1024}}}]}}'
  const direct = decode(text)
  const walked = decodeValue(parseJson(bytes(text)).value, pod)
  assert.deepEqual(walked, direct)
})
