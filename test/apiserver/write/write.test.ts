import assert from 'node:assert/strict'
import test from 'node:test'
import { startNamespaceDeletion } from '../../../apiserver/controllers/namespace-deletion.ts'
import { type Store, StorageError } from '../../../storage/index.ts'
import { settle } from '../doubles.ts'
import { startTestServer, type TestServer } from './api-server.ts'

const merge = { contentType: 'application/merge-patch+json' }
const strategic = { contentType: 'application/strategic-merge-patch+json' }
const json = { contentType: 'application/json-patch+json' }

function server(name: string, run: (server: TestServer) => Promise<void>): void {
  test(name, async () => {
    const server = await startTestServer()
    try {
      await run(server)
    } finally {
      await server.close()
    }
  })
}

const configMap = (name: string, data: Record<string, string> = { a: '1' }): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
})
const deployment = (name = 'web'): Record<string, unknown> => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { containers: [{ name: 'main', image: 'example.com/web:1' }] },
    },
  },
})

server('create sets the system fields and wipes what the client sent of them', async (server) => {
  const answer = await server.call('create', 'default:deployments.apps', {
    ...deployment(),
    metadata: { name: 'web', uid: 'mine', creationTimestamp: '2001-01-01T00:00:00Z', generation: 7, selfLink: '/x' },
    status: { replicas: 5 },
  })
  assert.equal(answer.status, 201)
  const { metadata, status } = answer.body
  assert.match(metadata.uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.equal(metadata.creationTimestamp, '2030-01-01T00:00:00Z')
  assert.equal(metadata.generation, 1)
  assert.equal(metadata.selfLink, undefined)
  assert.equal(metadata.namespace, 'default')
  assert.equal(status.replicas, undefined)
})

server('create refuses a resourceVersion, another namespace, another kind, another version', async (server) => {
  const refused = async (body: object, status: number, text: RegExp): Promise<void> => {
    const answer = await server.call('create', 'default:configmaps', body)
    assert.equal(answer.status, status)
    assert.match(answer.body.message, text)
  }
  await refused({ metadata: { name: 'a', resourceVersion: '1' } }, 500, /^resourceVersion should not be set/)
  await refused(
    { metadata: { name: 'a', namespace: 'kube-system' } },
    400,
    /^the namespace of the provided object does not match the namespace sent on the request$/,
  )
  await refused(
    { kind: 'Secret', apiVersion: 'v1', metadata: { name: 'a' } },
    400,
    /^Secret in version "v1" cannot be handled as a ConfigMap: /,
  )
  await refused(
    { kind: 'ConfigMap', apiVersion: 'v2', metadata: { name: 'a' } },
    400,
    /^the API version in the data \(v2\) does not match the expected API version \(v1\)$/,
  )
  await refused({ metadata: {} }, 422, /^ConfigMap "" is invalid: metadata.name: Required value: name or generateName/)
})

server('generateName tries other names when one is taken', async (server) => {
  const names = new Set<string>()
  for (let round = 0; round < 5; round++) {
    const answer = await server.call('create', 'default:configmaps', { metadata: { generateName: 'cm-' } })
    assert.equal(answer.status, 201)
    assert.match(answer.body.metadata.name, /^cm-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
    assert.equal(answer.body.metadata.generateName, 'cm-')
    names.add(answer.body.metadata.name)
  }
  assert.equal(names.size, 5)
})

server('unknown and duplicate fields are warned about, ignored or refused as asked', async (server) => {
  const body = '{"metadata":{"name":"f"},"data":{"a":"1"},"nope":1,"data":{"a":"2"}}'
  const strict = await server.call('create', 'default:configmaps', body, { query: 'fieldValidation=Strict' })
  assert.equal(strict.status, 400)
  assert.equal(
    strict.body.message,
    'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "nope", duplicate field "data"',
  )
  const other = await server.call('create', 'default:configmaps', body, { query: 'fieldValidation=Maybe' })
  assert.equal(other.status, 422)
  assert.match(other.body.message, /supported values: "", "Ignore", "Strict", "Warn"$/)
  const ignored = await server.call('create', 'default:configmaps', body, {
    query: 'fieldValidation=Ignore&dryRun=All',
  })
  assert.deepEqual([ignored.status, [...ignored.warnings]], [201, []])
  const warned = await server.call('create', 'default:configmaps', body)
  assert.equal(warned.status, 201)
  assert.deepEqual([...warned.warnings], ['unknown field "nope"', 'duplicate field "data"'])
})

server('dryRun=All answers like the real thing and stores nothing', async (server) => {
  const before = await server.revision()
  const answer = await server.call('create', 'default:configmaps', configMap('dry'), { query: 'dryRun=All' })
  assert.equal(answer.status, 201)
  assert.equal(answer.body.metadata.resourceVersion, undefined)
  assert.equal(await server.revision(), before)
  assert.equal((await server.call('delete', 'default:configmaps/dry')).status, 404)
  const wrong = await server.call('create', 'default:configmaps', configMap('dry'), { query: 'dryRun=Some' })
  assert.equal(wrong.status, 422)
  assert.match(wrong.body.message, /^CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: /)
})

server(
  'a stale PUT is 409 with the text clients match on; without resourceVersion it is the kind that decides',
  async (server) => {
    const made = await server.call('create', 'default:configmaps', configMap('cas'))
    const changed = { ...made.body, data: { a: '2' } }
    assert.equal((await server.call('update', 'default:configmaps/cas', changed)).status, 200)
    const stale = await server.call('update', 'default:configmaps/cas', changed)
    assert.equal(stale.status, 409)
    assert.equal(
      stale.body.message,
      'Operation cannot be fulfilled on configmaps "cas": the object has been modified; please apply your changes to the latest version and try again',
    )
    assert.equal((await server.call('update', 'default:configmaps/cas', configMap('cas', { a: '3' }))).status, 200)

    const lease = { metadata: { name: 'l' }, spec: { holderIdentity: 'a' } }
    assert.equal((await server.call('update', 'default:leases.coordination.k8s.io/l', lease)).status, 201)
    const refused = await server.call('update', 'default:leases.coordination.k8s.io/l', lease)
    assert.equal(refused.status, 422)
    assert.match(refused.body.message, /metadata.resourceVersion: Invalid value: 0: must be specified for an update$/)
  },
)

server('PUT checks name and uid; a missing object is 404', async (server) => {
  await server.call('create', 'default:configmaps', configMap('one'))
  const renamed = await server.call('update', 'default:configmaps/one', configMap('two'))
  assert.equal(renamed.body.message, 'the name of the object (two) does not match the name on the URL (one)')
  const uid = await server.call('update', 'default:configmaps/one', { metadata: { name: 'one', uid: 'other' } })
  assert.equal(uid.status, 409)
  assert.match(uid.body.message, /Precondition failed: UID in precondition: other, UID in object meta: /)
  const missing = await server.call('update', 'default:configmaps/none', configMap('none'))
  assert.deepEqual([missing.status, missing.body.message], [404, 'configmaps "none" not found'])
  const gone = await server.call('update', 'default:configmaps/none', { metadata: { name: 'none', uid: 'known' } })
  assert.deepEqual(
    [gone.status, gone.body.message],
    [
      409,
      'Operation cannot be fulfilled on configmaps "none": StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/none, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: known, UID in object meta: ',
    ],
  )
})

server('generation counts spec changes only, and status changes go through /status only', async (server) => {
  const made = await server.call('create', 'default:deployments.apps', deployment())
  const path = 'default:deployments.apps/web'
  const scaled = await server.call('patch', path, { spec: { replicas: 3 } }, merge)
  assert.equal(scaled.body.metadata.generation, 2)
  const annotated = await server.call('patch', path, { metadata: { annotations: { a: 'b' } } }, merge)
  assert.equal(annotated.body.metadata.generation, 2)
  const ignored = await server.call('patch', path, { status: { replicas: 3 } }, merge)
  assert.equal(ignored.body.status.replicas, undefined)
  assert.equal(ignored.body.metadata.resourceVersion, annotated.body.metadata.resourceVersion)
  const status = await server.call('patch', `${path}/status`, { spec: { replicas: 9 }, status: { replicas: 3 } }, merge)
  assert.equal(status.status, 200)
  assert.deepEqual([status.body.spec.replicas, status.body.status.replicas], [3, 3])
  assert.equal(status.body.metadata.generation, 2)
  assert.equal(status.body.metadata.uid, made.body.metadata.uid)
})

server('patches merge lists by key, test operations guard, resourceVersion is a precondition', async (server) => {
  await server.call('create', 'default:deployments.apps', deployment())
  const path = 'default:deployments.apps/web'
  const sidecar = { spec: { template: { spec: { containers: [{ name: 'side', image: 'example.com/side:1' }] } } } }
  const merged = await server.call('patch', path, sidecar, strategic)
  assert.deepEqual(
    merged.body.spec.template.spec.containers.map((container: { name: string }) => container.name).toSorted(),
    ['main', 'side'],
  )
  const replaced = await server.call('patch', path, sidecar, merge)
  assert.equal(replaced.body.spec.template.spec.containers.length, 1)
  const failing = [{ op: 'test', path: '/spec/replicas', value: 99 }]
  assert.equal((await server.call('patch', path, failing, json)).status, 422)
  const passing = [{ op: 'replace', path: '/spec/replicas', value: 4 }]
  assert.equal((await server.call('patch', path, passing, json)).body.spec.replicas, 4)
  const stale = await server.call('patch', path, { metadata: { resourceVersion: '1' }, spec: { replicas: 1 } }, merge)
  assert.equal(stale.status, 409)
  const renamed = await server.call('patch', path, { metadata: { name: 'other' } }, merge)
  assert.equal(renamed.status, 400)
  const uid = await server.call('patch', path, { metadata: { uid: 'other' } }, merge)
  assert.equal(uid.status, 409)
  const many = Array.from({ length: 10_001 }, () => passing[0])
  const tooMany = await server.call('patch', path, many, json)
  assert.equal(tooMany.status, 413)
  assert.match(tooMany.body.message, /^The allowed maximum operations in a JSON patch is 10000, got 10001$/)
})

server('apply patches and unknown media types are 415', async (server) => {
  await server.call('create', 'default:configmaps', configMap('m'))
  for (const contentType of ['application/apply-patch+yaml', 'text/plain', '']) {
    const answer = await server.call('patch', 'default:configmaps/m', '{}', { contentType })
    assert.equal(answer.status, 415, contentType)
  }
  const body = await server.call('create', 'default:configmaps', 'x', { contentType: 'application/cbor' })
  assert.equal(body.status, 415)
})

server('finalizers hold a deleted object until the last one goes', async (server) => {
  const path = 'default:deployments.apps/web'
  await server.call('create', 'default:deployments.apps', {
    ...deployment(),
    metadata: { name: 'web', finalizers: ['example.com/hold'] },
  })
  const marked = await server.call('delete', path)
  assert.equal(marked.status, 200)
  assert.equal(marked.body.kind, 'Deployment')
  assert.equal(marked.body.metadata.deletionGracePeriodSeconds, 0)
  assert.equal(marked.body.metadata.generation, 2)
  assert.ok(marked.body.metadata.deletionTimestamp)
  const again = await server.call('delete', path)
  assert.equal(again.body.metadata.resourceVersion, marked.body.metadata.resourceVersion)
  const added = await server.call(
    'patch',
    path,
    { metadata: { finalizers: ['example.com/hold', 'example.com/b'] } },
    merge,
  )
  assert.equal(added.status, 422)
  assert.match(added.body.message, /no new finalizers can be added if the object is being deleted/)
  const freed = await server.call('patch', path, { metadata: { finalizers: null } }, merge)
  assert.equal(freed.status, 200)
  assert.equal((await server.call('delete', path)).status, 404)
})

server('propagation policies become finalizers; contradictions and unknown ones are 422', async (server) => {
  const path = 'default:deployments.apps/web'
  await server.call('create', 'default:deployments.apps', deployment())
  const both = await server.call('delete', path, { orphanDependents: true, propagationPolicy: 'Orphan' })
  assert.equal(both.status, 422)
  const unknown = await server.call('delete', path, undefined, { query: 'propagationPolicy=Sideways' })
  assert.match(unknown.body.message, /supported values: "Foreground", "Background", "Orphan", "nil"$/)
  const foreground = await server.call('delete', path, undefined, { query: 'propagationPolicy=Foreground' })
  assert.deepEqual(foreground.body.metadata.finalizers, ['foregroundDeletion'])
})

server('delete honours uid and resourceVersion preconditions', async (server) => {
  const made = await server.call('create', 'default:configmaps', configMap('p'))
  const uid = await server.call('delete', 'default:configmaps/p', { preconditions: { uid: 'x' } })
  assert.equal(uid.status, 409)
  assert.match(uid.body.message, /^Operation cannot be fulfilled on ConfigMap "p": the UID in the precondition \(x\)/)
  const version = await server.call('delete', 'default:configmaps/p', { preconditions: { resourceVersion: '1' } })
  assert.equal(version.status, 409)
  const { resourceVersion } = made.body.metadata
  const gone = await server.call('delete', 'default:configmaps/p', { preconditions: { resourceVersion } })
  assert.equal(gone.status, 200)
  assert.deepEqual(gone.body, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: { name: 'p', kind: 'configmaps', uid: made.body.metadata.uid },
  })
})

server(
  'a scheduled pod goes after its grace period, which may only get shorter; an unscheduled one at once',
  async (server) => {
    const pod = (name: string): object => ({
      metadata: { name },
      spec: { terminationGracePeriodSeconds: 30, containers: [{ name: 'main', image: 'example.com/a:1' }] },
    })
    await server.call('create', 'default:pods', pod('idle'))
    assert.equal((await server.call('delete', 'default:pods/idle')).status, 200)
    assert.equal((await server.call('delete', 'default:pods/idle')).status, 404)

    await server.call('create', 'default:pods', pod('busy'))
    const bound = await server.call('create', 'default:pods/busy/binding', { target: { name: 'node-1' } })
    assert.equal(bound.status, 201, JSON.stringify(bound.body))
    const twice = await server.call('create', 'default:pods/busy/binding', { target: { name: 'node-2' } })
    assert.equal(twice.status, 409)
    assert.match(twice.body.message, /pod busy is already assigned to node "node-1"$/)
    const first = await server.call('delete', 'default:pods/busy')
    assert.equal(first.body.metadata.deletionGracePeriodSeconds, 30)
    const longer = await server.call('delete', 'default:pods/busy', { gracePeriodSeconds: 60 })
    assert.equal(longer.body.metadata.deletionGracePeriodSeconds, 30)
    const shorter = await server.call('delete', 'default:pods/busy', { gracePeriodSeconds: 5 })
    assert.equal(shorter.body.metadata.deletionGracePeriodSeconds, 5)
    assert.equal(
      Date.parse(first.body.metadata.deletionTimestamp) - Date.parse(shorter.body.metadata.deletionTimestamp),
      25_000,
    )
    assert.equal((await server.call('delete', 'default:pods/busy', { gracePeriodSeconds: 0 })).status, 200)
    assert.equal((await server.call('delete', 'default:pods/busy')).status, 404)
  },
)

server('pods can change their images and little else', async (server) => {
  await server.call('create', 'default:pods', {
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'main', image: 'example.com/a:1' }] },
  })
  const image = [{ op: 'replace', path: '/spec/containers/0/image', value: 'example.com/a:2' }]
  const changed = await server.call('patch', 'default:pods/p', image, json)
  assert.equal(changed.status, 200, JSON.stringify(changed.body))
  assert.equal(changed.body.metadata.generation, 2)
  const command = [{ op: 'add', path: '/spec/containers/0/command', value: ['sh'] }]
  const refused = await server.call('patch', 'default:pods/p', command, json)
  assert.equal(refused.status, 422)
  assert.match(
    refused.body.message,
    /^Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than/,
  )
})

