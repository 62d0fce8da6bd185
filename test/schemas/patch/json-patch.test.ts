import assert from 'node:assert/strict'
import test from 'node:test'
import { SchemaError } from '../../../schemas/errors.ts'
import { jsonPatch } from '../../../schemas/patch/index.ts'

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

// RFC 6902, appendix A, and what the API server's clients do daily.
const cases: readonly { name: string; document: unknown; patch: unknown; answer?: unknown; code?: string }[] = [
  { name: 'adds a member', document: { a: 1 }, patch: [{ op: 'add', path: '/b', value: 2 }], answer: { a: 1, b: 2 } },
  {
    name: 'adds in front of an item',
    document: [1, 3],
    patch: [{ op: 'add', path: '/1', value: 2 }],
    answer: [1, 2, 3],
  },
  {
    name: 'appends with -',
    document: { a: [1] },
    patch: [{ op: 'add', path: '/a/-', value: 2 }],
    answer: { a: [1, 2] },
  },
  {
    name: 'replaces the whole document',
    document: { a: 1 },
    patch: [{ op: 'add', path: '', value: { b: 1 } }],
    answer: { b: 1 },
  },
  { name: 'removes a member', document: { a: 1, b: 2 }, patch: [{ op: 'remove', path: '/a' }], answer: { b: 2 } },
  { name: 'removes an item', document: [1, 2, 3], patch: [{ op: 'remove', path: '/1' }], answer: [1, 3] },
  {
    name: 'replaces a nested item',
    document: { a: [{ b: 1 }] },
    patch: [{ op: 'replace', path: '/a/0/b', value: 2 }],
    answer: { a: [{ b: 2 }] },
  },
  {
    name: 'moves',
    document: { a: { x: 1 }, b: {} },
    patch: [{ op: 'move', from: '/a/x', path: '/b/y' }],
    answer: { a: {}, b: { y: 1 } },
  },
  { name: 'copies', document: { a: [1] }, patch: [{ op: 'copy', from: '/a', path: '/b' }], answer: { a: [1], b: [1] } },
  {
    name: 'passes a test',
    document: { a: { b: [1, 'x'] } },
    patch: [{ op: 'test', path: '/a', value: { b: [1, 'x'] } }],
    answer: { a: { b: [1, 'x'] } },
  },
  {
    name: 'tests a missing member as null',
    document: {},
    patch: [{ op: 'test', path: '/a', value: null }],
    answer: {},
  },
  {
    name: 'decodes ~1 and ~0 in that order',
    document: { 'a/b': 1, '~1': 2 },
    patch: [
      { op: 'remove', path: '/a~1b' },
      { op: 'replace', path: '/~01', value: 3 },
    ],
    answer: { '~1': 3 },
  },
  {
    name: 'refuses a failed test',
    document: { a: 1 },
    patch: [{ op: 'test', path: '/a', value: 2 }],
    code: 'ERR_PATCH_TEST',
  },
  { name: 'refuses to remove what is missing', document: {}, patch: [{ op: 'remove', path: '/a' }], code: 'ERR_PATCH' },
  {
    name: 'refuses to replace what is missing',
    document: {},
    patch: [{ op: 'replace', path: '/a', value: 1 }],
    code: 'ERR_PATCH',
  },
  {
    name: 'refuses an index past the end',
    document: [1],
    patch: [{ op: 'add', path: '/2', value: 1 }],
    code: 'ERR_PATCH',
  },
  { name: 'refuses a leading zero', document: [1, 2], patch: [{ op: 'remove', path: '/01' }], code: 'ERR_PATCH' },
  { name: 'refuses a missing parent', document: {}, patch: [{ op: 'add', path: '/a/b', value: 1 }], code: 'ERR_PATCH' },
  {
    name: 'refuses a move into itself',
    document: { a: {} },
    patch: [{ op: 'move', from: '/a', path: '/a/b' }],
    code: 'ERR_PATCH',
  },
  { name: 'refuses an unknown op', document: {}, patch: [{ op: 'poke', path: '/a' }], code: 'ERR_PATCH' },
  { name: 'refuses an add without a value', document: {}, patch: [{ op: 'add', path: '/a' }], code: 'ERR_PATCH' },
  { name: 'refuses what is no array', document: {}, patch: { op: 'add' }, code: 'ERR_PATCH' },
  {
    name: 'refuses a path that is no pointer',
    document: {},
    patch: [{ op: 'add', path: 'a', value: 1 }],
    code: 'ERR_PATCH',
  },
]

for (const { name, document, patch, answer, code } of cases) {
  test(`JSON patch ${name}`, () => {
    const before = JSON.stringify(document)
    if (code === undefined) assert.deepEqual(plain(jsonPatch(document, patch)), answer)
    else
      assert.throws(
        () => jsonPatch(document, patch),
        (error) => error instanceof SchemaError && error.code === code,
      )
    assert.equal(JSON.stringify(document), before, 'the document itself is never changed')
  })
}

test('JSON patch keeps __proto__ an ordinary key', () => {
  const answer = jsonPatch({ a: 1 }, [{ op: 'add', path: '/__proto__', value: { polluted: true } }]) as object
  assert.equal(({} as { polluted?: boolean }).polluted, undefined)
  assert.deepEqual(Object.keys(answer), ['a', '__proto__'])
})

test('JSON patch bounds what copies add up to', () => {
  const doubling = Array.from({ length: 40 }, () => ({ op: 'copy', from: '/a', path: '/a/-' }))
  assert.throws(
    () => jsonPatch({ a: ['x'.repeat(1000)] }, doubling),
    (error) => error instanceof SchemaError && error.code === 'ERR_PATCH',
  )
})

test('JSON patch changes one of two copies and leaves the other', () => {
  const patch = [
    { op: 'add', path: '/a/b', value: { c: [] } },
    { op: 'add', path: '/a/b/c/-', value: 1 },
    { op: 'copy', from: '/a', path: '/copy' },
    { op: 'add', path: '/copy/b/c/-', value: 2 },
    { op: 'add', path: '/a/b/c/-', value: 3 },
  ]
  const kept = JSON.stringify(patch)
  assert.deepEqual(plain(jsonPatch({ a: {} }, patch)), { a: { b: { c: [1, 3] } }, copy: { b: { c: [1, 2] } } })
  assert.equal(JSON.stringify(patch), kept, 'the patch itself is never changed')
})

test('JSON patch copies a container once, however many operations change it', () => {
  let reads = 0
  const counting = new Proxy(
    {},
    {
      ownKeys: () => ((reads += 1), []),
    },
  )
  const operations = Array.from({ length: 1000 }, (_, key) => ({ op: 'add', path: `/data/${key}`, value: key }))
  const answer = jsonPatch({ data: counting }, operations) as { data: object }
  assert.equal(Object.keys(answer.data).length, 1000)
  assert.equal(reads, 1)
})
