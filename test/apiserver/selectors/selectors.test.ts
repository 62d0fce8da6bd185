import assert from 'node:assert/strict'
import test from 'node:test'
import { ApiError } from '../../../apiserver/errors.ts'
import {
  checkFieldLabels,
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
} from '../../../apiserver/selectors/index.ts'

const refused = (text: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ApiError, String(error))
  assert.equal(error.code, 400)
  assert.match(error.message, text)
  return true
}

test('label selectors choose as the grammar says', () => {
  const labels = { app: 'web', tier: '', size: '12', in: 'x' }
  const cases: readonly (readonly [string, boolean])[] = [
    ['', true],
    ['app=web', true],
    ['app==web', true],
    [' app = web ', true],
    ['app=db', false],
    ['app!=db', true],
    ['missing!=db', true],
    ['app!=web', false],
    ['app in (db, web)', true],
    ['app in(db)', false],
    ['app notin (db)', true],
    ['missing notin (db)', true],
    ['missing in (db)', false],
    ['app', true],
    ['missing', false],
    ['!missing', true],
    ['!app', false],
    ['tier=', true],
    ['app=', false],
    ['tier in (,a)', true],
    ['size>11', true],
    ['size>12', false],
    ['size<13', true],
    ['app>1', false],
    ['app=web,size=12', true],
    ['app=web,size=13', false],
    ['in=x', true],
    ['in in (x)', true],
    ['constructor', false],
  ]
  for (const [text, expected] of cases) {
    assert.equal(matchesLabels(parseLabelSelector(text), labels), expected, text)
  }
})

test('label selectors that cannot be parsed are 400', () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['=a', /found '=', expected: !, identifier, or 'end of string'/],
    ['a,', /found '', expected: identifier after ','/],
    ['a b', /unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt/],
    ['a in b', /unable to parse requirement: found 'b' expected: '\('/],
    ['a in (b', /unable to parse requirement: found '', expected: ',' or '\)'/],
    ['a in ()', /values set can't be empty/],
    ['a=b=c', /found '=', expected: ',' or 'end of string'/],
    ['!', /found '', expected: identifier/],
    ['a>x', /the value must be an integer/],
    ['-a', /key: Invalid value: "-a"/],
    ['a=-b', /values\[0\]\[a\]: Invalid value: "-b"/],
  ]
  for (const [text, message] of cases) assert.throws(() => parseLabelSelector(text), refused(message), text)
})

test('field selectors choose, with escapes', () => {
  const fields = { 'metadata.name': 'a', 'status.phase': 'Running', odd: 'a,b=c\\' }
  const cases: readonly (readonly [string, boolean])[] = [
    ['', true],
    ['metadata.name=a', true],
    ['metadata.name==a', true],
    ['metadata.name!=a', false],
    ['metadata.name=a,status.phase!=Failed', true],
    ['status.phase=', false],
    ['missing=', true],
    ['odd=a\\,b\\=c\\\\', true],
  ]
  for (const [text, expected] of cases) assert.equal(matchesFields(parseFieldSelector(text), fields), expected, text)
})

test('field selectors that cannot be parsed or are not supported are 400', () => {
  assert.throws(() => parseFieldSelector('abc'), refused(/invalid selector: 'abc'; can't understand 'abc'/))
  assert.throws(() => parseFieldSelector('a=b\\x'), refused(/invalid escape sequence: \\x/))
  assert.throws(() => parseFieldSelector('a=b=c'), refused(/unescaped character in value: =/))
  const requirements = parseFieldSelector('spec.x=1')
  assert.throws(() => checkFieldLabels(requirements, ['spec.y']), refused(/^field label not supported: spec\.x$/))
  assert.throws(
    () => checkFieldLabels(requirements, []),
    refused(/^"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"$/),
  )
  checkFieldLabels(requirements, ['spec.x'])
})
