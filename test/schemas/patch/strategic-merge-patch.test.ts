import assert from 'node:assert/strict'
import test from 'node:test'
import { SchemaError } from '../../../schemas/errors.ts'
import { strategicMergePatch } from '../../../schemas/patch/index.ts'
import type { FieldDescriptor, ObjectValue, TypeDescriptor, TypeRef } from '../../../schemas/types.ts'

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

function descriptor(
  name: string,
  fields: Record<string, TypeRef | [TypeRef, FieldDescriptor['patch']]>,
): TypeDescriptor {
  const list = Object.entries(fields).map(([jsonName, given], position): FieldDescriptor => {
    const [type, patch] = Array.isArray(given) ? given : [given, undefined]
    return { jsonName, protoNumber: position + 1, type, presence: 'omitEmpty', ...(patch && { patch }) }
  })
  return { name, fields: list, byJsonName: new Map(list.map((f) => [f.jsonName, f])), preserveUnknown: false }
}

const text: TypeRef = { is: 'string' }
const of = (type: TypeDescriptor): TypeRef => ({ is: 'message', descriptor: () => type })
const listOf = (type: TypeRef): TypeRef => ({ is: 'list', of: type })

const port = descriptor('Port', { containerPort: { is: 'int32' }, protocol: text })
const container = descriptor('Container', {
  name: text,
  image: text,
  args: listOf(text),
  ports: [listOf(of(port)), { strategies: ['merge'], mergeKey: 'containerPort' }],
})
const strategy = descriptor('Strategy', { type: text, rollingUpdate: { is: 'map', of: text } })
const spec = descriptor('Spec', {
  containers: [listOf(of(container)), { strategies: ['merge'], mergeKey: 'name' }],
  finalizers: [listOf(text), { strategies: ['merge'] }],
  hosts: listOf(text),
  strategy: [of(strategy), { strategies: ['retainKeys'] }],
  labels: { is: 'map', of: text },
  selector: [of(strategy), { strategies: ['replace'] }],
})
const root = descriptor('io.test.Root', { spec: of(spec) })

const cases: readonly { name: string; document: object; patch: object; answer?: object; code?: string }[] = [
  {
    name: 'merges list items by their key and appends new ones',
    document: {
      containers: [
        { name: 'a', image: '1' },
        { name: 'b', image: '1' },
      ],
    },
    patch: { containers: [{ name: 'b', image: '2' }, { name: 'c' }] },
    answer: { containers: [{ name: 'a', image: '1' }, { name: 'b', image: '2' }, { name: 'c' }] },
  },
  {
    name: 'merges lists inside list items',
    document: { containers: [{ name: 'a', ports: [{ containerPort: 80, protocol: 'TCP' }] }] },
    patch: { containers: [{ name: 'a', ports: [{ containerPort: 81 }, { containerPort: 80, protocol: 'UDP' }] }] },
    answer: { containers: [{ name: 'a', ports: [{ containerPort: 81 }, { containerPort: 80, protocol: 'UDP' }] }] },
  },
  {
    name: 'replaces lists that do not merge',
    document: { hosts: ['a', 'b'], containers: [{ name: 'a', args: ['x', 'y'] }] },
    patch: { hosts: ['c'], containers: [{ name: 'a', args: ['z'] }] },
    answer: { hosts: ['c'], containers: [{ name: 'a', args: ['z'] }] },
  },
  {
    name: 'removes with null, also inside maps',
    document: { labels: { a: '1', b: '2' }, hosts: ['a'] },
    patch: { labels: { a: null }, hosts: null },
    answer: { labels: { b: '2' } },
  },
  {
    name: 'drops nulls from what it adds',
    document: {},
    patch: { labels: { a: null, b: '1' } },
    answer: { labels: { b: '1' } },
  },
  {
    name: 'deletes an item with $patch: delete',
    document: { containers: [{ name: 'a' }, { name: 'b' }] },
    patch: { containers: [{ $patch: 'delete', name: 'a' }] },
    answer: { containers: [{ name: 'b' }] },
  },
  {
    name: 'replaces a list with a $patch: replace item',
    document: { containers: [{ name: 'a' }, { name: 'b' }] },
    patch: { containers: [{ name: 'c' }, { $patch: 'replace' }] },
    answer: { containers: [{ name: 'c' }] },
  },
  {
    name: 'replaces a map with $patch: replace',
    document: { strategy: { type: 'Rolling', rollingUpdate: { max: '1' } } },
    patch: { strategy: { $patch: 'replace', type: 'Recreate' } },
    answer: { strategy: { type: 'Recreate' } },
  },
  {
    name: 'empties a map with $patch: delete',
    document: { strategy: { type: 'Rolling' }, hosts: ['a'] },
    patch: { strategy: { $patch: 'delete' } },
    answer: { strategy: {}, hosts: ['a'] },
  },
  {
    name: 'keeps only $retainKeys of a union',
    document: { strategy: { type: 'Rolling', rollingUpdate: { max: '1' } } },
    patch: { strategy: { $retainKeys: ['type'], type: 'Recreate' } },
    answer: { strategy: { type: 'Recreate' } },
  },
  {
    name: 'replaces a map whose field says so',
    document: { selector: { type: 'a', rollingUpdate: { x: '1' } } },
    patch: { selector: { type: 'b' } },
    answer: { selector: { type: 'b' } },
  },
  {
    name: 'unites primitive lists that merge',
    document: { finalizers: ['a', 'b'] },
    patch: { finalizers: ['b', 'c'] },
    answer: { finalizers: ['a', 'b', 'c'] },
  },
  {
    name: 'deletes from primitive lists',
    document: { finalizers: ['a', 'b', 'c'] },
    patch: { '$deleteFromPrimitiveList/finalizers': ['b'] },
    answer: { finalizers: ['a', 'c'] },
  },
  {
    name: 'deletes and adds to a primitive list in one patch with an order',
    document: { finalizers: ['a', 'b'] },
    patch: {
      '$deleteFromPrimitiveList/finalizers': ['a'],
      '$setElementOrder/finalizers': ['c', 'b'],
      finalizers: ['c'],
    },
    answer: { finalizers: ['c', 'b'] },
  },
  {
    name: 'orders a list by $setElementOrder as kubectl apply sends it',
    document: { containers: [{ name: 'a' }, { name: 'server' }, { name: 'b' }] },
    patch: {
      '$setElementOrder/containers': [{ name: 'b' }, { name: 'c' }, { name: 'a' }],
      containers: [{ name: 'c', image: '1' }],
    },
    // What only the server has keeps its place in front of the first listed item that it preceded there.
    answer: { containers: [{ name: 'server' }, { name: 'b' }, { name: 'c', image: '1' }, { name: 'a' }] },
  },
  {
    name: 'refuses items outside $setElementOrder',
    document: { containers: [] },
    patch: { '$setElementOrder/containers': [{ name: 'a' }], containers: [{ name: 'z' }] },
    code: 'ERR_PATCH',
  },
  {
    name: 'refuses a list item without its merge key',
    document: { containers: [{ name: 'a' }] },
    patch: { containers: [{ image: '1' }] },
    code: 'ERR_PATCH',
  },
  {
    name: 'refuses an unknown directive',
    document: { strategy: {} },
    patch: { strategy: { $patch: 'x' } },
    code: 'ERR_PATCH',
  },
  { name: 'refuses an unknown field that holds a map', document: {}, patch: { foo: { a: 1 } }, code: 'ERR_PATCH' },
]

