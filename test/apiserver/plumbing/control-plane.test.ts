import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import test, { after, before, type TestContext } from 'node:test'
import { request } from 'undici'
import { type ControlPlane, ListenError, OptionsError, startControlPlane } from '../../../apiserver/index.ts'
import { adminAgent, call, startProcess, watch } from '../../control-plane.ts'

let plane: ControlPlane
let http: string

before(async () => {
  plane = await startControlPlane({ httpPort: 0 })
  http = plane.http ?? ''
})

after(() => plane.stop())

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'trireme-test-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

test('two control planes live in one process and know nothing of each other', async () => {
  const second = await startControlPlane({ httpPort: 0 })
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'only-here' } }
  const path = '/api/v1/namespaces/default/configmaps'
  assert.equal((await call(second.http ?? '', 'POST', path, { body })).status, 201)
  assert.equal((await call(http, 'GET', `${path}/only-here`)).status, 404)
  const dataDir = dirname(second.kubeconfig)
  assert.ok(existsSync(dataDir))
  const stopping = second.stop()
  assert.equal(second.stop(), stopping)
  await stopping
  await second.stop()
  assert.ok(!existsSync(dataDir))
  await assert.rejects(request(`${second.http}/livez`))
})

test('a new cluster has its four namespaces, made through the write path', async () => {
  const { json } = await call(http, 'GET', '/api/v1/namespaces')
  assert.deepEqual(
    json.items.map((item) => item.metadata.name),
    ['default', 'kube-node-lease', 'kube-public', 'kube-system'],
  )
  for (const item of json.items) {
    assert.deepEqual(item.metadata.labels, { 'kubernetes.io/metadata.name': item.metadata.name })
    assert.deepEqual([item['spec'], item['status']], [{ finalizers: ['kubernetes'] }, { phase: 'Active' }])
  }
})

test('the written certificate is the administrator over TLS; nobody else may list', async (t) => {
  const agent = adminAgent({ dataDir: dirname(plane.kubeconfig) }, { allowH2: true })
  t.after(() => agent.close())
  assert.equal((await call(plane.server, 'GET', '/api/v1/pods', { dispatcher: agent })).status, 200)
  const who = await call(plane.server, 'POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
    dispatcher: agent,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
  })
  assert.deepEqual(
    [who.status, who.json['status']],
    [201, { userInfo: { username: 'trireme-admin', groups: ['system:masters', 'system:authenticated'] } }],
  )
})

test('the plain port refuses web pages and bodies without a type', async () => {
  const port = new URL(http).port
  const ask = async (headers: Record<string, string>): Promise<number> =>
    rawStatus(Number(port), 'GET /version', headers)
  assert.equal(await ask({ Host: `127.0.0.1:${port}` }), 200)
  assert.equal(await ask({ Host: `localhost:${port}` }), 200)
  assert.equal(await ask({ Host: 'rebound.example' }), 403)
  assert.equal(await ask({ Host: `127.0.0.1.evil.example:${port}` }), 403)
  assert.equal(await ask({ Host: `localhost:${port}`, Origin: 'https://evil.example' }), 403)
  assert.equal(await ask({ Host: `localhost:${port}`, Origin: 'null' }), 403)
  assert.equal(await ask({ Host: `localhost:${port}`, Origin: 'http://localhost:3000' }), 403)
  assert.equal(await ask({ Host: `localhost:${port}`, 'Sec-Fetch-Site': 'cross-site' }), 403)
  const post = await rawStatus(
    Number(port),
    'POST /api/v1/namespaces',
    { Host: 'localhost', 'Content-Length': '2' },
    '{}',
  )
  assert.equal(post, 415)
})

function rawStatus(port: number, line: string, headers: Record<string, string>, body = ''): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    const fields = Object.entries({ ...headers, Connection: 'close' }).map(([name, value]) => `${name}: ${value}\r\n`)
    let answer = ''
    socket.on('data', (data: Buffer) => (answer += data.toString()))
    socket.on('close', () => resolve(Number(answer.split(' ')[1])))
    socket.on('error', reject)
    socket.write(`${line} HTTP/1.1\r\n${fields.join('')}\r\n${body}`)
  })
}

test('unknown paths and kinds are text 404, unserved verbs 405, bad timeouts and paths 400', async () => {
  const unknown = await call(http, 'GET', '/nope')
  assert.deepEqual([unknown.status, unknown.text], [404, '404 page not found\n'])
  for (const path of ['/api/v2', '/api/v1/nothings', '/apis/apps/v9/deployments', '/api/v1/namespaces/a/nodes']) {
    assert.equal((await call(http, 'GET', path)).status, 404, path)
  }
  assert.equal((await call(http, 'DELETE', '/api/v1/namespaces')).json['reason'], 'MethodNotAllowed')
  assert.equal((await call(http, 'PUT', '/api/v1/namespaces/default/pods', { body: {} })).status, 405)
  assert.equal((await call(http, 'POST', '/api/v1/pods', { body: {} })).status, 405)
  assert.equal((await call(http, 'GET', '/api/v1/pods?timeout=soon')).status, 400)
  // raw: URL parsers of clients resolve dots themselves
  const { port, host } = new URL(http)
  assert.equal(await rawStatus(Number(port), 'GET /api/v1/namespaces/default/pods/%2e%2e', { Host: host }), 400)
  assert.equal(await rawStatus(Number(port), 'GET /api/v1/namespaces/../pods/x', { Host: host }), 400)
  assert.equal((await call(http, 'GET', '/api/v1/namespaces/default/pods/a%2fb')).status, 400)
  assert.equal((await call(http, 'GET', '/%zz')).status, 400)
})