server('namespaces: missing is 404, terminating is 403, three cannot be deleted', async (server) => {
  const missing = await server.call('create', 'nowhere:configmaps', configMap('x'))
  assert.deepEqual([missing.status, missing.body.message], [404, 'namespaces "nowhere" not found'])
  const immortal = await server.call('delete', 'namespaces/default')
  assert.equal(immortal.status, 403)
  assert.equal(immortal.body.message, 'namespaces "default" is forbidden: this namespace may not be deleted')
  const ending = await server.call('delete', 'namespaces/manifests')
  assert.equal(ending.status, 200)
  assert.deepEqual([ending.body.status.phase, ending.body.spec.finalizers], ['Terminating', ['kubernetes']])
  const refused = await server.call('create', 'manifests:configmaps', configMap('x'))
  assert.equal(refused.status, 403)
  assert.equal(
    refused.body.message,
    'configmaps "x" is forbidden: unable to create new content in namespace manifests because it is being terminated',
  )
  assert.equal(refused.body.details.causes[0].reason, 'NamespaceTerminating')
  const finalized = { ...ending.body, spec: {} }
  const gone = await server.call('update', 'namespaces/manifests/finalize', finalized)
  assert.equal(gone.status, 200, JSON.stringify(gone.body))
  assert.equal((await server.call('delete', 'namespaces/manifests')).status, 404)
})

