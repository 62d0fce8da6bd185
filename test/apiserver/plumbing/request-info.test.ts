import assert from 'node:assert/strict'
import test from 'node:test'
import { parseDuration } from '../../../apiserver/duration.ts'
import { isLongRunning, parseTarget, requestInfo } from '../../../apiserver/request-info.ts'

/** method, target → verb prefix group version namespace resource subresource name ("-": empty). */
const table: readonly [string, string, string][] = [
  ['GET', '/api/v1/namespaces', 'list api - v1 - namespaces - -'],
  ['GET', '/api/v1/namespaces/a', 'get api - v1 a namespaces - a'],
  ['PUT', '/api/v1/namespaces/a/finalize', 'update api - v1 a namespaces finalize a'],
  ['PATCH', '/api/v1/namespaces/a/status', 'patch api - v1 a namespaces status a'],
  ['GET', '/api/v1/namespaces/a/pods', 'list api - v1 a pods - -'],
  ['HEAD', '/api/v1/namespaces/a/pods/p', 'get api - v1 a pods - p'],
  ['GET', '/api/v1/namespaces/a/pods?watch=true', 'watch api - v1 a pods - -'],
  ['GET', '/api/v1/namespaces/a/pods?watch', 'watch api - v1 a pods - -'],
  ['GET', '/api/v1/namespaces/a/pods?watch=false', 'list api - v1 a pods - -'],
  ['GET', '/api/v1/namespaces/a/pods?watch=0', 'list api - v1 a pods - -'],
  ['GET', '/api/v1/namespaces/a/pods/p?watch=1', 'watch api - v1 a pods - p'],
  ['GET', '/api/v1/watch/namespaces/a/pods', 'watch api - v1 a pods - -'],
  ['GET', '/api/v1/watch/namespaces/a/pods/p', 'watch api - v1 a pods - p'],
  ['GET', '/apis/apps/v1/watch/deployments', 'watch apis apps v1 - deployments - -'],
  ['GET', '/apis/apps/v1/deployments', 'list apis apps v1 - deployments - -'],
  ['POST', '/apis/apps/v1/namespaces/a/deployments', 'create apis apps v1 a deployments - -'],
  ['GET', '/apis/apps/v1/namespaces/a/deployments/d/scale', 'get apis apps v1 a deployments scale d'],
  ['DELETE', '/api/v1/namespaces/a/pods', 'deletecollection api - v1 a pods - -'],
  ['DELETE', '/api/v1/namespaces/a/pods/p', 'delete api - v1 a pods - p'],
  ['DELETE', '/api/v1/nodes', 'deletecollection api - v1 - nodes - -'],
  ['GET', '/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dp', 'list api - v1 a pods - p'],
  ['GET', '/api/v1/pods?watch=1&fieldSelector=spec.nodeName=n,metadata.name=p', 'watch api - v1 - pods - p'],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name!=p', 'list api - v1 - pods - -'],
  ['GET', '/api/v1/namespaces/a/pods/p/log', 'get api - v1 a pods log p'],
  ['GET', '/api/v1/namespaces/a/services/s/proxy/x/y', 'get api - v1 a services proxy s'],
  ['GET', '/api//v1/namespaces/a/pods/', 'list api - v1 a pods - -'],
  ['GET', 'https://host:6443/api/v1/nodes', 'list api - v1 - nodes - -'],
]

for (const [method, target, wanted] of table) {
  test(`${method} ${target} is: ${wanted}`, () => {
    const parsed = parseTarget(target)
    assert.ok(parsed)
    const info = requestInfo(method, parsed)
    assert.ok(info.isResourceRequest)
    const { verb, apiPrefix, group, version, namespace, resource, subresource, name } = info
    const seen = [verb, apiPrefix, group, version, namespace, resource, subresource, name]
    assert.equal(seen.map((part) => part || '-').join(' '), wanted)
  })
}

test('discovery and other paths are no resource requests', () => {
  for (const path of [
    '/',
    '/api',
    '/api/v1',
    '/apis',
    '/apis/apps',
    '/apis/apps/v1',
    '/healthz',
    '/openapi/v3/api/v1',
  ]) {
    const parsed = parseTarget(path)
    assert.ok(parsed)
    const info = requestInfo('GET', parsed)
    assert.deepEqual([info.isResourceRequest, info.verb, info.path], [false, 'get', path])
  }
})

test('an encoded slash stays inside its segment', () => {
  const parsed = parseTarget('/api/v1/namespaces/a/pods/x%2Fy')
  assert.ok(parsed)
  assert.equal(requestInfo('GET', parsed).name, 'x/y')
})

test('what cannot be decoded is not looked at', () => {
  for (const target of ['/%', '/%zz', '/%ff%fe', '/%00', `/${'a/'.repeat(100)}`]) {
    assert.equal(parseTarget(target), undefined, target)
  }
})

test('watches and connections are long-running, the rest is not', () => {
  const longRunning = (method: string, target: string): boolean => {
    const parsed = parseTarget(target)
    assert.ok(parsed)
    return isLongRunning(requestInfo(method, parsed))
  }
  assert.ok(longRunning('GET', '/api/v1/pods?watch=1'))
  assert.ok(longRunning('POST', '/api/v1/namespaces/a/pods/p/exec'))
  assert.ok(!longRunning('GET', '/api/v1/pods'))
  assert.ok(!longRunning('GET', '/readyz/log'))
})

test('durations are read as Go reads them', () => {
  const cases: readonly [string, number | undefined][] = [
    ['30s', 30_000],
    ['1m30s', 90_000],
    ['1.5h', 5_400_000],
    ['250ms', 250],
    ['0', 0],
    ['-1s', -1000],
    ['.5s', 500],
    ['', undefined],
    ['5', undefined],
    ['1d', undefined],
    ['s', undefined],
    ['1e3s', undefined],
    ['99999999999h', undefined],
  ]
  for (const [text, wanted] of cases) assert.equal(parseDuration(text), wanted, text)
})
