import assert from 'node:assert/strict'
import test from 'node:test'
import { misfitDefaults } from '../../schemas/defaults/index.ts'
import { applyDefaults, decodeJson, resources, typeDescriptor, typeNames, typeOf } from '../../schemas/index.ts'
import { manifests } from '../testdata/manifests.ts'

const plain = (value: unknown): Record<string, unknown> => JSON.parse(JSON.stringify(value)) as Record<string, unknown>

function defaulted(group: string, version: string, kind: string, manifest: object): Record<string, unknown> {
  const type = typeOf({ group, version, kind })
  assert.ok(type !== undefined)
  const { object } = decodeJson(Buffer.from(JSON.stringify(manifest)), type)
  applyDefaults(object, type)
  return plain(object)
}

test('every default belongs to a type and a field that exist', () => {
  const names = new Set(typeNames())
  assert.deepEqual(
    misfitDefaults((name) => (names.has(name) ? typeDescriptor(name) : undefined)),
    [],
  )
})

test('defaults are idempotent for every kind', () => {
  for (const resource of resources()) {
    const manifest = manifests[`${resource.group}/${resource.plural}`]
    if (manifest === undefined) continue
    for (const { gvk, type } of resource.served) {
      const { object } = decodeJson(Buffer.from(JSON.stringify(manifest)), type)
      applyDefaults(object, type)
      const once = JSON.stringify(object)
      applyDefaults(object, type)
      assert.equal(JSON.stringify(object), once, gvk.kind)
    }
  }
})

test('a pod is completed as the API server does it', () => {
  const pod = defaulted('', 'v1', 'Pod', {
    spec: {
      hostNetwork: true,
      containers: [
        {
          name: 'a',
          image: 'example.test:5000/a',
          ports: [{ containerPort: 80 }],
          resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m' } },
          livenessProbe: { httpGet: { port: 80 } },
        },
        { name: 'b', image: 'b:1' },
        { name: 'c', image: 'c@sha256:00' },
      ],
      volumes: [{ name: 'v' }, { name: 's', secret: { secretName: 's' } }],
    },
  })
  assert.deepEqual(pod, {
    spec: {
      hostNetwork: true,
      containers: [
        {
          name: 'a',
          image: 'example.test:5000/a',
          ports: [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }],
          resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m', memory: '1Gi' } },
          livenessProbe: {
            httpGet: { path: '/', port: 80, scheme: 'HTTP' },
            timeoutSeconds: 1,
            periodSeconds: 10,
            successThreshold: 1,
            failureThreshold: 3,
          },
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
          imagePullPolicy: 'Always',
        },
        {
          name: 'b',
          image: 'b:1',
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
          imagePullPolicy: 'IfNotPresent',
        },
        {
          name: 'c',
          image: 'c@sha256:00',
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
          imagePullPolicy: 'IfNotPresent',
        },
      ],
      volumes: [
        { name: 'v', emptyDir: {} },
        { name: 's', secret: { secretName: 's', defaultMode: 420 } },
      ],
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      securityContext: {},
      schedulerName: 'default-scheduler',
      enableServiceLinks: true,
    },
  })
})

test('workloads get their numbers and strategies, also where a struct was not given', () => {
  const template = { spec: { containers: [{ name: 'a', image: 'a:1' }] } }
  const deployment = defaulted('apps', 'v1', 'Deployment', { spec: { template } }) as {
    spec: Record<string, unknown>
  }
  assert.equal(deployment.spec['replicas'], 1)
  assert.deepEqual(deployment.spec['strategy'], {
    type: 'RollingUpdate',
    rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' },
  })
  assert.equal(deployment.spec['progressDeadlineSeconds'], 600)
  const recreate = defaulted('apps', 'v1', 'Deployment', { spec: { strategy: { type: 'Recreate' }, template } })
  assert.deepEqual((recreate['spec'] as Record<string, unknown>)['strategy'], { type: 'Recreate' })

  const job = defaulted('batch', 'v1', 'Job', { spec: { parallelism: 2, template } })['spec'] as Record<string, unknown>
  assert.equal(job['completions'], undefined, 'a work queue has no completions')
  assert.equal(job['backoffLimit'], 6)
  assert.equal(job['completionMode'], 'NonIndexed')
})

test('services, subjects and network policies are completed by what they are', () => {
  const service = defaulted('', 'v1', 'Service', { spec: { ports: [{ port: 80 }], sessionAffinity: 'ClientIP' } })
  assert.deepEqual(service['spec'], {
    ports: [{ protocol: 'TCP', port: 80, targetPort: 80 }],
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } },
    type: 'ClusterIP',
    internalTrafficPolicy: 'Cluster',
  })
  const binding = defaulted('rbac.authorization.k8s.io', 'v1', 'RoleBinding', {
    roleRef: { kind: 'Role', name: 'r' },
    subjects: [
      { kind: 'User', name: 'u' },
      { kind: 'ServiceAccount', name: 's', namespace: 'n' },
    ],
  })
  assert.deepEqual(binding['subjects'], [
    { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'u' },
    { kind: 'ServiceAccount', name: 's', namespace: 'n' },
  ])
  const policy = defaulted('networking.k8s.io', 'v1', 'NetworkPolicy', { spec: { podSelector: {}, egress: [{}] } })
  assert.deepEqual((policy['spec'] as Record<string, unknown>)['policyTypes'], ['Ingress', 'Egress'])
})
