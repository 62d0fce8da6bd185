import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after, before } from 'node:test'
import { openControlPlane, type RunningControlPlane } from '../../../apiserver/compose.ts'
import { defaultSettings } from '../../../apiserver/options.ts'
import { type ProbedStore, storeHealth } from '../../../apiserver/store-health.ts'
import { createNodeEnv } from '../../../raft/env-node.ts'
import { silentLogger } from '../../../storage/index.ts'
import { call } from '../../control-plane.ts'

let plane: RunningControlPlane
let http: string
let log = ''
const dataDir = mkdtempSync(join(tmpdir(), 'trireme-health-'))

before(async () => {
  const settings = { ...defaultSettings, dataDir, securePort: 0, httpPort: 0 }
  plane = await openControlPlane(settings, { naming: 'option', writeLog: (line) => (log += line) })
  http = plane.http ?? ''
})

after(async () => {
  await plane.stop()
  rmSync(dataDir, { recursive: true, force: true })
})

const checks = {
  readyz: ['ping', 'log', 'etcd', 'informer-sync', 'poststarthook/start-system-namespaces-controller', 'shutdown'],
  livez: ['ping', 'log', 'etcd', 'poststarthook/start-system-namespaces-controller'],
  healthz: ['ping', 'log', 'etcd', 'poststarthook/start-system-namespaces-controller'],
}

test('each endpoint says ok, lists its checks when asked and has a path for each', async () => {
  for (const [endpoint, names] of Object.entries(checks)) {
    const plain = await call(http, 'GET', `/${endpoint}`)
    assert.deepEqual([plain.status, plain.text], [200, 'ok'])
    assert.equal(plain.headers['content-type'], 'text/plain; charset=utf-8')
    assert.equal(plain.headers['x-content-type-options'], 'nosniff')
    const lines = names.map((name) => `[+]${name} ok\n`).join('')
    assert.equal((await call(http, 'GET', `/${endpoint}?verbose`)).text, `${lines}${endpoint} check passed\n`)
    assert.equal((await call(http, 'GET', `/${endpoint}/?verbose=true`)).text, `${lines}${endpoint} check passed\n`)
    for (const name of names) {
      const one = await call(http, 'GET', `/${endpoint}/${name}`)
      assert.deepEqual([one.status, one.text], [200, 'ok'], name)
    }
    assert.equal((await call(http, 'GET', `/${endpoint}/nope`)).status, 404)
  }
})

test('excluded checks count as healthy; names that are none are told', async () => {
  const { text } = await call(http, 'GET', '/livez?verbose&exclude=etcd&exclude=b&exclude=a')
  assert.equal(
    text,
    '[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n[+]poststarthook/start-system-namespaces-controller ok\n' +
      'warn: some health checks cannot be excluded: no matches for "a","b"\nlivez check passed\n',
  )
  assert.equal((await call(http, 'GET', '/readyz?exclude=etcd')).text, 'ok')
})

test('without a majority of replicas etcd fails, everywhere and at once, and heals with them', async () => {
  const [first, second] = plane.store.replicas()
  assert.ok(first !== undefined && second !== undefined)
  await plane.store.killReplica(first.id)
  // one lost replica is what three are for
  while ((await call(http, 'GET', '/readyz')).status !== 200);
  await plane.store.killReplica(second.id)
  for (const endpoint of ['healthz', 'livez', 'readyz'] as const) {
    const failing = await call(http, 'GET', `/${endpoint}`)
    const lines = checks[endpoint].map((name) =>
      name === 'etcd' ? '[-]etcd failed: reason withheld\n' : `[+]${name} ok\n`,
    )
    assert.deepEqual([failing.status, failing.text], [500, `${lines.join('')}${endpoint} check failed\n`])
    const one = await call(http, 'GET', `/${endpoint}/etcd`)
    assert.equal(one.status, 500)
    assert.match(one.text, /^internal server error: 1 of 3 replicas run, 2 are needed \(replica-1 stopped, .*\)\n$/)
    assert.equal((await call(http, 'GET', `/${endpoint}?exclude=etcd`)).status, 200)
  }
  assert.match(log, /"message":"readyz check failed".*1 of 3 replicas run/)
  await plane.store.startReplica(first.id)
  while ((await call(http, 'GET', '/readyz')).status !== 200);
  await plane.store.startReplica(second.id)
})

test('a store that has a leader and does not answer is unhealthy after two seconds of its clock', async () => {
  const timers: { readonly delayMs: number; readonly run: () => void }[] = []
  const env = createNodeEnv({ log: silentLogger })
  const simulated = {
    ...env,
    scheduler: {
      ...env.scheduler,
      after: (delayMs: number, run: () => void) => (timers.push({ delayMs, run }), { cancel() {} }),
    },
  }
  const silent: ProbedStore = {
    currentRevision: ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
  }
  const asked = storeHealth(simulated, silent)()
  assert.deepEqual(
    timers.map(({ delayMs }) => delayMs),
    [2000],
  )
  timers[0]?.run()
  assert.equal(await asked, 'no answer from a quorum within 2000 ms')
  assert.equal(await storeHealth(env, { currentRevision: () => Promise.resolve(7) })(), undefined)
  const broken = { currentRevision: () => Promise.reject(new Error('stopped')) }
  assert.equal(await storeHealth(env, broken)(), 'stopped')
})