server('namespace deletion removes the content and then the namespace', async (server) => {
  const controller = startNamespaceDeletion(server.write.services)
  await server.call('create', 'manifests:configmaps', configMap('x'))
  await server.call('create', 'manifests:deployments.apps', deployment())
  await server.call('create', 'manifests:configmaps', {
    metadata: { name: 'held', finalizers: ['example.com/hold'] },
  })
  await server.call('delete', 'namespaces/manifests')
  await settle(50)
  const held = await server.call('patch', 'manifests:configmaps/held', { metadata: { finalizers: null } }, merge)
  assert.equal(held.status, 200, 'what has finalizers holds the namespace')
  server.env.advance(1_000)
  await settle(50)
  assert.equal((await server.call('delete', 'namespaces/manifests')).status, 404)
  const prefix = (
    await server.store.range(
      { key: Buffer.from('/registry/'), rangeEnd: Buffer.from('/registry0') },
      { signal: new AbortController().signal },
    )
  ).kvs
    .map((kv) => Buffer.from(kv.key).toString())
    .filter((key) => key.includes('manifests'))
  assert.deepEqual(prefix, [])
  await controller.stop()
})

server('deletecollection deletes what the selectors choose and answers the list', async (server) => {
  for (const [name, app] of [
    ['a', 'x'],
    ['b', 'x'],
    ['c', 'y'],
  ]) {
    await server.call('create', 'default:configmaps', { metadata: { name, labels: { app } } })
  }
  const answer = await server.call('deletecollection', 'default:configmaps', undefined, {
    query: 'labelSelector=app=x',
  })
  assert.equal(answer.status, 200)
  assert.deepEqual(
    answer.body.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    ['a', 'b'],
  )
  assert.equal((await server.call('delete', 'default:configmaps/a')).status, 404)
  assert.equal((await server.call('delete', 'default:configmaps/c')).status, 200)
})

