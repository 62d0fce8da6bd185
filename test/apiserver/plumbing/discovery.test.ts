import assert from 'node:assert/strict'
import test from 'node:test'
import { apiGroupDiscoveryList } from '../../../apiserver/discovery/aggregated-discovery.ts'
import { DiscoveryPaths } from '../../../apiserver/discovery/discovery-paths.ts'
import {
  apiGroupList,
  apiResourceList,
  type ServedApi,
  storageVersionHash,
} from '../../../apiserver/discovery/legacy-discovery.ts'
import { runInternally } from '../../../apiserver/internal-request.ts'
import { parseTarget, requestInfo } from '../../../apiserver/request-info.ts'
import type { ApiReply } from '../../../apiserver/types.ts'
import { openApiV3Document, resourceGroups, resources, type SchemaNode } from '../../../schemas/index.ts'

const api: ServedApi = { groups: resourceGroups(), resources: resources() }

interface ResourceList {
  readonly resources: readonly { readonly name: string; readonly kind: string; readonly group?: string }[]
}

test('the configmaps entry of core v1 is what a real server shows, byte for byte', () => {
  const list = apiResourceList(api, '', 'v1') as ResourceList
  assert.equal(
    JSON.stringify(list.resources.find(({ name }) => name === 'configmaps')),
    '{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["create","delete",' +
      '"deletecollection","get","list","patch","update","watch"],"shortNames":["cm"],' +
      '"storageVersionHash":"qFsyl6wFWjQ="}',
  )
  assert.ok(JSON.stringify(list).startsWith('{"kind":"APIResourceList","groupVersion":"v1","resources":['))
  assert.equal(storageVersionHash({ group: '', version: 'v1', kind: 'ConfigMap' }), 'qFsyl6wFWjQ=')
})

test('resources are sorted by name and foreign kinds name their group and version', () => {
  const core = apiResourceList(api, '', 'v1') as ResourceList
  const names = core.resources.map(({ name }) => name)
  assert.deepEqual(names, [...names].sort())
  const eviction = core.resources.find(({ name }) => name === 'pods/eviction')
  assert.deepEqual([eviction?.group, eviction?.kind], ['policy', 'Eviction'])
  const apps = apiResourceList(api, 'apps', 'v1') as ResourceList & { apiVersion: string }
  assert.equal(apps.apiVersion, 'v1')
  assert.equal(apps.resources.find(({ name }) => name === 'deployments/scale')?.group, 'autoscaling')
  assert.equal(apiResourceList(api, 'apps', 'v7'), undefined)
})

test('the group list begins with apiregistration.k8s.io and has no core group', () => {
  const { groups } = apiGroupList(api) as { groups: { name: string; preferredVersion: { version: string } }[] }
  assert.equal(groups[0]?.name, 'apiregistration.k8s.io')
  assert.ok(groups.every(({ name }) => name !== ''))
  assert.equal(groups.find(({ name }) => name === 'autoscaling')?.preferredVersion.version, 'v2')
})

test('aggregated discovery has every version of every group', () => {
  const list = apiGroupDiscoveryList(api, 'apis', 'v2') as {
    apiVersion: string
    items: { metadata: { name: string }; versions: { version: string; resources: { resource: string }[] }[] }[]
  }
  assert.equal(list.apiVersion, 'apidiscovery.k8s.io/v2')
  const autoscaling = list.items.find(({ metadata }) => metadata.name === 'autoscaling')
  assert.deepEqual(
    autoscaling?.versions.map(({ version, resources }) => [version, resources.map(({ resource }) => resource)]),
    [
      ['v2', ['horizontalpodautoscalers']],
      ['v1', ['horizontalpodautoscalers']],
    ],
  )
})

