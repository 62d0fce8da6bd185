import assert from 'node:assert/strict'
import test from 'node:test'
import { ApiError, conflict, expired, forbidden, invalid, modifiedText } from '../../../apiserver/errors.ts'
import { Warnings } from '../../../apiserver/filters/warnings.ts'
import { apiErrorOf, goJson, statusOf } from '../../../apiserver/status.ts'
import { SchemaError } from '../../../schemas/index.ts'
import { StorageError, type StorageErrorCode } from '../../../storage/index.ts'

test('a Status has the field order of Go', () => {
  assert.equal(
    goJson(statusOf(conflict({ group: 'apps', resource: 'deployments' }, 'd', modifiedText))),
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Operation cannot be fulfilled on ' +
      'deployments.apps \\"d\\": the object has been modified; please apply your changes to the latest version and ' +
      'try again","reason":"Conflict","details":{"name":"d","group":"apps","kind":"deployments"},"code":409}',
  )
  const causes = [{ reason: 'FieldValueRequired', message: 'Required value', field: 'spec' }]
  assert.equal(
    goJson(statusOf(invalid({ group: '', kind: 'Pod' }, 'p', causes)).details),
    '{"name":"p","kind":"Pod","causes":[{"reason":"FieldValueRequired","message":"Required value","field":"spec"}]}',
  )
})

test('an expired list carries the token to go on with', () => {
  assert.deepEqual(statusOf(expired('gone', 'token')).metadata, { continue: 'token' })
})

test('JSON is escaped for HTML as Go does', () => {
  assert.equal(goJson({ a: '<b>&\u2028' }), String.raw`{"a":"\u003cb\u003e\u0026\u2028"}`)
})

test('every failure of the store becomes the Status that tells a client what to do', () => {
  const cases: readonly [StorageErrorCode, number, string][] = [
    ['ERR_COMPACTED', 410, 'Expired'],
    ['ERR_FUTURE_REVISION', 504, 'Timeout'],
    ['ERR_TOO_LARGE', 413, 'RequestEntityTooLarge'],
    ['ERR_NO_LEADER', 500, 'ServerTimeout'],
    ['ERR_OVERLOADED', 429, 'TooManyRequests'],
    ['ERR_OUTCOME_UNKNOWN', 504, 'Timeout'],
    ['ERR_CORRUPT', 500, 'InternalError'],
  ]
  for (const [code, status, reason] of cases) {
    const failure = apiErrorOf(new StorageError(code, 'why'))
    assert.deepEqual([failure.code, failure.reason], [status, reason], code)
  }
})

test('undecodable input is 400, a failed JSON patch test 422, anything unknown 500', () => {
  assert.equal(apiErrorOf(new SchemaError('ERR_SYNTAX', 'x')).code, 400)
  assert.equal(apiErrorOf(new SchemaError('ERR_PATCH_TEST', 'x')).code, 422)
  assert.equal(apiErrorOf(new TypeError('x')).code, 500)
  assert.equal(apiErrorOf('text').message, 'Internal error occurred: text')
  const own = new ApiError(418, '', 'x')
  assert.equal(apiErrorOf(own), own)
})

test('forbidden without a name speaks of the resource', () => {
  assert.equal(forbidden({ group: '', resource: 'pods' }, '', 'why').message, 'pods is forbidden: why')
})

test('warnings are quoted, bounded, printable and said once', () => {
  const warnings = new Warnings()
  assert.deepEqual(warnings.add('say "x"\n'), [String.raw`299 - "say \"x\" "`])
  assert.equal(warnings.add('say "x"\n'), undefined)
  assert.equal(warnings.add('é')?.[1], `299 - "${Buffer.from('é').toString('latin1')}"`)
  assert.ok((warnings.add('z'.repeat(5000))?.[2]?.length ?? 0) < 300)
  for (let count = 0; count < 1000; count += 1) warnings.add(`w${count}`)
  assert.equal(warnings.add('one more'), undefined)
})
