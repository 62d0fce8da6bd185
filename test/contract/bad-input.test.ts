/** Whatever comes in: the right Status goes out, nothing is stored, and the process lives on. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { call, type CallOptions, configMap, type ControlPlaneProcess, startProcess } from '../control-plane.ts'

const collection = '/api/v1/namespaces/default/configmaps'

let plane: ControlPlaneProcess
let revision: string

before(async () => {
  plane = await startProcess()
  const created = await call(plane.http, 'POST', collection, { body: configMap('present', { a: '1' }) })
  assert.equal(created.status, 201)
  revision = await currentRevision()
})

after(async () => {
  assert.equal(await plane.stop(), 0)
})

async function currentRevision(): Promise<string> {
  return (await call(plane.http, 'GET', collection)).json.metadata.resourceVersion
}

const nested = (levels: number): string =>
  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}}`

interface Case {
  readonly name: string
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path?: string
  readonly body?: CallOptions['body']
  readonly contentType?: string
  readonly code: number
  readonly reason: string
  readonly message: RegExp
}

const map = (rest: string): string => `{"apiVersion":"v1","kind":"ConfigMap",${rest}}`

const cases: readonly Case[] = [
  {
    name: 'malformed JSON',
    body: '{"apiVersion":"v1","kind":"ConfigMap",',
    code: 400,
    reason: 'BadRequest',
    message: /unexpected end|unexpected EOF/i,
  },
  {
    name: 'no JSON at all',
    body: 'hello',
    code: 400,
    reason: 'BadRequest',
    message: /invalid character|json|looking for beginning/i,
  },
  { name: 'an empty body', body: '', code: 400, reason: 'BadRequest', message: /./ },
  { name: 'a top-level array', body: '[]', code: 400, reason: 'BadRequest', message: /./ },
  {
    name: 'another kind',
    body: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' } },
    code: 400,
    reason: 'BadRequest',
    message: /Pod in version "v1" cannot be handled as a ConfigMap/,
  },
  {
    name: 'another version',
    body: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'x' } },
    code: 400,
    reason: 'BadRequest',
    message: /cannot be handled as a ConfigMap|does not match the expected API version/,
  },
  {
    name: 'an unknown kind',
    body: { apiVersion: 'v7', kind: 'Nothing', metadata: { name: 'x' } },
    code: 400,
    reason: 'BadRequest',
    message: /no kind "Nothing" is registered|does not match|cannot be handled/,
  },
  {
    name: 'an unknown field, strictly',
    path: `${collection}?fieldValidation=Strict`,
    body: map('"metadata":{"name":"x"},"dta":{}'),
    code: 400,
    reason: 'BadRequest',
    message: /strict decoding error: unknown field "dta"/,
  },
  {
    name: 'a duplicate field, strictly',
    path: `${collection}?fieldValidation=Strict`,
    body: map('"metadata":{"name":"x","name":"y"}'),
    code: 400,
    reason: 'BadRequest',
    message: /strict decoding error: duplicate field "metadata.name"/,
  },
  {
    name: 'an unknown fieldValidation',
    path: `${collection}?fieldValidation=Perhaps`,
    body: configMap('x'),
    code: 422,
    reason: 'Invalid',
    message: /fieldValidation: Unsupported value: "Perhaps"/,
  },
  {
    name: 'a body of 4 MiB',
    body: map(`"metadata":{"name":"x"},"data":{"a":"${'x'.repeat(4 * 1024 * 1024)}"}`),
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: /limit is 3145728/,
  },
  { name: '10,000 levels of nesting', body: nested(10_000), code: 400, reason: 'BadRequest', message: /./ },
  { name: '200,000 levels of nesting', body: nested(200_000), code: 400, reason: 'BadRequest', message: /./ },
  {
    name: 'more bad labels than a call has arguments',
    body: map(
      `"metadata":{"name":"x","labels":{${Array.from({ length: 150_000 }, (_, n) => `"-${n}":""`).join(',')}}}`,
    ),
    code: 422,
    reason: 'Invalid',
    message: /metadata\.labels: Invalid value: "-0".*, and \d+ more\]$/,
  },
  {
    name: 'two thousand controlling owners',
    body: map(
      `"metadata":{"name":"x","ownerReferences":[${Array.from({ length: 2000 }, (_, n) => `{"apiVersion":"v1","kind":"X","name":"n${n}","uid":"u${n}","controller":true}`).join(',')}]}`,
    ),
    code: 422,
    reason: 'Invalid',
    message: /Only one reference can have Controller set to true\. Found "true" in references for X\/n0 and X\/n1/,
  },
  {
    name: 'an integer of a million digits',
    body: map(`"metadata":{"name":"x","generation":${'9'.repeat(1_000_000)}}`),
    code: 400,
    reason: 'BadRequest',
    message: /cannot unmarshal number 9+ into Go struct field ObjectMeta\.metadata\.generation of type int64/,
  },
  {
    name: 'a schedule of half a million numbers and no more',
    path: '/apis/batch/v1/namespaces/default/cronjobs',
    body: `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"x"},"spec":{"schedule":"${'1,'.repeat(500_000)}","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}}}}}`,
    code: 422,
    reason: 'Invalid',
    message: /expected exactly 5 fields, found 1/,
  },
  {
    name: 'invalid UTF-8',
    body: Buffer.concat([
      Buffer.from(map('"metadata":{"name":"x"},"data":{"a":"').slice(0, -1)),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}}'),
    ]),
    code: 400,
    reason: 'BadRequest',
    message: /./,
  },
  {
    name: 'a string for a map',
    body: map('"metadata":{"name":"x"},"data":"no"'),
    code: 400,
    reason: 'BadRequest',
    message: /cannot unmarshal string into Go struct field ConfigMap\.data of type map\[string\]string/,
  },
  {
    name: 'a number for a name',
    body: map('"metadata":{"name":5}'),
    code: 400,
    reason: 'BadRequest',
    message: /cannot unmarshal number into Go struct field ObjectMeta\.metadata\.name of type string/,
  },
  {
    name: 'an int32 beyond its range',
    path: '/apis/apps/v1/namespaces/default/deployments',
    body: '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"replicas":9007199254740993}}',
    code: 400,
    reason: 'BadRequest',
    message: /cannot unmarshal number/,
  },
  {
    name: 'an int64 beyond its range',
    path: '/api/v1/namespaces/default/pods',
    body: '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"activeDeadlineSeconds":99999999999999999999}}',
    code: 400,
    reason: 'BadRequest',
    message: /cannot unmarshal number/,
  },
  {
    name: 'a bad name',
    body: configMap('Not_A_Name'),
    code: 422,
    reason: 'Invalid',
    message: /metadata\.name: Invalid value: "Not_A_Name": a lowercase RFC 1123 subdomain must consist of/,
  },
  {
    name: 'no name',
    body: { apiVersion: 'v1', kind: 'ConfigMap' },
    code: 422,
    reason: 'Invalid',
    message: /name or generateName is required/,
  },
  {
    name: 'another namespace in the body',
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'kube-system' } },
    code: 400,
    reason: 'BadRequest',
    message: /namespace of the provided object does not match the namespace sent on the request/,
  },
  {
    name: 'a namespace that is not there',
    path: '/api/v1/namespaces/nowhere/configmaps',
    body: configMap('x'),
    code: 404,
    reason: 'NotFound',
    message: /^namespaces "nowhere" not found$/,
  },
  {
    name: 'a resourceVersion at creation',
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', resourceVersion: '1' } },
    code: 500,
    reason: '',
    message: /resourceVersion should not be set on objects to be created/,
  },
  {
    name: 'an existing name',
    body: configMap('present'),
    code: 409,
    reason: 'AlreadyExists',
    message: /^configmaps "present" already exists$/,
  },
  {
    name: 'another media type',
    body: 'a=1',
    contentType: 'application/x-www-form-urlencoded',
    code: 415,
    reason: 'UnsupportedMediaType',
    message: /./,
  },
  {
    name: 'a bad label selector',
    method: 'GET',
    path: `${collection}?labelSelector=${encodeURIComponent('a in (')}`,
    code: 400,
    reason: 'BadRequest',
    message: /unable to parse/,
  },
  {
    name: 'a bad field selector',
    method: 'GET',
    path: `${collection}?fieldSelector=${encodeURIComponent('data.a=1')}`,
    code: 400,
    reason: 'BadRequest',
    message: /"data\.a" is not a known field selector/,
  },
  {
    name: 'a bad continue token',
    method: 'GET',
    path: `${collection}?limit=1&continue=nonsense`,
    code: 400,
    reason: 'BadRequest',
    message: /continue/,
  },
  {
    name: 'a continue token that climbs',
    method: 'GET',
    path: `${collection}?limit=1&continue=${Buffer.from('{"v":"meta.k8s.io/v1","rv":5,"start":"../../secrets/x\\u0000"}').toString('base64url')}`,
    code: 400,
    reason: 'BadRequest',
    message: /continue/,
  },
  {
    name: 'a resourceVersion that is no number',
    method: 'GET',
    path: `${collection}?resourceVersion=abc`,
    code: 400,
    reason: 'BadRequest',
    message: /resourceVersion|resource version/i,
  },
  {
    name: 'a resourceVersion of the future',
    method: 'GET',
    path: `${collection}?resourceVersion=999999999`,
    code: 504,
    reason: 'Timeout',
    message: /^Too large resource version: 999999999, current: \d+$/,
  },
  {
    name: 'a match without a resourceVersion',
    method: 'GET',
    path: `${collection}?resourceVersionMatch=Exact`,
    code: 422,
    reason: 'Invalid',
    message: /resourceVersionMatch/,
  },
  {
    name: 'a bad limit',
    method: 'GET',
    path: `${collection}?limit=many`,
    code: 400,
    reason: 'BadRequest',
    message: /many/,
  },
  {
    name: 'a bad timeout',
    method: 'GET',
    path: `${collection}?timeout=soon`,
    code: 400,
    reason: 'BadRequest',
    message: /timeout/i,
  },
  {
    name: 'a JSON patch that is no array',
    method: 'PATCH',
    path: `${collection}/present`,
    body: '{}',
    contentType: 'application/json-patch+json',
    code: 400,
    reason: 'BadRequest',
    message: /./,
  },
  {
    name: 'a JSON patch that does not apply',
    method: 'PATCH',
    path: `${collection}/present`,
    body: '[{"op":"remove","path":"/data/none"}]',
    contentType: 'application/json-patch+json',
    code: 422,
    reason: 'Invalid',
    message: /./,
  },
  {
    name: 'a patch of the name',
    method: 'PATCH',
    path: `${collection}/present`,
    body: '{"metadata":{"name":"other"}}',
    contentType: 'application/merge-patch+json',
    code: 400,
    reason: 'BadRequest',
    message: /name/,
  },
  {
    name: 'a patch of an unknown type',
    method: 'PATCH',
    path: `${collection}/present`,
    body: '{}',
    contentType: 'application/json',
    code: 415,
    reason: 'UnsupportedMediaType',
    message: /application\/json-patch\+json/,
  },
  {
    name: 'a patch with a stale resourceVersion',
    method: 'PATCH',
    path: `${collection}/present`,
    body: '{"metadata":{"resourceVersion":"1"},"data":{"b":"2"}}',
    contentType: 'application/merge-patch+json',
    code: 409,
    reason: 'Conflict',
    message: /the object has been modified/,
  },
  {
    name: 'another uid in a PUT',
    method: 'PUT',
    path: `${collection}/present`,
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'present', uid: 'other' } },
    code: 409,
    reason: 'Conflict',
    message: /Precondition failed: UID in precondition: other/,
  },
  {
    name: 'another name in a PUT',
    method: 'PUT',
    path: `${collection}/present`,
    body: configMap('other'),
    code: 400,
    reason: 'BadRequest',
    message: /the name of the object \(other\) does not match the name on the URL \(present\)/,
  },
  {
    name: 'a PUT of what is not there',
    method: 'PUT',
    path: `${collection}/absent`,
    body: configMap('absent'),
    code: 404,
    reason: 'NotFound',
    message: /^configmaps "absent" not found$/,
  },
  {
    name: 'a delete of what is not there',
    method: 'DELETE',
    path: `${collection}/absent`,
    code: 404,
    reason: 'NotFound',
    message: /^configmaps "absent" not found$/,
  },
  {
    name: 'a delete of another uid',
    method: 'DELETE',
    path: `${collection}/present`,
    body: '{"preconditions":{"uid":"other"}}',
    code: 409,
    reason: 'Conflict',
    message: /the UID in the precondition \(other\) does not match the UID in record/,
  },
  {
    name: 'a delete with two propagation policies',
    method: 'DELETE',
    path: `${collection}/present`,
    body: '{"propagationPolicy":"Orphan","orphanDependents":true}',
    code: 422,
    reason: 'Invalid',
    message: /orphanDependents|propagationPolicy/,
  },
  {
    name: 'an unknown dryRun',
    path: `${collection}?dryRun=Some`,
    body: configMap('x'),
    code: 422,
    reason: 'Invalid',
    message: /dryRun: Unsupported value/,
  },
  {
    name: 'a verb that the resource lacks',
    method: 'DELETE',
    path: '/api/v1/namespaces',
    code: 405,
    reason: 'MethodNotAllowed',
    message: /./,
  },
]

for (const { name, method = 'POST', path = collection, body, contentType, code, reason, message } of cases) {
  test(`${name} is answered ${code} ${reason}`, async () => {
    const answer = await call(plane.http, method, path, { body, ...(contentType !== undefined && { contentType }) })
    assert.equal(answer.status, code, answer.text.slice(0, 500))
    assert.equal(answer.json.kind, 'Status', answer.text.slice(0, 500))
    assert.equal(answer.json.code, code)
    assert.equal(answer.json.reason ?? '', reason)
    assert.match(String(answer.json.message), message)
    assert.equal(await currentRevision(), revision, 'nothing is stored')
  })
}

test('__proto__ is an ordinary key: dropped as an unknown field, kept in data, and harmless', async () => {
  const body = map(
    '"metadata":{"name":"proto"},"data":{"__proto__":"x","constructor":"y"},"__proto__":{"polluted":true}',
  )
  const answer = await call(plane.http, 'POST', `${collection}?dryRun=All`, { body })
  // "__proto__" is a fine key for the decoder and a bad one for a ConfigMap, whose keys are [-._a-zA-Z0-9]+.
  assert.equal(answer.status, 201, answer.text)
  assert.match(answer.text, /"data":\{"__proto__":"x","constructor":"y"\}/)
  assert.doesNotMatch(answer.text, /polluted/)
  assert.match(String(answer.headers.warning), /unknown field \\?"__proto__\\?"/)
})

test('integers beyond 2^53 survive where the type holds them', async () => {
  const body = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"big"},"spec":{"activeDeadlineSeconds":2147483647,"terminationGracePeriodSeconds":9007199254740993,"containers":[{"name":"c","image":"i"}]}}`
  const answer = await call(plane.http, 'POST', '/api/v1/namespaces/default/pods?dryRun=All', { body })
  assert.equal(answer.status, 201, answer.text)
  assert.match(answer.text, /9007199254740993/)
})

test('unknown and duplicate fields are warnings unless asked otherwise', async () => {
  const body = map('"metadata":{"name":"warned"},"dta":{},"data":{"a":"1","a":"2"}')
  const answer = await call(plane.http, 'POST', `${collection}?dryRun=All`, { body })
  assert.equal(answer.status, 201, answer.text)
  assert.match(String(answer.headers.warning), /299 - "unknown field \\"dta\\""/)
  assert.match(String(answer.headers.warning), /duplicate field \\"data\.a\\"/)
  const ignored = await call(plane.http, 'POST', `${collection}?dryRun=All&fieldValidation=Ignore`, { body })
  assert.equal(ignored.status, 201)
  assert.equal(ignored.headers.warning, undefined)
})

test('after all this the server is well', async () => {
  const answer = await call(plane.http, 'GET', '/readyz?verbose')
  assert.equal(answer.status, 200)
  assert.equal(await currentRevision(), revision)
})
