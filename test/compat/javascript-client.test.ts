/** The official JavaScript client, unmodified: typed objects, all patch types, its informer through churn and compaction. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before } from 'node:test'
import {
  ApiException,
  AppsV1Api,
  CoreV1Api,
  KubeConfig,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
  Watch,
} from '@kubernetes/client-node'
import { type ControlPlaneProcess, startProcess } from '../control-plane.ts'
import { testWith } from '../external.ts'
import { repositoryRoot } from '../repository.ts'

const namespace = 'javascript-client'

const manifest = readFileSync(join(repositoryRoot(), 'node_modules/@kubernetes/client-node/package.json'), 'utf8')
const program = {
  name: 'JavaScript client',
  path: process.execPath,
  version: (JSON.parse(manifest) as { version: string }).version,
  install: 'npm ci',
}

let plane: ControlPlaneProcess
let config: KubeConfig
let core: CoreV1Api

before(async () => {
  plane = await startProcess({ flags: ['--etcd-compaction-interval', '1s'] })
  config = new KubeConfig()
  config.loadFromFile(plane.kubeconfig)
  core = config.makeApiClient(CoreV1Api)
  await core.createNamespace({ body: { metadata: { name: namespace } } })
})

after(async () => {
  assert.equal(await plane.stop(), 0)
})

const configMap = (name: string, data: Record<string, string> = {}): V1ConfigMap => ({ metadata: { name }, data })

const changed = ({ metadata }: V1ConfigMap, data: Record<string, string>): V1ConfigMap => ({ metadata, data })

async function refused(code: number, reason: string, call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error: unknown) => {
    assert.ok(error instanceof ApiException, String(error))
    const body: unknown = typeof error.body === 'string' ? JSON.parse(error.body) : error.body
    assert.deepEqual([error.code, (body as { reason: string }).reason], [code, reason])
    return true
  })
}

testWith(program, 'the JavaScript client creates, replaces, patches and deletes', async () => {
  const name = 'typed'
  const made = await core.createNamespacedConfigMap({ namespace, body: configMap(name, { a: '1' }) })
  assert.ok(made.metadata?.creationTimestamp instanceof Date)
  await refused(409, 'AlreadyExists', core.createNamespacedConfigMap({ namespace, body: configMap(name) }))
  await core.replaceNamespacedConfigMap({ name, namespace, body: changed(made, { a: '2' }) })
  await refused(409, 'Conflict', core.replaceNamespacedConfigMap({ name, namespace, body: changed(made, {}) }))
  await refused(404, 'NotFound', core.readNamespacedConfigMap({ name: 'missing', namespace }))
  await refused(422, 'Invalid', core.createNamespacedConfigMap({ namespace, body: configMap('Not_A_Name') }))
  const patch = (body: object, strategy: string) =>
    core.patchNamespacedConfigMap({ name, namespace, body }, setHeaderOptions('Content-Type', strategy))
  await patch([{ op: 'add', path: '/data/json', value: 'x' }], PatchStrategy.JsonPatch)
  await patch({ data: { merge: 'y' } }, PatchStrategy.MergePatch)
  const patched = await patch({ data: { strategic: 'z' } }, PatchStrategy.StrategicMergePatch)
  assert.deepEqual({ ...patched.data }, { a: '2', json: 'x', merge: 'y', strategic: 'z' })
  const deleted = await core.deleteNamespacedConfigMap({ name, namespace })
  assert.equal(deleted.status, 'Success')
})

testWith(program, 'the JavaScript client scales a deployment and finds resources by discovery', async () => {
  const objects = KubernetesObjectApi.makeApiClient(config)
  await objects.create({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'scaled', namespace },
    spec: {
      selector: { matchLabels: { app: 'scaled' } },
      template: {
        metadata: { labels: { app: 'scaled' } },
        spec: { containers: [{ name: 'main', image: 'example.test/main:1' }] },
      },
    },
  } as Parameters<typeof objects.create>[0])
  const apps = config.makeApiClient(AppsV1Api)
  const scale = await apps.readNamespacedDeploymentScale({ name: 'scaled', namespace })
  await apps.replaceNamespacedDeploymentScale({
    name: 'scaled',
    namespace,
    body: { metadata: scale.metadata, spec: { replicas: 4 } },
  })
  assert.equal((await apps.readNamespacedDeployment({ name: 'scaled', namespace })).spec?.replicas, 4)
})

testWith(
  program,
  'the JavaScript informer follows creates, updates and deletes, also across its own restart',
  async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`
    const informer = makeInformer<V1ConfigMap>(config, path, () => core.listNamespacedConfigMap({ namespace }))
    const seen: string[] = []
    let notify = (): void => {}
    for (const verb of ['add', 'update', 'delete'] as const) {
      informer.on(verb, (object) => {
        if (object.metadata?.name?.startsWith('informed') === true) seen.push(`${verb} ${object.metadata.name}`)
        notify()
      })
    }
    const sees = (event: string): Promise<void> =>
      new Promise((resolve) => {
        notify = (): void => {
          if (seen.includes(event)) resolve()
        }
        notify()
      })
    await core.createNamespacedConfigMap({ namespace, body: configMap('informed-1') })
    await informer.start()
    await sees('add informed-1')
    await core.createNamespacedConfigMap({ namespace, body: configMap('informed-2') })
    await sees('add informed-2')
    const current = await core.readNamespacedConfigMap({ name: 'informed-2', namespace })
    await core.replaceNamespacedConfigMap({ name: 'informed-2', namespace, body: changed(current, { a: '1' }) })
    await sees('update informed-2')
    await informer.stop()
    await core.deleteNamespacedConfigMap({ name: 'informed-1', namespace })
    await informer.start()
    await sees('delete informed-1')
    await core.deleteNamespacedConfigMap({ name: 'informed-2', namespace })
    await sees('delete informed-2')
    await informer.stop()
    assert.deepEqual(
      informer.list().filter((object) => object.metadata?.name?.startsWith('informed')),
      [],
    )
  },
)

testWith(program, 'the JavaScript watch is told 410 for what was compacted', async () => {
  const first = await core.createNamespacedConfigMap({ namespace, body: configMap('old') })
  const resourceVersion = first.metadata?.resourceVersion
  assert.ok(resourceVersion !== undefined)
  const path = `/api/v1/namespaces/${namespace}/configmaps`
  const watch = new Watch(config)
  for (let round = 0; ; round++) {
    await core.replaceNamespacedConfigMap({ name: 'old', namespace, body: configMap('old', { round: String(round) }) })
    const error = await new Promise<unknown>((resolve) => {
      void watch.watch(
        path,
        { resourceVersion, timeoutSeconds: 1 },
        (type: string, object: unknown) => {
          if (type === 'ERROR') resolve(object)
        },
        (ended: unknown) => resolve(ended ?? undefined),
      )
    })
    if (error === undefined || error === null) continue // not compacted yet
    assert.equal((error as { code?: unknown; statusCode?: unknown }).code ?? error, 410)
    return
  }
})
