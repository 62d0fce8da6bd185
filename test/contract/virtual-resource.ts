/** Resources and subresources behind which no object lies: each has a smallest call of its own. */
import assert from 'node:assert/strict'
import { keyOf } from './discovery.ts'
import { openEnvelope, protobufType } from './protobuf-wire.ts'
import type { Subject } from './subject.ts'

type Call = (subject: Subject) => Promise<void>

const access = { resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'default' } }

/** POST of a review: 201 with the question and a status, and nothing is stored. */
function review(spec: object | undefined, check: (status: Readonly<Record<string, unknown>>) => void): Call {
  return async (subject) => {
    const { collection, manifest } = subject
    const body = { ...manifest, metadata: undefined, ...(spec !== undefined && { spec }) }
    const { json } = await subject.expect(201, 'POST', `${collection}?fieldValidation=Strict`, body)
    assert.deepEqual([json.kind, json.apiVersion], [manifest.kind, manifest.apiVersion])
    if (spec !== undefined) assert.deepEqual(json['spec'], spec)
    check(json['status'] as Record<string, unknown>)
    const headers = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
    await subject.refuses(406, 'NotAcceptable', 'POST', collection, body, { headers })
    const binary = await subject.bytes('POST', collection, {
      accept: protobufType,
      contentType: 'application/json',
      body: Buffer.from(JSON.stringify(body)),
    })
    assert.equal(binary.status, 201)
    assert.equal(openEnvelope(binary.body).kind, manifest.kind)
    await subject.refuses(400, 'BadRequest', 'POST', collection, { ...body, kind: 'Unheard' })
  }
}

const allowed = (status: Readonly<Record<string, unknown>>): void => assert.equal(status['allowed'], true)

export const virtualResources: Readonly<Record<string, Call>> = {
  '/bindings': async (subject) => {
    const pods = subject.collection.replace(/bindings$/, 'pods')
    await subject.expect(201, 'POST', pods, pod('bound'))
    const { json } = await subject.expect(201, 'POST', subject.collection, binding('bound'))
    assert.deepEqual([json.kind, json['status']], ['Status', 'Success'])
    const bound = await subject.expect(200, 'GET', `${pods}/bound`)
    assert.equal((bound.json['spec'] as { nodeName: string }).nodeName, 'tiny')
    await subject.refuses(409, 'Conflict', 'POST', subject.collection, binding('bound'))
    await subject.refuses(404, 'NotFound', 'POST', subject.collection, binding('absent'))
    await subject.expect(200, 'DELETE', `${pods}/bound?gracePeriodSeconds=0`)
  },
  '/componentstatuses': async (subject) => {
    const { json, headers } = await subject.expect(200, 'GET', subject.collection)
    assert.equal(json.kind, 'ComponentStatusList')
    assert.match(String(headers['warning']), /299 - "v1 ComponentStatus is deprecated in v1\.19\+"/)
    const store = json.items.find((item) => item.metadata.name === 'etcd-0')
    assert.deepEqual(store?.['conditions'], [{ type: 'Healthy', status: 'True', message: 'ok' }])
    const one = await subject.expect(200, 'GET', `${subject.collection}/etcd-0`)
    assert.equal(one.json.kind, 'ComponentStatus')
    assert.deepEqual(one.json['conditions'], store['conditions'])
    const absent = await subject.refuses(404, 'NotFound', 'GET', `${subject.collection}/absent`)
    assert.equal(absent.json['message'], 'componentstatuses "absent" not found')
    const headersOfTable = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
    const table = await subject.expect(200, 'GET', subject.collection, undefined, { headers: headersOfTable })
    const { columnDefinitions, rows } = table.json as unknown as {
      columnDefinitions: { name: string }[]
      rows: { cells: unknown[] }[]
    }
    assert.deepEqual(
      columnDefinitions.map(({ name }) => name),
      ['Name', 'Status', 'Message', 'Error'],
    )
    assert.deepEqual(
      rows.map(({ cells }) => cells),
      [['etcd-0', 'Healthy', 'ok', '']],
    )
  },
  'authentication.k8s.io/selfsubjectreviews': review(undefined, (status) => {
    const { username, groups } = status['userInfo'] as { username: string; groups: string[] }
    assert.equal(typeof username, 'string')
    assert.ok(groups.includes('system:masters'))
  }),
  'authentication.k8s.io/tokenreviews': review({ token: 'not-one-of-ours' }, (status) => {
    assert.notEqual(status['authenticated'], true)
    assert.equal(typeof status['error'], 'string')
  }),
  'authorization.k8s.io/localsubjectaccessreviews': async (subject) => {
    const { namespace } = subject
    const attributes = { ...access.resourceAttributes, namespace }
    await review({ resourceAttributes: attributes, user: 'tiny', groups: ['system:masters'] }, allowed)(subject)
    await subject.refuses(422, 'Invalid', 'POST', subject.collection, {
      ...subject.manifest,
      metadata: undefined,
      spec: { ...access, user: 'tiny' },
    })
  },
  'authorization.k8s.io/selfsubjectaccessreviews': review(access, allowed),
  'authorization.k8s.io/selfsubjectrulesreviews': review({ namespace: 'default' }, (status) => {
    assert.ok((status['resourceRules'] as unknown[]).length > 0)
    assert.ok((status['nonResourceRules'] as unknown[]).length > 0)
    assert.equal(status['incomplete'], false)
  }),
  'authorization.k8s.io/subjectaccessreviews': review({ ...access, user: 'tiny', groups: ['system:masters'] }, allowed),
}

