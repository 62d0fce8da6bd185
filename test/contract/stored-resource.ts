/** What is true of every stored kind, as steps that run in this order on one object. */
import assert from 'node:assert/strict'
import { parse } from 'yaml'
import { type KubeObject, watch, type WatchLine } from '../control-plane.ts'
import { statuses } from '../testdata/manifests.ts'
import { groupVersionOf, keyOf } from './discovery.ts'
import { selectsByField } from './field-labels.ts'
import { closeEnvelope, itemsOf, nameOf, openEnvelope, protobufType, withoutIdentity } from './protobuf-wire.ts'
import { assertContains, jsonPatch, mergePatch, strategicPatch, type Subject } from './subject.ts'
import { protobufWatch } from './watch-protobuf.ts'

export type Step = (subject: Subject) => Promise<void>

const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
const partialList = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'

const createdByPut = new Set([
  '/endpoints',
  '/events',
  '/limitranges',
  '/services',
  'coordination.k8s.io/leases',
  'events.k8s.io/events',
  'rbac.authorization.k8s.io/clusterrolebindings',
  'rbac.authorization.k8s.io/clusterroles',
  'rbac.authorization.k8s.io/rolebindings',
  'rbac.authorization.k8s.io/roles',
])

/** Kinds whose metadata.generation counts the states of their spec; the others have none (strategy.go, PrepareForCreate). */
const countsGenerations = new Set([
  '/pods',
  '/podtemplates',
  '/replicationcontrollers',
  'admissionregistration.k8s.io/mutatingadmissionpolicies',
  'admissionregistration.k8s.io/mutatingadmissionpolicybindings',
  'admissionregistration.k8s.io/mutatingwebhookconfigurations',
  'admissionregistration.k8s.io/validatingadmissionpolicies',
  'admissionregistration.k8s.io/validatingadmissionpolicybindings',
  'admissionregistration.k8s.io/validatingwebhookconfigurations',
  'apiextensions.k8s.io/customresourcedefinitions',
  'apps/daemonsets',
  'apps/deployments',
  'apps/replicasets',
  'apps/statefulsets',
  'batch/cronjobs',
  'batch/jobs',
  'discovery.k8s.io/endpointslices',
  'flowcontrol.apiserver.k8s.io/flowschemas',
  'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations',
  'networking.k8s.io/ingressclasses',
  'networking.k8s.io/ingresses',
  'networking.k8s.io/networkpolicies',
  'policy/poddisruptionbudgets',
  'resource.k8s.io/deviceclasses',
  'resource.k8s.io/devicetaintrules',
  'resource.k8s.io/resourceslices',
  'scheduling.k8s.io/priorityclasses',
])

/** Objects of this kind carry what only their creation can set: they cannot be posted back as they were answered. */
const madeAtCreation = new Set(['batch/jobs'])

async function refusesWhatIsNotThere(subject: Subject): Promise<void> {
  const { collection, qualified, resource } = subject
  const absent = `${collection}/absent`
  const patch = { contentType: mergePatch }
  for (const answer of [
    await subject.refuses(404, 'NotFound', 'GET', absent),
    await subject.refuses(404, 'NotFound', 'DELETE', absent),
    await subject.refuses(404, 'NotFound', 'PATCH', absent, {}, patch),
  ]) {
    assert.equal(answer.json['message'], `${qualified} "absent" not found`)
    const group = resource.group === '' ? {} : { group: resource.group }
    assert.deepEqual(answer.json['details'], { name: 'absent', ...group, kind: resource.plural })
  }
  if (!resource.namespaced) return
  const elsewhere = collection.replace(`/${subject.namespace}/`, '/no-such-namespace/')
  const missing = subject.another('a')
  const fitting = JSON.parse(JSON.stringify(missing).replaceAll(subject.namespace, 'no-such-namespace')) as object
  const answer = await subject.refuses(404, 'NotFound', 'POST', elsewhere, fitting)
  assert.equal(answer.json['message'], 'namespaces "no-such-namespace" not found')
  assert.deepEqual(answer.json['details'], { name: 'no-such-namespace', kind: 'namespaces' })
  const list = await subject.expect(200, 'GET', elsewhere)
  assert.deepEqual(list.json.items, [])
}