server('scale reads and writes the replica count with the parent version', async (server) => {
  await server.call('create', 'default:deployments.apps', deployment())
  const path = 'default:deployments.apps/web/scale'
  const scale = await server.call('get', path)
  assert.deepEqual([scale.body.kind, scale.body.spec.replicas, scale.body.status.selector], ['Scale', 1, 'app=web'])
  const scaled = await server.call('update', path, { ...scale.body, spec: { replicas: 3 } })
  assert.equal(scaled.status, 200, JSON.stringify(scaled.body))
  assert.equal(scaled.body.spec.replicas, 3)
  const stale = await server.call('update', path, { ...scale.body, spec: { replicas: 4 } })
  assert.equal(stale.status, 409)
  const negative = await server.call('patch', path, { spec: { replicas: -1 } }, merge)
  assert.equal(negative.status, 422)
  const patched = await server.call('patch', path, { spec: { replicas: 5 } }, merge)
  assert.equal(patched.body.spec.replicas, 5)
})

server('services get an address and node ports of their own, and give them back', async (server) => {
  const service = (name: string, extra: object = {}): object => ({
    metadata: { name },
    spec: { selector: { app: 'x' }, ports: [{ port: 80, targetPort: 80, protocol: 'TCP' }], ...extra },
  })
  const one = await server.call('create', 'default:services', service('one', { type: 'NodePort' }))
  assert.equal(one.status, 201, JSON.stringify(one.body))
  const { clusterIP, clusterIPs, ports } = one.body.spec
  assert.match(clusterIP, /^10\.96\.\d+\.\d+$/)
  assert.deepEqual(clusterIPs, [clusterIP])
  assert.ok(ports[0].nodePort >= 30000 && ports[0].nodePort <= 32767)
  const taken = await server.call('create', 'default:services', service('two', { clusterIP }))
  assert.equal(taken.status, 422)
  assert.match(taken.body.message, /provided IP is already allocated$/)
  const kept = await server.call('update', 'default:services/one', service('one', { type: 'NodePort' }))
  assert.equal(kept.status, 200, JSON.stringify(kept.body))
  assert.deepEqual([kept.body.spec.clusterIP, kept.body.spec.ports[0].nodePort], [clusterIP, ports[0].nodePort])
  const moved = await server.call(
    'patch',
    'default:services/one',
    { spec: { clusterIP: '10.96.0.77', clusterIPs: ['10.96.0.77'] } },
    merge,
  )
  assert.match(moved.body.message, /may not change once set$/)
  assert.equal((await server.call('delete', 'default:services/one')).status, 200)
  const again = await server.call('create', 'default:services', service('two', { clusterIP }))
  assert.equal(again.status, 201)
  const range = await server.store.range(
    { key: Buffer.from('/registry/ranges/'), rangeEnd: Buffer.from('/registry/ranges0') },
    { signal: new AbortController().signal },
  )
  assert.equal(range.kvs.length, 0, 'the node port is free again')
})

