/** Formats of answers, reviews and the subresources that need a kubelet, on a running control plane. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import test, { after, before } from 'node:test'
import { parse } from 'yaml'
import { request } from 'undici'
import { type ControlPlane, startControlPlane } from '../../../apiserver/index.ts'
import { decodeEnvelope, decodeProtobuf, encodeGenericJson, typeOf } from '../../../schemas/index.ts'
import { adminAgent, type Answer, call } from '../../control-plane.ts'
import { findProgram, testWith } from '../../external.ts'

let plane: ControlPlane
let http: string

before(async () => {
  plane = await startControlPlane({ httpPort: 0 })
  http = plane.http ?? ''
})

after(() => plane.stop())

const yaml = { accept: 'application/yaml' }
const protobuf = { accept: 'application/vnd.kubernetes.protobuf' }

async function bytesOf(path: string, accept: string): Promise<{ type: string; bytes: Uint8Array; etag: string }> {
  const answer = await request(`${http}${path}`, { headers: { accept } })
  assert.equal(answer.statusCode, 200, path)
  return {
    type: String(answer.headers['content-type']),
    bytes: new Uint8Array(await answer.body.arrayBuffer()),
    etag: String(answer.headers['etag']),
  }
}

/** As JSON, which has no undefined and an order of its own. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

test('discovery is the same in JSON, YAML and protobuf', async () => {
  for (const path of ['/api', '/apis', '/apis/apps', '/apis/autoscaling/v1', '/api/v1']) {
    const { json } = await call(http, 'GET', path)
    const inYaml = await call(http, 'GET', path, { headers: yaml })
    assert.equal(inYaml.headers['content-type'], 'application/yaml')
    assert.deepEqual(parse(inYaml.text), json, path)
    const { type, bytes } = await bytesOf(path, protobuf.accept)
    assert.equal(type, 'application/vnd.kubernetes.protobuf')
    const { apiVersion, kind, raw } = decodeEnvelope(bytes)
    assert.deepEqual([apiVersion, kind], ['v1', json.kind])
    const descriptor = typeOf({ group: '', version: 'v1', kind })
    assert.ok(descriptor)
    const decoded = plain(JSON.parse(encodeGenericJson(decodeProtobuf(raw, descriptor))))
    const { kind: _kind, apiVersion: _version, ...fields } = json
    assert.deepEqual(withoutEmpty(decoded), withoutEmpty(fields), path)
  }
})

/** Protobuf has no empty lists, and says every scalar that JSON leaves out. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(
    ([, field]) => field !== '' && field !== null && field !== false && !(Array.isArray(field) && field.length === 0),
  )
  return Object.fromEntries(kept.map(([name, field]) => [name, withoutEmpty(field)]))
}

test('aggregated discovery has a protobuf form with an ETag of its own; v2beta1 falls back', async () => {
  const as = ';g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  const message = await bytesOf('/apis', `application/vnd.kubernetes.protobuf${as},application/json${as}`)
  assert.equal(message.type, `application/vnd.kubernetes.protobuf${as}`)
  const text = await bytesOf('/apis', `application/json${as}`)
  assert.notEqual(message.etag, text.etag)
  const { apiVersion, kind, raw } = decodeEnvelope(message.bytes)
  assert.deepEqual([apiVersion, kind], ['apidiscovery.k8s.io/v2', 'APIGroupDiscoveryList'])
  const descriptor = typeOf({ group: 'apidiscovery.k8s.io', version: 'v2', kind })
  assert.ok(descriptor)
  const { items } = JSON.parse(Buffer.from(text.bytes).toString()) as { items: object[] }
  const decoded = JSON.parse(encodeGenericJson(decodeProtobuf(raw, descriptor))) as { items: object[] }
  assert.deepEqual(withoutEmpty(decoded.items), withoutEmpty(items))
  const old = as.replace('v=v2', 'v=v2beta1')
  const beta = await bytesOf('/apis', `application/vnd.kubernetes.protobuf${old},application/json${old}`)
  assert.equal(beta.type, `application/json${old}`)
})

test('what discovery cannot be in is 406 and says what it can', async () => {
  const { status, json } = await call(http, 'GET', '/apis', { headers: { accept: 'text/csv' } })
  const text =
    'only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf'
  assert.deepEqual([status, json['reason'], json['message']], [406, 'NotAcceptable', text])
})

test('YAML goes in and comes out, errors included', async () => {
  const path = '/api/v1/namespaces/default/configmaps'
  const body = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: from-yaml\ndata:\n  "on": "yes"\n  num: "1"\n'
  const post = (text: string, headers: Record<string, string>): Promise<Answer> =>
    call(http, 'POST', path, { body: text, contentType: 'application/yaml', headers })
  const made = await post(body, yaml)
  assert.deepEqual([made.status, made.headers['content-type']], [201, 'application/yaml'])
  assert.deepEqual((parse(made.text) as { data: object }).data, { num: '1', on: 'yes' })
  const again = await post(body, yaml)
  assert.deepEqual([again.status, again.headers['content-type']], [409, 'application/yaml'])
  const { json: inJson } = await post(body, {})
  assert.deepEqual(parse(again.text), inJson)
  assert.equal(inJson['reason'], 'AlreadyExists')
  const broken = await post('a: [', yaml)
  assert.deepEqual([broken.status, (parse(broken.text) as { kind: string }).kind], [400, 'Status'])
  const unknown = await call(http, 'GET', '/api/v1/nothings', { headers: yaml })
  assert.deepEqual([unknown.status, (parse(unknown.text) as { code: number }).code], [404, 404])
  // a format that is none of ours: the Status says so in JSON
  const none = await call(http, 'GET', path, { headers: { accept: 'text/csv' } })
  assert.deepEqual([none.status, none.json.kind], [406, 'Status'])
})

const reviews = (group: string, plural: string, kind: string, spec: object, namespace = ''): Promise<Answer> =>
  call(http, 'POST', `/apis/${group}.k8s.io/v1/${namespace === '' ? '' : `namespaces/${namespace}/`}${plural}`, {
    body: { apiVersion: `${group}.k8s.io/v1`, kind, metadata: {}, spec },
  })

test('SubjectAccessReview answers for the user and groups it names', async () => {
  const pods = { verb: 'list', resource: 'pods', namespace: 'default' }
  const ask = async (spec: object): Promise<unknown> => {
    const { status, json } = await reviews('authorization', 'subjectaccessreviews', 'SubjectAccessReview', spec)
    assert.equal(status, 201)
    assert.deepEqual(json['spec'], spec)
    return json['status']
  }
  assert.deepEqual(await ask({ user: 'jane', resourceAttributes: pods }), { allowed: false })
  assert.deepEqual(await ask({ user: 'jane', groups: ['system:masters'], resourceAttributes: pods }), { allowed: true })
  const version = { verb: 'get', path: '/version' }
  const groups = ['system:unauthenticated']
  assert.deepEqual(await ask({ groups, nonResourceAttributes: version }), { allowed: true })
  assert.deepEqual(await ask({ user: 'jane', nonResourceAttributes: { verb: 'get', path: '/metrics' } }), {
    allowed: false,
  })
  const sar = ['authorization', 'subjectaccessreviews', 'SubjectAccessReview'] as const
  for (const spec of [
    {},
    { user: 'jane' },
    { resourceAttributes: pods },
    { user: 'jane', resourceAttributes: pods, nonResourceAttributes: version },
  ]) {
    assert.equal((await reviews(...sar, spec)).json['reason'], 'Invalid', JSON.stringify(spec))
  }
})

test('LocalSubjectAccessReview is about its namespace alone', async () => {
  const ask = (namespace: string): Promise<Answer> => {
    const spec = { user: 'jane', resourceAttributes: { verb: 'get', resource: 'pods', namespace } }
    return reviews('authorization', 'localsubjectaccessreviews', 'LocalSubjectAccessReview', spec, 'default')
  }
  assert.deepEqual((await ask('default')).json['status'], { allowed: false })
  assert.equal((await ask('kube-system')).status, 422)
})

test('the self reviews answer for who asks', async () => {
  const access = await reviews('authorization', 'selfsubjectaccessreviews', 'SelfSubjectAccessReview', {
    resourceAttributes: { verb: 'delete', group: 'apps', resource: 'deployments' },
  })
  assert.deepEqual([access.status, access.json['status']], [201, { allowed: true }])
  const rules = await reviews('authorization', 'selfsubjectrulesreviews', 'SelfSubjectRulesReview', {
    namespace: 'default',
  })
  const status = rules.json['status'] as { incomplete: boolean; resourceRules: object[]; nonResourceRules: object[] }
  assert.equal(status.incomplete, false)
  assert.deepEqual(status.resourceRules[0], { verbs: ['*'], apiGroups: ['*'], resources: ['*'] })
  assert.deepEqual(status.nonResourceRules[0], { verbs: ['*'], nonResourceURLs: ['*'] })
  const without = await reviews('authorization', 'selfsubjectrulesreviews', 'SelfSubjectRulesReview', {})
  assert.deepEqual([without.status, without.json['message']], [400, 'no namespace on request'])
  const who = await reviews('authentication', 'selfsubjectreviews', 'SelfSubjectReview', {})
  assert.deepEqual((who.json['status'] as { userInfo: object }).userInfo, {
    username: 'system:unsecured',
    groups: ['system:masters', 'system:authenticated'],
  })
})

test('TokenReview knows no token, and asks for one', async () => {
  const { status, json } = await reviews('authentication', 'tokenreviews', 'TokenReview', { token: 'x' })
  assert.deepEqual([status, json['status']], [201, { user: {}, error: 'invalid bearer token' }])
  assert.equal((await reviews('authentication', 'tokenreviews', 'TokenReview', {})).status, 400)
})

test('anonymous and bearer requests over TLS: public paths, 403 with the text clients know, 401', async (t) => {
  const agent = adminAgent({ dataDir: dirname(plane.kubeconfig) })
  t.after(() => agent.close())
  const { Agent } = await import('undici')
  const stranger = new Agent({ connect: { rejectUnauthorized: false } })
  t.after(() => stranger.close())
  const ask = (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
    call(plane.server, 'GET', path, { dispatcher: stranger, headers })
  for (const path of ['/version', '/healthz', '/livez', '/readyz']) assert.equal((await ask(path)).status, 200, path)
  for (const path of ['/metrics', '/readyz/etcd', '/api', '/openapi/v3', '/']) {
    const { status, json } = await ask(path)
    const text = `forbidden: User "system:anonymous" cannot get path "${path}"`
    assert.deepEqual([status, json['message'], json['reason']], [403, text, 'Forbidden'])
  }
  const pods = await ask('/api/v1/namespaces/default/pods')
  assert.equal(
    pods.json['message'],
    'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "default"',
  )
  const bearer = await ask('/version', { authorization: 'Bearer x' })
  assert.deepEqual([bearer.status, bearer.json['message']], [401, 'Unauthorized'])
})

const kubectl = {
  name: 'kubectl 1.30',
  path: findProgram('kubectl.1.30', 'kubectl'),
  install: 'install kubectl 1.30 as kubectl.1.30 on PATH',
}

testWith(kubectl, 'kubectl auth whoami, auth can-i and get componentstatuses', async (path) => {
  const run = (...args: string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      const env = { ...process.env, KUBECONFIG: plane.kubeconfig, HOME: dirname(plane.kubeconfig) }
      const child = spawn(path, args, { env, stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 })
      let output = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
      child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
      child.on('close', (code) =>
        code === 0 ? resolve(output) : reject(new Error(`${args.join(' ')}: ${code} ${output}`)),
      )
    })
  assert.match(await run('auth', 'whoami'), /Username +trireme-admin\nGroups +\[system:masters system:authenticated\]/)
  assert.match(await run('auth', 'can-i', 'delete', 'nodes'), /^(?:Warning: .*\n\n?)?yes\n$/m)
  assert.match(await run('auth', 'can-i', '--list'), /^\*\.\* +\[\] +\[\] +\[\*\]$/m)
  assert.match(await run('get', 'cs'), /etcd-0 +Healthy +ok/)
})

const podPath = '/api/v1/namespaces/default/pods'
const container = (name: string): object => ({ name, image: 'registry.example/app:1' })
const pod = (name: string, containers: object[]): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers },
})

test('what needs a kubelet says so as kube-apiserver does', async () => {
  await call(http, 'POST', podPath, { body: pod('waiting', [container('a')]) })
  await call(http, 'POST', podPath, { body: pod('two', [container('a'), container('b')]) })
  const message = async (method: 'GET' | 'POST', path: string): Promise<[number, unknown]> => {
    const { status, json, text } = await call(http, method, path)
    return [status, json === undefined ? text : json['message']]
  }
  const choose = 'a container name must be specified for pod two, choose one of: [a b]'
  assert.deepEqual(await message('GET', `${podPath}/waiting/log`), [200, ''])
  assert.deepEqual(await message('GET', `${podPath}/two/log`), [400, choose])
  const stranger = 'container x is not valid for pod two'
  assert.deepEqual(await message('GET', `${podPath}/two/log?container=x`), [400, stranger])
  assert.deepEqual(await message('GET', `${podPath}/none/log`), [404, 'pods "none" not found'])
  for (const subresource of ['exec', 'attach', 'portforward']) {
    const nowhere = 'pod waiting does not have a host assigned'
    assert.deepEqual(await message('POST', `${podPath}/waiting/${subresource}?command=ls`), [400, nowhere])
  }
  assert.deepEqual(await message('POST', `${podPath}/two/exec?command=ls`), [400, choose])
  const binding = {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name: 'waiting' },
    target: { kind: 'Node', name: 'n1' },
  }
  assert.equal((await call(http, 'POST', `${podPath}/waiting/binding`, { body: binding })).status, 201)
  const dial = 'error dialing backend: dial tcp: lookup n1: no such host'
  assert.deepEqual(await message('POST', `${podPath}/waiting/exec?command=ls`), [500, dial])
  const logs = await message('GET', `${podPath}/waiting/log`)
  assert.equal(logs[0], 500)
  assert.match(String(logs[1]), /https:\/\/n1:10250\/containerLogs\/default\/waiting\/a.*no such host/)
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } }
  await call(http, 'POST', '/api/v1/namespaces/default/services', { body: service })
  assert.deepEqual(await message('GET', '/api/v1/namespaces/default/services/s/proxy/'), [
    503,
    'no endpoints available for service "s"',
  ])
})

test('approval, ephemeralcontainers and resize change their part and nothing else', async () => {
  const merge = 'application/merge-patch+json'
  const strategic = 'application/strategic-merge-patch+json'
  await call(http, 'POST', podPath, {
    body: pod('sub', [{ ...container('a'), resources: { requests: { cpu: '50m' } } }]),
  })
  const ephemeral = await call(http, 'PATCH', `${podPath}/sub/ephemeralcontainers`, {
    contentType: strategic,
    body: {
      metadata: { labels: { not: 'this' } },
      spec: { ephemeralContainers: [{ name: 'debug', image: 'registry.example/tools:1' }] },
    },
  })
  assert.equal(ephemeral.status, 200, ephemeral.text)
  const spec = ephemeral.json['spec'] as { ephemeralContainers: { name: string }[]; containers: object[] }
  assert.deepEqual(
    spec.ephemeralContainers.map(({ name }) => name),
    ['debug'],
  )
  // through the pod itself they cannot be added
  const direct = await call(http, 'PATCH', `${podPath}/sub`, {
    contentType: strategic,
    body: { spec: { ephemeralContainers: [{ name: 'other', image: 'registry.example/tools:1' }] } },
  })
  const kept = await call(http, 'GET', `${podPath}/sub/ephemeralcontainers`)
  assert.equal((kept.json['spec'] as typeof spec).ephemeralContainers.length, 1, `${direct.status} ${direct.text}`)

  const resized = await call(http, 'PATCH', `${podPath}/sub/resize`, {
    contentType: strategic,
    body: { spec: { containers: [{ name: 'a', resources: { requests: { cpu: '100m' } } }] } },
  })
  assert.equal(resized.status, 200, resized.text)
  const [first] = (resized.json['spec'] as { containers: { resources: object }[] }).containers
  assert.deepEqual(first?.resources, { requests: { cpu: '100m' } })

  const csrs = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
  const csr = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'c' },
    spec: { request: signingRequest, signerName: 'example.com/s', usages: ['client auth'] },
  }
  const made = await call(http, 'POST', csrs, { body: csr })
  assert.equal(made.status, 201, made.text)
  const conditions = [{ type: 'Approved', status: 'True', reason: 'Because', message: 'x' }]
  const approved = await call(http, 'PATCH', `${csrs}/c/approval`, {
    contentType: merge,
    body: { status: { conditions, certificate: 'eA==' } },
  })
  assert.equal(approved.status, 200, approved.text)
  const status = approved.json['status'] as { conditions: { type: string }[]; certificate?: string }
  assert.deepEqual([status.conditions.map(({ type }) => type), status.certificate], [['Approved'], undefined])
})

/** A PKCS #10 request of CN=test on P-256, PEM in base64. */
const signingRequest =
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISk1IRUNBUUF3RHpFTk1Bc0dBMVVFQXd3RWRHVnpkREJaTUJN' +
  'R0J5cUdTTTQ5QWdFR0NDcUdTTTQ5QXdFSApBMElBQkpwNnJRODVsMTNodkE0T09LeUlpRnYzZ01FbXZLK0NTbytrbThOQ25ob244' +
  'b0dlanN3ZlJlbUQyYW0wCmFpck5UT2U0d3BReHVvRVFUUkhuaXpoVzVnQ2dBREFLQmdncWhrak9QUVFEQWdOSUFEQkZBaUVBcTBV' +
  'QVJQSC8KczVRTTBuQ3NtMjRYTTZBcEVoWnpCYm41OHdaT1lXN3p6RmtDSUJsdXJiYjNoSUtLN3c1alN4eXdNaFZPWFlaagozTkRL' +
  'VDhsSlB3TWhUR3ZJCi0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo='
