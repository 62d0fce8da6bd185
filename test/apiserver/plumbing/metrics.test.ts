import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { type ControlPlane, startControlPlane } from '../../../apiserver/index.ts'
import { Counter, gauge, Histogram } from '../../../apiserver/metrics/metrics.ts'
import { call, configMap, watch } from '../../control-plane.ts'

test('counters, gauges and histograms in the text format, label values escaped', () => {
  const counter = new Counter({ name: 'c', help: 'Counts.', labels: ['a', 'b'] })
  assert.equal(counter.text(), '')
  counter.add(1, 'x', '')
  counter.add(2, 'x', '')
  counter.add(1, '"\\', 'y')
  assert.equal(counter.text(), '# HELP c Counts.\n# TYPE c counter\nc{a="x",b=""} 3\nc{a="\\"\\\\",b="y"} 1\n')
  const histogram = new Histogram({ name: 'h', help: 'Times.', labels: ['a'], bounds: [1, 2] })
  for (const value of [0.5, 1, 1.5, 9]) histogram.observe(value, 'x')
  assert.equal(
    histogram.text(),
    '# HELP h Times.\n# TYPE h histogram\nh_bucket{a="x",le="1"} 2\nh_bucket{a="x",le="2"} 3\n' +
      'h_bucket{a="x",le="+Inf"} 4\nh_sum{a="x"} 12\nh_count{a="x"} 4\n',
  )
  assert.equal(gauge({ name: 'g', help: 'Now.' }, () => [{ value: 7 }]).text(), '# HELP g Now.\n# TYPE g gauge\ng 7\n')
})

let plane: ControlPlane
let http: string

before(async () => {
  plane = await startControlPlane({ httpPort: 0 })
  http = plane.http ?? ''
})

after(() => plane.stop())

/** Series by their text up to the value. */
async function scrape(): Promise<Map<string, number>> {
  const { status, text, headers } = await call(http, 'GET', '/metrics')
  assert.deepEqual([status, headers['content-type']], [200, 'text/plain; version=0.0.4; charset=utf-8'])
  const series = new Map<string, number>()
  const told = new Set<string>()
  for (const line of text.trimEnd().split('\n')) {
    const comment = /^# (HELP|TYPE) (\S+) \S/.exec(line)
    if (comment) {
      assert.ok(!told.has(`${comment[1]} ${comment[2]}`), `twice: ${line}`)
      told.add(`${comment[1]} ${comment[2]}`)
      continue
    }
    const match = /^([a-z_]+(?:\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*\})?) ([-+0-9.e]+)$/.exec(line)
    assert.ok(match?.[1] !== undefined, line)
    assert.ok(!series.has(match[1]), `twice: ${line}`)
    series.set(match[1], Number(match[2]))
  }
  return series
}

test('requests, watches, objects, the store and the process are measured under the names that people scrape', async () => {
  const path = '/api/v1/namespaces/default/configmaps'
  const maps = 'group="",version="v1",resource="configmaps",subresource=""'
  const total = (verb: string, scope: string, code: number, dryRun = ''): string =>
    `apiserver_request_total{verb="${verb}",${maps},scope="${scope}",component="apiserver",dry_run="${dryRun}",code="${code}"}`
  for (const name of ['a', 'b', 'b']) await call(http, 'POST', path, { body: configMap(name) })
  await call(http, 'POST', `${path}?dryRun=All`, { body: configMap('c') })
  await call(http, 'GET', `${path}/a`)
  await call(http, 'GET', path)
  await call(http, 'GET', '/api/v1/namespaces/a"b/nothings')
  const ended = new AbortController()
  const watching = watch(http, `${path}?watch=true`, { signal: ended.signal })
  await watching.next()
  const during = await scrape()
  assert.equal(during.get(total('POST', 'namespace', 201)), 2)
  assert.equal(during.get(total('POST', 'namespace', 409)), 1)
  assert.equal(during.get(total('POST', 'namespace', 201, 'All')), 1)
  assert.equal(during.get(total('GET', 'resource', 200)), 1)
  assert.equal(during.get(total('LIST', 'namespace', 200)), 1)
  const labels = `verb="POST",${maps},scope="namespace",component="apiserver",dry_run=""`
  assert.equal(during.get(`apiserver_request_duration_seconds_count{${labels}}`), 3)
  assert.equal(during.get(`apiserver_request_duration_seconds_bucket{${labels},le="+Inf"}`), 3)
  const open = `apiserver_longrunning_requests{verb="WATCH",${maps},scope="namespace",component="apiserver"}`
  assert.equal(during.get(open), 1)
  // the scrape itself is one
  assert.equal(during.get('apiserver_current_inflight_requests{request_kind="readOnly"}'), 1)
  assert.equal(during.get('apiserver_current_inflight_requests{request_kind="mutating"}'), 0)
  assert.equal(during.get('apiserver_storage_objects{resource="configmaps"}'), 2)
  assert.equal(during.get('apiserver_storage_objects{resource="namespaces"}'), 4)
  assert.equal(during.get('apiserver_storage_objects{resource="deployments.apps"}'), 0)
  assert.equal(during.get('etcd_request_duration_seconds_count{operation="create",type="configmaps"}'), 2)
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'process_start_time_seconds']) {
    assert.ok((during.get(name) ?? 0) > 0, name)
  }
  ended.abort()
  await watching.return()
  while ((await scrape()).get(open) !== 0);
  const names = [...during.keys()].join('\n')
  assert.ok(!names.includes('nothings') && !names.includes('a"b'), 'labels never come from a client')
})

test('only those who may read /metrics get it', async () => {
  const { Agent } = await import('undici')
  const stranger = new Agent({ connect: { rejectUnauthorized: false } })
  const { status } = await call(plane.server, 'GET', '/metrics', { dispatcher: stranger })
  await stranger.close()
  assert.equal(status, 403)
  assert.equal((await call(http, 'POST', '/metrics', { body: {} })).status, 405)
})