server('evictions ask the disruption budget', async (server) => {
  await server.call('create', 'default:pods', {
    metadata: { name: 'p', labels: { app: 'x' } },
    spec: { nodeName: 'n', containers: [{ name: 'main', image: 'example.com/a:1' }] },
  })
  const ready = [{ type: 'Ready', status: 'True' }]
  await server.call('patch', 'default:pods/p/status', { status: { phase: 'Running', conditions: ready } }, merge)
  await server.call('create', 'default:poddisruptionbudgets.policy', {
    metadata: { name: 'b' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'x' } } },
  })
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } }
  const early = await server.call('create', 'default:pods/p/eviction', eviction)
  assert.equal(early.status, 429)
  const status = { observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 }
  await server.call('patch', 'default:poddisruptionbudgets.policy/b/status', { status }, merge)
  const refused = await server.call('create', 'default:pods/p/eviction', eviction)
  assert.equal(refused.status, 429)
  assert.match(refused.body.details.causes[0].message, /needs 1 healthy pods and has 1 currently$/)
  await server.call(
    'patch',
    'default:poddisruptionbudgets.policy/b/status',
    { status: { disruptionsAllowed: 1 } },
    merge,
  )
  assert.equal((await server.call('create', 'default:pods/p/eviction', eviction)).status, 201)
  const spent = await server.call('patch', 'default:poddisruptionbudgets.policy/b', {}, merge)
  assert.equal(spent.body.status.disruptionsAllowed ?? 0, 0)
})

