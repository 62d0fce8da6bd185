import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { decodeJson, dropDisabledFields, resources, typeDescriptor, typeNames } from '../../schemas/index.ts'

function kept(type: string, value: object): unknown {
  const descriptor = typeDescriptor(type)
  const { object, problems } = decodeJson(Buffer.from(JSON.stringify(value)), descriptor)
  assert.deepEqual(problems, [], 'the fields are known')
  dropDisabledFields(object, descriptor)
  return JSON.parse(JSON.stringify(object))
}

test('fields of gates that are off are known and dropped, at any depth', () => {
  assert.deepEqual(
    kept('io.k8s.api.core.v1.Pod', {
      spec: {
        schedulingGroup: { podGroupName: 'g' },
        containers: [
          {
            name: 'a',
            lifecycle: { stopSignal: 'SIGTERM' },
            readinessProbe: { grpc: { port: 1, mode: 'TLS' } },
            volumeMounts: [{ name: 'v', mountPath: '/v', bindMountOptions: ['noexec'] }],
          },
        ],
        volumes: [
          { name: 'v', secret: { secretName: 's', defaultUser: 1, items: [{ key: 'k', path: 'p', user: 2 }] } },
        ],
      },
    }),
    {
      spec: {
        containers: [
          {
            name: 'a',
            lifecycle: {},
            readinessProbe: { grpc: { port: 1 } },
            volumeMounts: [{ name: 'v', mountPath: '/v' }],
          },
        ],
        volumes: [{ name: 'v', secret: { secretName: 's', items: [{ key: 'k', path: 'p' }] } }],
      },
    },
  )
  const device = { name: 'd', attributes: { a: { strings: ['x'] }, b: { string: 'y' } } }
  assert.deepEqual(kept('io.k8s.api.resource.v1.ResourceSlice', { spec: { devices: [device] } }), {
    spec: { devices: [{ name: 'd', attributes: { a: {}, b: { string: 'y' } } }] },
  })
})

test('a data source in another namespace goes as a whole: without the namespace it would be another', () => {
  const ref = { kind: 'PersistentVolumeClaim', name: 'c' }
  const claim = 'io.k8s.api.core.v1.PersistentVolumeClaim'
  assert.deepEqual(kept(claim, { spec: { dataSourceRef: { ...ref, namespace: 'other' } } }), { spec: {} })
  assert.deepEqual(kept(claim, { spec: { dataSourceRef: ref } }), { spec: { dataSourceRef: ref } })
})

test('fields of gates that are on stay', () => {
  const spec = {
    resources: { limits: { cpu: '1' } },
    hostnameOverride: 'h',
    containers: [{ name: 'a', restartPolicy: 'Never' }],
  }
  assert.deepEqual(kept('io.k8s.api.core.v1.Pod', { spec }), { spec })
})

test('every gate that is off belongs to a field, or is known to be one of parameters', () => {
  const root = dirname(fileURLToPath(import.meta.resolve('trireme/package.json')))
  const { off } = JSON.parse(readFileSync(join(root, 'schemas/data/feature-gates.json'), 'utf8')) as { off: string[] }
  const gates = new Set(
    typeNames().flatMap((name) => typeDescriptor(name).fields.flatMap((field) => field.featureGate?.split(',') ?? [])),
  )
  assert.deepEqual(
    off.filter((gate) => !gates.has(gate)),
    [],
  )
  assert.deepEqual(off, off.toSorted(), 'sorted')
})

test('only versions that 1.37 serves by default are served: what became stable there, and nothing in beta', () => {
  for (const key of [
    'certificates.k8s.io/clustertrustbundles',
    'certificates.k8s.io/podcertificaterequests',
    'resource.k8s.io/devicetaintrules',
    'storagemigration.k8s.io/storageversionmigrations',
  ]) {
    const [group, plural] = key.split('/')
    const found = resources().find((one) => one.group === group && one.plural === plural)
    assert.deepEqual(
      found?.served.map(({ gvk }) => gvk.version),
      ['v1'],
      key,
    )
  }
  const versions = new Set(resources().flatMap((one) => one.served.map(({ gvk }) => gvk.version)))
  assert.deepEqual([...versions].toSorted(), ['v1', 'v2'])
})
