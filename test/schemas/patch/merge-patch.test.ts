import assert from 'node:assert/strict'
import test from 'node:test'
import { mergePatch } from '../../../schemas/patch/index.ts'

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

// RFC 7386, appendix A.
const cases: readonly [document: unknown, patch: unknown, answer: unknown][] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [
    ['a', 'b'],
    ['c', 'd'],
    ['c', 'd'],
  ],
  [{ a: 'b' }, ['c'], ['c']],
  [{ a: 'foo' }, null, null],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: 'b', c: null }, { a: 'b' }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
]

for (const [document, patch, answer] of cases) {
  test(`merge patch of ${JSON.stringify(document)} with ${JSON.stringify(patch)}`, () => {
    const before = JSON.stringify(document)
    assert.deepEqual(plain(mergePatch(document, patch)), answer)
    assert.equal(JSON.stringify(document), before)
  })
}

test('merge patch keeps __proto__ an ordinary key', () => {
  const answer = mergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}')) as object
  assert.equal(({} as { polluted?: boolean }).polluted, undefined)
  assert.deepEqual(Object.keys(answer), ['__proto__'])
})