async function refusesBadBodies(subject: Subject): Promise<void> {
  const { collection, manifest, resource } = subject
  const other = { ...manifest, kind: 'Unheard' }
  const wrong = await subject.refuses(400, 'BadRequest', 'POST', collection, other)
  const version = JSON.stringify(resource.version)
  const expected = `Unheard in version ${version} cannot be handled as a ${resource.kind}: `
  assert.ok(String(wrong.json['message']).startsWith(expected), wrong.text)
  const foreign = { ...manifest, apiVersion: 'tiny.example.com/v7' }
  await subject.refuses(400, 'BadRequest', 'POST', collection, foreign)

  const name = 'not/a%name'
  const unnamed = await subject.refuses(422, 'Invalid', 'POST', collection, { ...manifest, metadata: { name } })
  const details = unnamed.json['details'] as { name: string; group?: string; kind: string; causes: { field: string }[] }
  assert.equal(details.name, name)
  assert.equal(details.group ?? '', resource.group)
  assert.equal(details.kind, resource.kind)
  assert.ok(
    details.causes.some(({ field }) => field === 'metadata.name'),
    unnamed.text,
  )
  await subject.refuses(422, 'Invalid', 'POST', collection, { ...manifest, metadata: {} })
  if (!resource.namespaced) return
  const elsewhere = { ...manifest, metadata: { ...manifest.metadata, namespace: 'default' } }
  const astray = await subject.refuses(400, 'BadRequest', 'POST', collection, elsewhere)
  const text = 'the namespace of the provided object does not match the namespace sent on the request'
  assert.equal(astray.json['message'], text)
}

/** Some kinds are created by a PUT too, kubernetes pkg/registry/<group>/<kind>/strategy.go AllowCreateOnUpdate. */
async function putsWhatIsNotThere(subject: Subject): Promise<void> {
  const path = `${subject.path}?dryRun=All`
  if (!createdByPut.has(keyOf(subject.resource))) {
    await subject.refuses(404, 'NotFound', 'PUT', path, subject.manifest)
    return
  }
  const { json } = await subject.expect(201, 'PUT', path, subject.manifest)
  assert.equal(json.metadata.name, subject.name)
  await subject.refuses(404, 'NotFound', 'GET', subject.path)
}

async function dryRunCreates(subject: Subject): Promise<void> {
  const { collection, manifest, path } = subject
  const { json } = await subject.expect(201, 'POST', `${collection}?dryRun=All`, manifest)
  assert.equal(json.metadata.name, subject.name)
  assert.equal(json.metadata.resourceVersion, undefined, 'what is not stored has no revision')
  assert.match(json.metadata.uid, /^[0-9a-f-]{36}$/)
  await subject.refuses(404, 'NotFound', 'GET', path)
}