/** Asks a DiscoveryPaths and returns what it sent. */
async function ask(
  accept: string,
  headers: Record<string, string> = {},
): Promise<[number, string, Record<string, string>]> {
  const paths = new DiscoveryPaths({ api, serverAddress: '127.0.0.1:6443' })
  const parsed = parseTarget('/apis')
  assert.ok(parsed)
  let sent: [number, string, Record<string, string>] | undefined
  await runInternally({
    info: requestInfo('GET', parsed),
    method: 'GET',
    body: undefined,
    signal: new AbortController().signal,
    run: (request, reply) => {
      const spy: ApiReply = {
        ...reply,
        send(status, type, body, extra) {
          sent = [status, type, { ...extra }]
          reply.send(status, type, body, extra)
        },
      }
      paths.serve({ ...request, headers: { accept, ...headers } }, spy)
      return Promise.resolve()
    },
  })
  assert.ok(sent)
  return sent
}

test('the form asked for first is answered: v2, v2beta1, or the plain list', async () => {
  const form = (version: string): string =>
    `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`
  const all = `${form('v2')},${form('v2beta1')},application/json`
  assert.equal((await ask(all))[1], form('v2'))
  assert.equal((await ask(`${form('v2beta1')},application/json`))[1], form('v2beta1'))
  assert.equal((await ask(`${form('v9')},application/json`))[1], 'application/json')
  assert.equal((await ask('*/*'))[1], 'application/json')
  await assert.rejects(ask('application/xml'), { code: 406 })
  await assert.rejects(ask(form('v9')), { code: 406 })
})

test('an unchanged aggregated list is 304', async () => {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  const [, , headers] = await ask(accept)
  assert.match(headers['ETag'] ?? '', /^"[0-9A-F]{128}"$/)
  assert.equal((await ask(accept, { 'if-none-match': headers['ETag'] ?? '' }))[0], 304)
  assert.equal((await ask(accept, { 'if-none-match': '"other"' }))[0], 200)
})

const schemasOf = (document: SchemaNode): Record<string, SchemaNode> =>
  (document['components'] as { schemas: Record<string, SchemaNode> }).schemas

test('OpenAPI documents resolve every reference, for every group version', () => {
  for (const { group, versions } of api.groups) {
    for (const { version } of versions) {
      const document = openApiV3Document({ group, version }, 'v1')
      const known = schemasOf(document)
      const text = JSON.stringify(document)
      for (const [, name] of text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)) {
        assert.ok(known[name ?? ''], `${group}/${version}: ${name}`)
      }
      assert.ok(Object.keys(document['paths'] as object).length > 0, `${group}/${version}`)
    }
  }
})

test('OpenAPI says how lists merge, what is required and what PATCH validates', () => {
  const document = openApiV3Document({ group: '', version: 'v1' }, 'v1')
  const spec = schemasOf(document)['io.k8s.api.core.v1.PodSpec'] as {
    properties: Record<string, SchemaNode>
  }
  const containers = spec.properties['containers']
  assert.equal(containers?.['x-kubernetes-patch-merge-key'], 'name')
  assert.equal(containers?.['x-kubernetes-patch-strategy'], 'merge')
  assert.equal(containers?.['x-kubernetes-list-type'], 'map')
  const revision = schemasOf(openApiV3Document({ group: 'apps', version: 'v1' }, 'v1'))[
    'io.k8s.api.apps.v1.ControllerRevision'
  ]
  assert.deepEqual(revision?.['required'], ['data'])
  const pod = schemasOf(document)['io.k8s.api.core.v1.Pod']
  assert.deepEqual(pod?.['x-kubernetes-group-version-kind'], [{ group: '', kind: 'Pod', version: 'v1' }])
  const paths = document['paths'] as Record<string, { patch: { parameters: { name: string }[] } & SchemaNode }>
  const patch = paths['/api/v1/namespaces/{namespace}/pods/{name}']?.patch
  const parameters = patch?.parameters.map(({ name }) => name) ?? []
  for (const name of ['dryRun', 'fieldManager', 'fieldValidation', 'force']) assert.ok(parameters.includes(name), name)
  assert.deepEqual(patch?.['x-kubernetes-group-version-kind'], { group: '', kind: 'Pod', version: 'v1' })
})