server('events live by a shared lease of a little over an hour', async (server) => {
  for (const name of ['e1', 'e2']) {
    const event = { metadata: { name }, involvedObject: { kind: 'Pod', name: 'p', namespace: 'default' } }
    assert.equal((await server.call('create', 'default:events', event)).status, 201)
  }
  const { signal } = new AbortController()
  const range = { key: Buffer.from('/registry/events/'), rangeEnd: Buffer.from('/registry/events0') }
  const { kvs } = await server.store.range(range, { signal })
  const leases = new Set(kvs.map((kv) => kv.lease))
  assert.deepEqual([kvs.length, leases.size, leases.has(0n)], [2, 1, false])
  const [lease] = leases
  assert.ok(lease !== undefined)
  const { grantedTtlSeconds } = await server.store.leaseTimeToLive(lease, { signal })
  assert.equal(grantedTtlSeconds, 3660)
})

server('objects of several served versions keep one stored form', async (server) => {
  const path = 'default:horizontalpodautoscalers.autoscaling'
  const made = await server.call('create', `${path}@v1`, {
    apiVersion: 'autoscaling/v1',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'h' },
    spec: {
      maxReplicas: 3,
      targetCPUUtilizationPercentage: 50,
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
    },
  })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  assert.deepEqual([made.body.apiVersion, made.body.spec.targetCPUUtilizationPercentage], ['autoscaling/v1', 50])
  const newer = await server.call('patch', `${path}@v2/h`, {}, merge)
  assert.equal(newer.body.apiVersion, 'autoscaling/v2')
  assert.equal(newer.body.spec.metrics[0].resource.target.averageUtilization, 50)
  const older = await server.call('patch', `${path}@v1/h`, { spec: { maxReplicas: 4 } }, merge)
  assert.deepEqual([older.status, older.body.spec.maxReplicas], [200, 4])
})