test('every answer has an audit id, the one asked for when it is printable', async () => {
  const own = await call(http, 'GET', '/version')
  assert.match(String(own.headers['audit-id']), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.equal(own.headers['cache-control'], 'no-cache, private')
  const asked = await call(http, 'GET', '/version', { headers: { 'audit-id': 'mine' } })
  assert.equal(asked.headers['audit-id'], 'mine')
})

test('health endpoints list, exclude and name their checks', async () => {
  assert.equal((await call(http, 'GET', '/readyz')).text, 'ok')
  const verbose = (await call(http, 'GET', '/readyz?verbose')).text
  assert.ok(verbose.includes('[+]shutdown ok\n') && verbose.endsWith('readyz check passed\n'))
  assert.ok((await call(http, 'GET', '/readyz?verbose&exclude=etcd')).text.includes('[+]etcd excluded: ok'))
  assert.equal((await call(http, 'GET', '/livez/ping')).text, 'ok')
  assert.equal((await call(http, 'GET', '/livez/shutdown')).status, 404)
})

test('/version has bare integers and our own version behind the plus', async () => {
  const { json } = await call(http, 'GET', '/version')
  assert.deepEqual([json['major'], json['minor']], ['1', '37'])
  assert.match(String(json['gitVersion']), /^v1\.37\.0\+trireme\.\d+\.\d+\.\d+$/)
})

test('stopping ends watches cleanly and lets the control plane go', async () => {
  const own = await startControlPlane({ httpPort: 0 })
  const seen: string[] = []
  const watching = (async () => {
    for await (const { type } of watch(own.http ?? '', '/api/v1/namespaces?watch=true')) {
      seen.push(type)
      if (seen.length === 4) void own.stop()
    }
  })()
  // a cut stream would reject here
  await watching
  await own.stop()
  assert.deepEqual(seen, ['ADDED', 'ADDED', 'ADDED', 'ADDED'])
})

test('B65: a start that fails leaves no port and no file', async (t) => {
  const blocker = createServer().listen(0, '127.0.0.1')
  t.after(() => blocker.close())
  await new Promise((resolve) => blocker.once('listening', resolve))
  const { port } = blocker.address() as AddressInfo
  const dataDir = join(directory(t), 'data')
  // others make temporary directories meanwhile: look where only this test does
  const { TMPDIR } = process.env
  const temporary = directory(t)
  process.env.TMPDIR = temporary
  t.after(() => (TMPDIR === undefined ? delete process.env.TMPDIR : (process.env.TMPDIR = TMPDIR)))
  await assert.rejects(startControlPlane({ dataDir, securePort: port }), ListenError)
  await assert.rejects(startControlPlane({ dataDir, httpPort: port }), ListenError)
  await assert.rejects(startControlPlane({ securePort: port }), ListenError)
  await assert.rejects(startControlPlane({ bindAddress: 'nowhere' }), OptionsError)
  // late: the store is open and certificates are written when the kubeconfig turns out to be in the way
  await assert.rejects(startControlPlane({ dataDir, kubeconfig: join(dataDir, 'MANIFEST', 'kubeconfig') }))
  assert.ok(!existsSync(dataDir))
  assert.deepEqual(readdirSync(temporary), [])
})

test('what was written is there after a restart, with its revision', async (t) => {
  const dataDir = join(directory(t), 'data')
  const path = '/api/v1/namespaces/default/configmaps'
  const first = await startControlPlane({ dataDir, httpPort: 0 })
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' }, data: { a: 'b' } }
  const made = await call(first.http ?? '', 'POST', path, { body })
  await first.stop()
  const second = await startControlPlane({ dataDir, httpPort: 0 })
  const kept = await call(second.http ?? '', 'GET', `${path}/kept`)
  await second.stop()
  assert.deepEqual(kept.json, made.json)
})

test('SIGTERM with a watch open ends it and exits 0; curl options and kubeconfig lie in the data directory', async () => {
  const own = await startProcess()
  assert.deepEqual([own.kubeconfig, existsSync(join(own.dataDir, 'curlrc'))], [join(own.dataDir, 'kubeconfig'), true])
  let events = 0
  let code: Promise<number | null> | undefined
  for await (const { type } of watch(own.http, '/api/v1/namespaces?watch=true')) {
    assert.equal(type, 'ADDED')
    events += 1
    if (events === 4) code = own.stop()
  }
  assert.equal(await code, 0)
})