async function creates(subject: Subject): Promise<void> {
  const { collection, manifest, path, resource } = subject
  subject.before = (await subject.expect(200, 'GET', collection)).json.metadata.resourceVersion
  const { json, headers } = await subject.expect(201, 'POST', `${collection}?fieldValidation=Strict`, manifest)
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(json.kind, resource.kind)
  assert.equal(json.apiVersion, groupVersionOf(resource))
  assert.equal(json.metadata.namespace, resource.namespaced ? subject.namespace : undefined)
  assert.match(json.metadata.uid, /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  assert.match(json.metadata.creationTimestamp ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  assert.ok(BigInt(json.metadata.resourceVersion) > BigInt(subject.before))
  assert.equal(json.metadata.generation, countsGenerations.has(keyOf(resource)) ? 1 : undefined)
  subject.object = json
  subject.changes.push({ type: 'ADDED', resourceVersion: subject.resourceVersion })
  assert.deepEqual((await subject.expect(200, 'GET', path)).json, json, 'a get answers what the create answered')

  const again = await subject.refuses(409, 'AlreadyExists', 'POST', collection, manifest)
  assert.equal(again.json['message'], `${subject.qualified} "${subject.name}" already exists`)
}

async function lists(subject: Subject): Promise<void> {
  const { collection, everywhere, name, object, resource } = subject
  const { kind: _kind, apiVersion: _apiVersion, ...item } = object
  for (const path of new Set([
    collection,
    everywhere,
    `${collection}?fieldSelector=metadata.name%3D${encodeURIComponent(name)}`,
    `${collection}?resourceVersion=0`,
    `${collection}?resourceVersion=${subject.resourceVersion}&resourceVersionMatch=Exact&limit=500`,
  ])) {
    const { json } = await subject.expect(200, 'GET', path)
    assert.equal(json.kind, `${resource.kind}List`)
    assert.equal(json.apiVersion, groupVersionOf(resource))
    assert.ok(BigInt(json.metadata.resourceVersion) >= BigInt(subject.resourceVersion), path)
    const found = json.items.filter((candidate) => candidate.metadata.uid === object.metadata.uid)
    assert.deepEqual(found, [item], `${path} has the object, without kind and apiVersion`)
    if (path.includes('fieldSelector')) assert.equal(json.items.length, 1, path)
  }
  const without = await subject.expect(200, 'GET', `${collection}?labelSelector=no-such-label`)
  assert.deepEqual(without.json.items, [])
  await subject.refuses(400, 'BadRequest', 'GET', `${collection}?fieldSelector=no.such.field%3Dx`)
}

interface Table {
  readonly kind: string
  readonly columnDefinitions: readonly { readonly name: string }[]
  readonly rows: readonly { readonly cells: readonly unknown[]; readonly object: KubeObject }[]
}

async function answersInOtherForms(subject: Subject): Promise<void> {
  const { collection, object, path } = subject
  for (const where of [path, collection]) {
    const { json } = await subject.expect(200, 'GET', where, undefined, { headers: { accept: table } })
    const { kind, columnDefinitions, rows } = json as unknown as Table
    assert.equal(kind, 'Table')
    assert.equal(json.apiVersion, 'meta.k8s.io/v1')
    assert.ok(columnDefinitions.some((column) => column.name === 'Name'))
    const row = rows.find((candidate) => candidate.object.metadata.uid === object.metadata.uid)
    assert.ok(row, `${where}: a row for the object`)
    assert.equal(row.cells.length, columnDefinitions.length)
    assert.equal(row.object.kind, 'PartialObjectMetadata')
    assert.ok(rows.every(({ cells }) => cells.length === columnDefinitions.length))
  }
  const { metadata } = object
  const one = await subject.expect(200, 'GET', path, undefined, { headers: { accept: partial } })
  assert.deepEqual(one.json, { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata })
  const many = await subject.expect(200, 'GET', collection, undefined, { headers: { accept: partialList } })
  assert.equal(many.json.kind, 'PartialObjectMetadataList')
  assert.ok(many.json.items.some((item) => item.metadata.uid === metadata.uid))

  const yaml = await subject.bytes('GET', path, { accept: 'application/yaml' })
  assert.equal(yaml.status, 200)
  assert.equal(yaml.contentType, 'application/yaml')
  assert.deepEqual(parse(yaml.body.toString()), object)
  await sendsBack(subject, 'application/yaml', yaml.body)
}

/** Bytes that the server answered, sent as a PUT: nothing was lost on the way, so nothing changes. */
async function sendsBack(subject: Subject, contentType: string, body: Buffer): Promise<void> {
  const put = await subject.bytes('PUT', subject.path, { accept: 'application/json', contentType, body })
  assert.equal(put.status, 200, put.body.toString())
  assert.deepEqual(JSON.parse(put.body.toString()), subject.object, `${contentType}, there and back`)
}

async function speaksProtobuf(subject: Subject): Promise<void> {
  const { collection, name, path, resource } = subject
  const answer = await subject.bytes('GET', path, { accept: protobufType })
  assert.equal(answer.status, 200)
  assert.equal(answer.contentType, protobufType)
  const one = openEnvelope(answer.body)
  assert.deepEqual([one.apiVersion, one.kind], [groupVersionOf(resource), resource.kind])
  assert.equal(nameOf(one.raw), name)
  await sendsBack(subject, protobufType, answer.body)

  const list = openEnvelope((await subject.bytes('GET', collection, { accept: protobufType })).body)
  assert.equal(list.kind, `${resource.kind}List`)
  assert.ok(itemsOf(list.raw).some((item) => nameOf(item) === name))
  assert.ok(
    itemsOf(list.raw).some((item) => item.equals(one.raw)),
    'an item is the message that a get answers',
  )

  const meta = `${protobufType};as=PartialObjectMetadata;v=v1;g=meta.k8s.io`
  const envelope = openEnvelope((await subject.bytes('GET', path, { accept: meta })).body)
  assert.deepEqual([envelope.apiVersion, envelope.kind], ['meta.k8s.io/v1', 'PartialObjectMetadata'])
  assert.equal(nameOf(envelope.raw), name)
}

/** Each of these says what is so already, and some of them twice. */
async function unchangedWritesChangeNothing(subject: Subject): Promise<void> {
  const { object, path } = subject
  const { metadata } = object
  const bare = { kind: object.kind, apiVersion: object.apiVersion, metadata: { name: metadata.name } }
  const equal = [
    { op: 'test', path: '/metadata/name', value: metadata.name },
    { op: 'replace', path: '/metadata/name', value: metadata.name },
    { op: 'replace', path: '/metadata', value: metadata },
  ]
  assert.deepEqual(await subject.unchanged('PUT', path, object), object)
  for (const [contentType, patch] of [
    [jsonPatch, []],
    [jsonPatch, equal],
    [jsonPatch, equal],
    [mergePatch, {}],
    [mergePatch, object],
    [mergePatch, object],
    [strategicPatch, {}],
    [strategicPatch, bare],
    [strategicPatch, object],
    [strategicPatch, object],
  ] as const) {
    assert.deepEqual(await subject.unchanged('PATCH', path, patch, contentType), object, contentType)
  }
  assert.deepEqual(await subject.unchanged('PUT', path, object), object)
  const failing = [{ op: 'test', path: '/metadata/name', value: 'another' }]
  await subject.refuses(422, 'Invalid', 'PATCH', path, failing, { contentType: jsonPatch })
  await subject.refuses(415, 'UnsupportedMediaType', 'PATCH', path, {}, { contentType: 'application/json' })
}

/** What `kubectl replace -f` sends a second time: the object without what the server filled in. */
async function takesManifestsAgain(subject: Subject): Promise<void> {
  const { manifest, path, resource, resourceVersion } = subject
  const body = { ...manifest, metadata: { ...manifest.metadata, resourceVersion } }
  if (madeAtCreation.has(keyOf(resource))) {
    const { json } = await subject.refuses(422, 'Invalid', 'PUT', path, body)
    assert.match(String(json['message']), /field is immutable/)
    return
  }
  assert.deepEqual(await subject.unchanged('PUT', path, body), subject.object)
  assert.deepEqual(await subject.unchanged('PATCH', path, manifest, mergePatch), subject.object)
  assert.deepEqual(await subject.unchanged('PATCH', path, manifest, strategicPatch), subject.object)
}

async function changesMakeRevisions(subject: Subject): Promise<void> {
  const { path } = subject
  const stale = subject.object
  const { generation } = stale.metadata
  const labelled = await subject.changed('PATCH', path, { metadata: { labels: { touched: 'once' } } }, mergePatch)
  assert.equal(labelled.metadata.labels?.['touched'], 'once')
  assert.equal(labelled.metadata.generation, generation, 'a label is no part of the spec')
  const { metadata } = subject.object
  const labels = { ...metadata.labels, touched: 'twice' }
  const put = await subject.changed('PUT', path, { ...subject.object, metadata: { ...metadata, labels } })
  assert.equal(put.metadata.uid, metadata.uid)
  assert.equal(put.metadata.creationTimestamp, metadata.creationTimestamp)
  await subject.changed('PATCH', path, [{ op: 'add', path: '/metadata/labels/touched', value: '3' }], jsonPatch)
  await subject.changed('PATCH', path, { metadata: { labels: { touched: 'often' } } }, strategicPatch)
  const chosen = await subject.expect(200, 'GET', `${subject.collection}?labelSelector=touched%3Doften`)
  assert.deepEqual(
    chosen.json.items.map((item) => item.metadata.name),
    [subject.name],
  )

  const old = { metadata: { resourceVersion: stale.metadata.resourceVersion, labels: { touched: 'late' } } }
  for (const answer of [
    await subject.refuses(409, 'Conflict', 'PUT', path, stale),
    await subject.refuses(409, 'Conflict', 'PATCH', path, old, { contentType: mergePatch }),
    await subject.refuses(409, 'Conflict', 'PATCH', path, old, { contentType: strategicPatch }),
  ]) {
    assert.equal(
      answer.json['message'],
      `Operation cannot be fulfilled on ${subject.qualified} "${subject.name}": the object has been modified; please apply your changes to the latest version and try again`,
    )
    const group = subject.resource.group === '' ? {} : { group: subject.resource.group }
    assert.deepEqual(answer.json['details'], { name: subject.name, ...group, kind: subject.resource.plural })
  }
  const renamed = { ...subject.object, metadata: { ...subject.object.metadata, name: 'another' } }
  await subject.refuses(400, 'BadRequest', 'PUT', path, renamed)
  const { resourceVersion: _resourceVersion, ...unversioned } = subject.object.metadata
  await putsWithoutRevision(subject, { ...subject.object, metadata: unversioned })
}

/** Some kinds take a PUT that names no revision, and it changes nothing here; the others say what is missing. */
async function putsWithoutRevision(subject: Subject, body: object): Promise<void> {
  const answer = await subject.bytes('PUT', subject.path, {
    accept: 'application/json',
    contentType: 'application/json',
    body: Buffer.from(JSON.stringify(body)),
  })
  const json = JSON.parse(answer.body.toString()) as KubeObject
  if (answer.status === 200) {
    assert.equal(json.metadata.resourceVersion, subject.resourceVersion)
    return
  }
  assert.equal(answer.status, 422, answer.body.toString())
  assert.match(
    String(json['message']),
    /metadata\.resourceVersion: Invalid value: .*: must be specified for an update$/,
  )
}

async function dryRunsStoreNothing(subject: Subject): Promise<void> {
  const { path } = subject
  const patch = { metadata: { labels: { touched: 'dry' } } }
  const patched = await subject.expect(200, 'PATCH', `${path}?dryRun=All`, patch, { contentType: mergePatch })
  assert.equal(patched.json.metadata.labels?.['touched'], 'dry')
  const { metadata } = subject.object
  const body = { ...subject.object, metadata: { ...metadata, labels: { touched: 'dry' } } }
  const put = await subject.expect(200, 'PUT', `${path}?dryRun=All`, body)
  assert.equal(put.json.metadata.labels?.['touched'], 'dry')
  await subject.expect(200, 'DELETE', `${path}?dryRun=All&propagationPolicy=Background`)
  if (subject.has('deletecollection')) {
    const selector = `labelSelector=touched%3Doften&dryRun=All&propagationPolicy=Background`
    await subject.expect(200, 'DELETE', `${subject.collection}?${selector}`)
  }
  assert.deepEqual((await subject.expect(200, 'GET', path)).json, subject.object)
}

async function keepsStatusApart(subject: Subject): Promise<void> {
  const subresource = subject.subresource('status')
  if (subresource === undefined) return
  assert.deepEqual(subresource.verbs, ['get', 'patch', 'update'])
  const status = statuses[keyOf(subject.resource)]
  assert.ok(status, `a status for ${keyOf(subject.resource)} in test/testdata/manifests.ts`)
  const { path } = subject
  const at = `${path}/status`
  assert.deepEqual((await subject.expect(200, 'GET', at)).json, subject.object)
  const before = subject.object

  const reported = await subject.changed('PUT', at, { ...before, spec: undefined, status })
  assertContains(reported['status'], status, 'status')
  assert.deepEqual(reported['spec'], before['spec'], '/status leaves the spec alone')
  assert.equal(reported.metadata.generation, before.metadata.generation)
  for (const [contentType, patch] of [
    [jsonPatch, []],
    [mergePatch, {}],
    [mergePatch, { status }],
    [mergePatch, { spec: null }],
    [strategicPatch, {}],
    [strategicPatch, { status: reported['status'] }],
  ] as const) {
    await subject.unchanged('PATCH', at, patch, contentType)
  }
  assert.deepEqual(await subject.unchanged('PUT', at, subject.object), subject.object)

  const { status: _status, ...bare } = subject.object
  assert.deepEqual(await subject.unchanged('PUT', path, bare), subject.object, 'a PUT leaves the status alone')
  await subject.unchanged('PATCH', path, { status: null }, mergePatch)
  await subject.unchanged('PATCH', path, { status: null }, strategicPatch)
  const conflict = await subject.refuses(409, 'Conflict', 'PUT', at, { ...before, status })
  assert.match(String(conflict.json['message']), /the object has been modified; please apply your changes/)
}

/** The subresources that are the object itself, or a part of it. */
async function keepsOtherPartsApart(subject: Subject): Promise<void> {
  for (const { name, kind, verbs } of subject.resource.subresources) {
    if (name === 'status' || kind !== subject.resource.kind || name === 'log') continue
    const at = `${subject.path}/${name}`
    if (verbs.includes('get')) assert.deepEqual((await subject.expect(200, 'GET', at)).json, subject.object)
    if (verbs.includes('update')) assert.deepEqual(await subject.unchanged('PUT', at, subject.object), subject.object)
    if (!verbs.includes('patch')) continue
    await subject.unchanged('PATCH', at, [], jsonPatch)
    await subject.unchanged('PATCH', at, {}, mergePatch)
    await subject.unchanged('PATCH', at, {}, strategicPatch)
  }
}

async function scales(subject: Subject): Promise<void> {
  if (subject.subresource('scale') === undefined) return
  const at = `${subject.path}/scale`
  const scale = (await subject.expect(200, 'GET', at)).json
  const { uid, resourceVersion, name, namespace } = subject.object.metadata
  assert.equal(scale.kind, 'Scale')
  assert.equal(scale.apiVersion, 'autoscaling/v1')
  assertContains(scale.metadata, { uid, resourceVersion, name, namespace }, 'metadata')
  assert.deepEqual(scale['spec'], { replicas: 1 })
  assert.equal((scale['status'] as { selector: string }).selector, 'app=tiny')
  assert.deepEqual(await subject.unchanged('PUT', at, scale), scale)
  await subject.unchanged('PATCH', at, {}, mergePatch)
  await subject.unchanged('PATCH', at, { spec: { replicas: 1 } }, mergePatch)
  await subject.unchanged('PATCH', at, [], jsonPatch)
  const generation = subject.object.metadata.generation ?? 0
  const status = subject.object['status']
  await subject.changed('PUT', at, { ...scale, spec: { replicas: 3 } })
  await subject.changed('PATCH', at, { spec: { replicas: 2 } }, mergePatch)
  assert.equal((subject.object['spec'] as { replicas: number }).replicas, 2)
  assert.equal(subject.object.metadata.generation, generation + 2)
  assert.deepEqual(subject.object['status'], status)
  const stale = await subject.refuses(409, 'Conflict', 'PUT', at, { ...scale, spec: { replicas: 4 } })
  assert.match(String(stale.json['message']), /the object has been modified; please apply your changes/)
  await subject.refuses(422, 'Invalid', 'PATCH', at, { spec: { replicas: -1 } }, { contentType: mergePatch })
}

/** Created again from the protobuf it was answered in: the same object but for its identity. */
async function deletesAndReturns(subject: Subject): Promise<void> {
  const { collection, object, path, resource } = subject
  const { body } = await subject.bytes('GET', path, { accept: protobufType })
  const deleted = await subject.expect(200, 'DELETE', `${path}?propagationPolicy=Background`)
  if (deleted.json.kind === 'Status') {
    const group = resource.group === '' ? {} : { group: resource.group }
    const details = { name: subject.name, ...group, kind: resource.plural, uid: object.metadata.uid }
    assert.equal(deleted.json['status'], 'Success')
    assert.deepEqual(deleted.json['details'], details)
  } else {
    assert.equal(deleted.json.kind, resource.kind)
    assert.equal(deleted.json.metadata.uid, object.metadata.uid)
  }
  await watchShowsEverything(subject)
  await subject.refuses(404, 'NotFound', 'GET', path)
  if (madeAtCreation.has(keyOf(resource))) return

  const one = openEnvelope(body)
  const again = closeEnvelope({ ...one, raw: withoutIdentity(one.raw) })
  const post = await subject.bytes('POST', collection, { accept: protobufType, contentType: protobufType, body: again })
  assert.equal(post.status, 201, post.body.toString())
  assert.equal(nameOf(openEnvelope(post.body).raw), subject.name)
  const { json } = await subject.expect(200, 'GET', path)
  assert.notEqual(json.metadata.uid, object.metadata.uid)
  assert.deepEqual(withoutTraces(json), withoutTraces(object), 'protobuf carries all of the object')
  const options = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' }
  const other = { ...options, preconditions: { uid: object.metadata.uid } }
  await subject.refuses(409, 'Conflict', 'DELETE', path, other)
  const own = { ...options, apiVersion: groupVersionOf(resource), preconditions: { uid: json.metadata.uid } }
  await subject.expect(200, 'DELETE', path, own)
}

/** What every creation sets anew. */
function withoutTraces(object: KubeObject): object {
  const {
    uid: _uid,
    resourceVersion: _version,
    creationTimestamp: _time,
    generation: _generation,
    ...metadata
  } = object.metadata
  const { status: _status, ...rest } = object
  return { ...rest, metadata }
}

/** From before the creation on: every revision that was answered, in order, and the end. Lists of Tables and protobuf too. */
async function watchShowsEverything(subject: Subject): Promise<void> {
  const name = encodeURIComponent(subject.name)
  const query = `watch=true&resourceVersion=${subject.before}&fieldSelector=metadata.name%3D${name}&timeoutSeconds=10`
  const url = `${subject.collection}?${query}`
  const events = await untilType(subject, url, 'DELETED')
  const { length } = subject.changes
  const seen = events.map(({ type, object }) => ({ type, resourceVersion: object.metadata.resourceVersion }))
  assert.deepEqual(seen.slice(0, length), subject.changes)
  const last = events[length - 1]
  assert.deepEqual(last?.object, subject.object, 'an event carries the object whole')
  // Deletion marks some kinds before they go.
  for (const { type } of seen.slice(length, -1)) assert.equal(type, 'MODIFIED')
  assert.equal(seen.at(-1)?.type, 'DELETED')
  const revisions = seen.map(({ resourceVersion }) => Number(resourceVersion))
  assert.deepEqual(
    revisions,
    [...new Set(revisions)].sort((a, b) => a - b),
  )

  const tables = await untilType(subject, url, 'DELETED', table)
  assert.equal(tables.length, events.length)
  tables.forEach(({ object }, index) => {
    const { kind, columnDefinitions, rows } = object as unknown as Partial<Table>
    assert.equal(kind, 'Table')
    assert.equal((columnDefinitions ?? []).length > 0, index === 0, 'columns come with the first event alone')
    assert.equal(rows?.length, 1)
  })
  const messages = await protobufWatch(subject.base, url, 'DELETED')
  assert.deepEqual(
    messages.map(({ type, object }) => [type, object.kind, nameOf(object.raw)]),
    events.map(({ type }) => [type, subject.resource.kind, subject.name]),
  )
}

/** A watch that begins with what there is: each object as ADDED, then a bookmark that says so. */
async function streamsInitialState(subject: Subject): Promise<void> {
  const { collection, name, object, resource } = subject
  const options = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=10'
  const url = `${collection}?watch=true&${options}&fieldSelector=metadata.name%3D${encodeURIComponent(name)}`
  const [added, bookmark, ...more] = await untilType(subject, url, 'BOOKMARK')
  assert.deepEqual(added, { type: 'ADDED', object })
  assert.equal(bookmark?.type, 'BOOKMARK')
  const { kind, apiVersion, metadata } = bookmark.object
  assert.deepEqual([kind, apiVersion], [resource.kind, groupVersionOf(resource)])
  assert.deepEqual(metadata.annotations, { 'k8s.io/initial-events-end': 'true' })
  assert.ok(BigInt(metadata.resourceVersion) >= BigInt(subject.resourceVersion))
  assert.deepEqual(more, [])
}

async function untilType(
  subject: Subject,
  url: string,
  until: WatchLine['type'],
  accept?: string,
): Promise<readonly WatchLine[]> {
  const events: WatchLine[] = []
  const abort = new AbortController()
  const options = { signal: abort.signal, ...(accept !== undefined && { headers: { accept } }) }
  for await (const event of watch(subject.base, url, options)) {
    events.push(event)
    if (event.type === until || event.type === 'ERROR') break
  }
  abort.abort()
  return events
}

async function pages(subject: Subject, names: readonly string[]): Promise<void> {
  const first = await subject.expect(200, 'GET', `${subject.collection}?limit=1`)
  const { continue: token, remainingItemCount, resourceVersion } = first.json.metadata
  assert.equal(typeof token, 'string')
  assert.equal(remainingItemCount, names.length - 1)
  const rest = await subject.expect(200, 'GET', `${subject.collection}?limit=5&continue=${token}`)
  assert.equal(rest.json.metadata.resourceVersion, resourceVersion)
  assert.equal(rest.json.metadata.continue, undefined)
  const seen = [...first.json.items, ...rest.json.items].map((item) => item.metadata.name)
  assert.deepEqual(seen, [...names].sort())
}

async function deletesCollections(subject: Subject): Promise<void> {
  if (!subject.has('deletecollection')) return
  const { collection, resource } = subject
  const chosen = subject.another('b')
  const other = subject.another('c')
  const labels = { chosen: subject.namespace || 'yes' }
  await subject.expect(201, 'POST', collection, { ...chosen, metadata: { ...chosen.metadata, labels } })
  await subject.expect(201, 'POST', collection, other)
  if (resource.namespaced) await pages(subject, [chosen.metadata.name, other.metadata.name])
  const query = `labelSelector=chosen&propagationPolicy=Background`
  const { json } = await subject.expect(200, 'DELETE', `${collection}?${query}`)
  assert.equal(json.kind, `${resource.kind}List`)
  assert.deepEqual(
    json.items.map((item) => item.metadata.name),
    [chosen.metadata.name],
  )
  await subject.refuses(404, 'NotFound', 'GET', `${collection}/${chosen.metadata.name}`)
  await subject.expect(200, 'GET', `${collection}/${other.metadata.name}`)
  const rest = `fieldSelector=metadata.name%3D${encodeURIComponent(other.metadata.name)}&propagationPolicy=Background`
  await subject.expect(200, 'DELETE', `${collection}?${rest}`)
  await subject.refuses(404, 'NotFound', 'GET', `${collection}/${other.metadata.name}`)
}

export const storedResourceSteps: readonly Step[] = [
  refusesWhatIsNotThere,
  refusesBadBodies,
  putsWhatIsNotThere,
  dryRunCreates,
  creates,
  lists,
  selectsByField,
  answersInOtherForms,
  speaksProtobuf,
  streamsInitialState,
  unchangedWritesChangeNothing,
  takesManifestsAgain,
  changesMakeRevisions,
  dryRunsStoreNothing,
  keepsStatusApart,
  keepsOtherPartsApart,
  scales,
  deletesAndReturns,
  deletesCollections,
]