server('secrets take stringData, freeze when immutable, and keep their type', async (server) => {
  const made = await server.call('create', 'default:secrets', {
    metadata: { name: 's' },
    type: 'Opaque',
    stringData: { a: 'hush' },
    immutable: true,
  })
  assert.deepEqual([made.body.data, made.body.stringData], [{ a: 'aHVzaA==' }, undefined])
  const data = await server.call('patch', 'default:secrets/s', { data: { a: 'eA==' } }, merge)
  assert.match(data.body.message, /data: Forbidden: field is immutable when `immutable` is set/)
  const type = await server.call('patch', 'default:secrets/s', { type: 'kubernetes.io/tls' }, merge)
  assert.match(type.body.message, /type: Invalid value: "kubernetes.io\/tls": field is immutable/)
})

server('invalid objects are 422 with every cause in Go words', async (server) => {
  const answer = await server.call('create', 'default:pods', {
    metadata: { name: 'Bad_Name', labels: { 'x y': 'ok' } },
    spec: {
      restartPolicy: 'Sometimes',
      containers: [{ name: 'a' }, { name: 'a', image: 'example.com/a:1', ports: [{ containerPort: 70000 }] }],
    },
  })
  assert.equal(answer.status, 422)
  const causes = answer.body.details.causes.map(
    (cause: { field: string; reason: string }) => `${cause.reason} ${cause.field}`,
  )
  for (const cause of [
    'FieldValueNotSupported spec.restartPolicy',
    'FieldValueRequired spec.containers[0].image',
    'FieldValueDuplicate spec.containers[1].name',
    'FieldValueInvalid spec.containers[1].ports[0].containerPort',
    'FieldValueInvalid metadata.name',
    'FieldValueInvalid metadata.labels',
  ]) {
    assert.ok(causes.includes(cause), `${cause} in ${causes.join(', ')}`)
  }
  assert.match(answer.body.message, /Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"/)
})

server('selectors must match the template and never change', async (server) => {
  const wrong = deployment()
  ;(wrong['spec'] as { selector: object }).selector = { matchLabels: { app: 'other' } }
  const refused = await server.call('create', 'default:deployments.apps', wrong)
  assert.match(refused.body.message, /`selector` does not match template `labels`/)
  await server.call('create', 'default:deployments.apps', deployment())
  const changed = [
    { op: 'replace', path: '/spec/selector/matchLabels/app', value: 'other' },
    { op: 'replace', path: '/spec/template/metadata/labels/app', value: 'other' },
  ]
  const immutable = await server.call('patch', 'default:deployments.apps/web', changed, json)
  assert.equal(
    immutable.body.message,
    'Deployment.apps "web" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: field is immutable',
  )
})

server('hostile bodies are refused or kept as plain data', async (server) => {
  const proto = await server.call('create', 'default:configmaps', '{"metadata":{"name":"h"},"data":{"__proto__":"x"}}')
  assert.equal(proto.status, 201, JSON.stringify(proto.body))
  assert.ok(Object.hasOwn(proto.body.data, '__proto__'))
  const patched = await server.call(
    'patch',
    'default:configmaps/h',
    '{"__proto__":{"polluted":1},"data":{"constructor":"y"}}',
    merge,
  )
  assert.equal(patched.status, 200)
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
  assert.equal(patched.body.data.constructor, 'y')
  for (const body of ['', 'null', '[]', '{', '"x"', '{"metadata":', Buffer.from([0x7b, 0xff, 0x7d])]) {
    const answer = await server.call('create', 'default:configmaps', body)
    assert.ok([400, 422].includes(answer.status), `${String(body)} -> ${answer.status}`)
  }
  const deep = `{"metadata":{"name":"d"},"data":${'['.repeat(200_000)}`
  assert.equal((await server.call('create', 'default:configmaps', deep)).status, 400)
  assert.equal(
    (await server.call('patch', 'default:configmaps/h', `{"a":${'{"a":'.repeat(100_000)}`, merge)).status,
    400,
  )
})

test('a write that finds the object changed starts over from what is there now', async () => {
  const server = await startTestServer()
  try {
    await server.call('create', 'default:configmaps', configMap('counter', { n: '0' }))
    const bump = async (): Promise<void> => {
      const answer = await server.call(
        'patch',
        'default:configmaps/counter',
        { metadata: { labels: { touched: 'yes' } } },
        merge,
      )
      assert.equal(answer.status, 200)
    }
    const clients = Array.from({ length: 20 }, async (_, client) => {
      for (let round = 0; round < 10; round++) {
        const answer = await server.call(
          'patch',
          'default:configmaps/counter',
          { data: { [`c${client}`]: String(round) } },
          merge,
        )
        assert.equal(answer.status, 200)
      }
    })
    await Promise.all([...clients, bump()])
    const last = await server.call('patch', 'default:configmaps/counter', {}, merge)
    assert.equal(Object.keys(last.body.data).length, 21, 'no patch overwrote another one')
  } finally {
    await server.close()
  }
})

for (const [code, status, reason] of [
  ['ERR_NO_LEADER', 500, 'ServerTimeout'],
  ['ERR_OUTCOME_UNKNOWN', 504, 'Timeout'],
  ['ERR_TOO_LARGE', 413, 'RequestEntityTooLarge'],
] as const) {
  test(`${code} of the store is ${status} ${reason}`, async () => {
    let failing = false
    const server = await startTestServer({
      wrap: (store): Store => ({
        ...bindStore(store),
        txn: (request, options) =>
          failing ? Promise.reject(new StorageError(code, 'injected')) : store.txn(request, options),
      }),
    })
    try {
      failing = true
      const answer = await server.call('create', 'default:configmaps', configMap('x'))
      assert.deepEqual([answer.status, answer.body.reason], [status, reason])
      if (code === 'ERR_NO_LEADER') assert.equal(answer.body.details.retryAfterSeconds, 2)
    } finally {
      await server.close()
    }
  })
}

function bindStore(store: Store): Store {
  return {
    range: store.range.bind(store),
    txn: store.txn.bind(store),
    currentRevision: store.currentRevision.bind(store),
    watch: store.watch.bind(store),
    compact: store.compact.bind(store),
    leaseGrant: store.leaseGrant.bind(store),
    leaseKeepAlive: store.leaseKeepAlive.bind(store),
    leaseRevoke: store.leaseRevoke.bind(store),
    leaseTimeToLive: store.leaseTimeToLive.bind(store),
    status: store.status.bind(store),
    close: store.close.bind(store),
  }
}