const pod = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'main', image: 'example.com/tiny:1' }] },
})

const binding = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'Binding',
  metadata: { name },
  target: { apiVersion: 'v1', kind: 'Node', name: 'tiny' },
})

/** exec and its like need a node; this server has none, and says so. */
function stream(name: string): Call {
  return async (subject) => {
    for (const method of ['GET', 'POST'] as const) {
      const answer = await subject.refuses(400, 'BadRequest', method, `${subject.path}/${name}`)
      assert.equal(answer.json['message'], `pod ${subject.name} does not have a host assigned`)
    }
  }
}

function proxy(code: number, reason: string): Call {
  return async (subject) => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const) {
      await subject.refuses(code, reason, method, `${subject.path}/proxy`)
      await subject.refuses(code, reason, method, `${subject.path}/proxy/any/path`)
    }
  }
}

/** By resource and name, for subresources of another kind than their resource (and logs, which are text). */
export const virtualSubresources: Readonly<Record<string, Call>> = {
  '/nodes proxy': proxy(503, 'ServiceUnavailable'),
  '/pods attach': stream('attach'),
  '/pods binding': async (subject) => {
    await subject.expect(201, 'POST', subject.collection, pod('bound'))
    const at = `${subject.collection}/bound/binding`
    await subject.refuses(400, 'BadRequest', 'POST', at, binding('another'))
    const { json } = await subject.expect(201, 'POST', at, binding('bound'))
    assert.deepEqual([json.kind, json['status']], ['Status', 'Success'])
    const again = await subject.refuses(409, 'Conflict', 'POST', at, binding('bound'))
    assert.match(String(again.json['message']), /pod bound is already assigned to node "tiny"/)
    await subject.expect(200, 'DELETE', `${subject.collection}/bound?gracePeriodSeconds=0`)
  },
  '/pods eviction': async (subject) => {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'evicted' } }
    await subject.expect(201, 'POST', subject.collection, pod('evicted'))
    const at = `${subject.collection}/evicted/eviction`
    const { json } = await subject.expect(201, 'POST', `${at}?dryRun=All`, eviction)
    assert.deepEqual([json.kind, json['status']], ['Status', 'Success'])
    await subject.expect(200, 'GET', `${subject.collection}/evicted`)
    await subject.expect(201, 'POST', at, eviction)
    await subject.refuses(404, 'NotFound', 'GET', `${subject.collection}/evicted`)
  },
  '/pods exec': stream('exec'),
  '/pods log': async (subject) => {
    const { text, headers } = await subject.expect(200, 'GET', `${subject.path}/log`)
    assert.deepEqual([text, headers['content-type']], ['', 'text/plain'])
    await subject.refuses(400, 'BadRequest', 'GET', `${subject.path}/log?container=other`)
  },
  '/pods portforward': stream('portforward'),
  '/pods proxy': proxy(400, 'BadRequest'),
  '/services proxy': proxy(503, 'ServiceUnavailable'),
}

/** Calls every such subresource once; one without a call here is a failure. */
export async function callsVirtualSubresources(subject: Subject): Promise<void> {
  for (const { name, kind } of subject.resource.subresources) {
    if (name === 'scale' || (kind === subject.resource.kind && name !== 'log')) continue
    const key = `${keyOf(subject.resource)} ${name}`
    const run = virtualSubresources[key]
    assert.ok(run, `${key} is served: test/contract/virtual-resource.ts has a call for it`)
    await run(subject)
  }
}
