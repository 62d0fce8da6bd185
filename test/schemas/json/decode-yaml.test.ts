import assert from 'node:assert/strict'
import test from 'node:test'
import { SchemaError } from '../../../schemas/errors.ts'
import { decodeYaml, typeOf } from '../../../schemas/index.ts'
import type { TypeDescriptor } from '../../../schemas/types.ts'

const type = typeOf({ group: '', version: 'v1', kind: 'ConfigMap' }) as TypeDescriptor
const head = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n'

const decode = (text: string) => decodeYaml(new TextEncoder().encode(text), type)
const data = async (text: string): Promise<unknown> =>
  JSON.parse(JSON.stringify((await decode(`${head}data:\n${text}`)).object['data']))

/** What a plain scalar is, told by the error of a field that wants text. */
async function kindOf(plain: string): Promise<string> {
  const text = `${head}data: {a: ${plain}}`
  try {
    const { object } = await decode(text)
    return typeof (object['data'] as { a?: unknown } | undefined)?.a
  } catch (error) {
    assert.ok(error instanceof SchemaError)
    return /cannot unmarshal (\w+)/.exec(error.message)?.[1] ?? error.message
  }
}

test('plain scalars are what the YAML library of Go makes of them', async () => {
  for (const plain of ['yes', 'No', 'on', 'OFF', 'y', 'true']) assert.equal(await kindOf(plain), 'bool', plain)
  for (const plain of ['1', '-7', '0x1F', '0o17', '017', '0b11', '1_000', '1e3', '.5', '18446744073709551615']) {
    assert.equal(await kindOf(plain), 'number', plain)
  }
  for (const plain of ['22:22', '2001-12-14', '2001-12-14T21:59:43Z', '1.2.3', '"1"', "'yes'", 'yEs', '0x', '1e999']) {
    assert.equal(await kindOf(plain), 'string', plain)
  }
})

test('merge keys are merged and aliases resolved', async () => {
  const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  labels: &l {a: "1", b: "2"}\n'
  const { object, problems } = await decode(`${text}data:\n  <<: *l\n  b: "3"\n`)
  assert.deepEqual(problems, [])
  assert.deepEqual(JSON.parse(JSON.stringify(object['data'])), { a: '1', b: '3' })
})

test('the first duplicate key is reported with its line, and the last value counts', async () => {
  const { object, problems } = await decode(`${head}data:\n  a: "1"\n  a: "2"\n`)
  assert.deepEqual(JSON.parse(JSON.stringify(object['data'])), { a: '2' })
  assert.deepEqual(
    problems.map(({ message }) => message),
    ['yaml: unmarshal errors:\n  line 6: key "a" already set in map'],
  )
})

test('block and quoted text arrives as written', async () => {
  assert.deepEqual(
    await data('  a: |\n    one\n    two\n  b: "x\\ty"\n  c: >-\n    folded\n    text\n  __proto__: p\n'),
    {
      a: 'one\ntwo\n',
      b: 'x\ty',
      c: 'folded text',
      ['__proto__']: 'p',
    },
  )
})

test('what is no single YAML mapping, too deep, or a bomb is refused', async () => {
  let laughs = `${head}data:\n  a0: &a0 [x,x,x,x,x,x,x,x,x]\n`
  for (let level = 1; level < 12; level++) laughs += `  a${level}: &a${level} [${`*a${level - 1},`.repeat(9)}]\n`
  const bomb = `${head}data:\n  a: &a "${'x'.repeat(100_000)}"\n  b: [${'*a,'.repeat(1000)}]\n`
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ['a: b: c', 'ERR_SYNTAX', /^error converting YAML to JSON: yaml: line 1: /],
    [`${head}---\n${head}`, 'ERR_SYNTAX', /single document/],
    [`a: ${'['.repeat(20_000)}`, 'ERR_DEPTH', /exceeded max depth/],
    [bomb, 'ERR_SYNTAX', /excessive aliasing/],
    [laughs, 'ERR_SYNTAX', /excessive aliasing/],
    [`${head}data: {a: .nan}`, 'ERR_SYNTAX', /no JSON form/],
    [`${head}data: {a: !!js/function 'x'}`, 'ERR_SYNTAX', /unknown tag/],
  ]
  for (const [text, code, message] of cases) {
    await assert.rejects(decode(text), (error) => {
      assert.ok(error instanceof SchemaError, String(error))
      assert.deepEqual([error.code, message.test(error.message)], [code, true], error.message)
      return true
    })
  }
})