for (const { name, document, patch, answer, code } of cases) {
  test(`strategic merge patch ${name}`, () => {
    const object = { spec: document } as ObjectValue
    const before = JSON.stringify(object)
    if (code === undefined)
      assert.deepEqual(plain(strategicMergePatch(object, { spec: patch }, root)), { spec: answer })
    else
      assert.throws(
        () => strategicMergePatch(object, { spec: patch }, root),
        (error) => error instanceof SchemaError && error.code === code,
      )
    assert.equal(JSON.stringify(object), before, 'the document itself is never changed')
  })
}

test('strategic merge patch applied twice changes nothing the second time', () => {
  const document = { spec: { containers: [{ name: 'a', image: '1' }] } } as ObjectValue
  const patch = { spec: { containers: [{ name: 'b', image: '2' }], labels: { x: 'y' }, finalizers: ['f'] } }
  const once = strategicMergePatch(document, patch, root)
  assert.deepEqual(plain(strategicMergePatch(once, patch, root)), plain(once))
})

test('strategic merge patch keeps __proto__ an ordinary key', () => {
  const patch = JSON.parse('{"spec":{"labels":{"__proto__":"x"}}}') as object
  const answer = strategicMergePatch({}, patch, root) as { spec: { labels: object } }
  assert.deepEqual(Object.keys(answer.spec.labels), ['__proto__'])
})

test('strategic merge patch looks at each item of a long list a bounded number of times', () => {
  const count = 500
  let reads = 0
  const item = (name: string): object =>
    Object.defineProperty({}, 'name', { enumerable: true, get: () => ((reads += 1), name) })
  const list = (prefix: string): object[] => Array.from({ length: count }, (_, index) => item(`${prefix}-${index}`))
  const document = { spec: { containers: list('old') } } as unknown as ObjectValue
  const answer = strategicMergePatch(document, { spec: { containers: list('new') } }, root)
  assert.equal(((answer['spec'] as ObjectValue)['containers'] as unknown[]).length, 2 * count)
  assert.ok(reads <= 40 * count, `${reads} reads of ${2 * count} keys`)
})
