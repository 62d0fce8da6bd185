import assert from 'node:assert/strict'
import test from 'node:test'
import { imageTag } from '../../schemas/defaults/image-name.ts'
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

const podSpec = (spec: object): Record<string, unknown> =>
  defaulted('', 'v1', 'Pod', { spec: { containers: [], ...spec } })['spec'] as Record<string, unknown>

test('the pull policy follows the tag, and a name that is none has no tag', () => {
  const digest = `sha256:${'0a'.repeat(32)}`
  const policies: Readonly<Record<string, string>> = {
    nginx: 'Always',
    'nginx:latest': 'Always',
    'nginx:1': 'IfNotPresent',
    'example.test:5000/a/b': 'Always',
    'example.test:5000/a/b:v1': 'IfNotPresent',
    [`nginx@${digest}`]: 'IfNotPresent',
    [`nginx:latest@${digest}`]: 'Always',
    [`nginx:1@${digest}`]: 'IfNotPresent',
    [`nginx:latest@sha256:${'0a'.repeat(20)}`]: 'IfNotPresent',
    'nginx:': 'IfNotPresent',
    'nginx@sha256:00': 'IfNotPresent',
    'example.test/UPPER': 'IfNotPresent',
    '': 'IfNotPresent',
    ['0a'.repeat(32)]: 'IfNotPresent',
  }
  for (const [image, policy] of Object.entries(policies)) {
    const { containers, volumes } = podSpec({
      containers: [{ name: 'a', image }],
      volumes: [{ name: 'v', image: { reference: image } }],
    }) as { containers: { imagePullPolicy: string }[]; volumes: { image: { pullPolicy: string } }[] }
    assert.equal(containers[0]?.imagePullPolicy, policy, image)
    assert.equal(volumes[0]?.image.pullPolicy, policy, image)
  }
})

test('a hostile image name costs no time', () => {
  assert.equal(imageTag(`${'a.'.repeat(290)}!`), '')
  assert.equal(imageTag('a'.repeat(1_000_000)), '')
})

test('the service account has two names, the newer one winning', () => {
  const names = (spec: object): unknown[] => {
    const made = podSpec(spec)
    return [made['serviceAccountName'], made['serviceAccount']]
  }
  assert.deepEqual(names({ serviceAccount: 'old' }), ['old', 'old'])
  assert.deepEqual(names({ serviceAccountName: 'new', serviceAccount: 'old' }), ['new', 'new'])
  assert.deepEqual(names({}), [undefined, undefined])
})

test('amounts of resources are rounded up to a thousandth', () => {
  const { containers } = podSpec({
    containers: [{ name: 'a', resources: { limits: { cpu: '1.0001', memory: '1Gi' }, requests: { cpu: '100u' } } }],
  }) as { containers: { resources: unknown }[] }
  assert.deepEqual(containers[0]?.resources, {
    limits: { cpu: '1001m', memory: '1Gi' },
    requests: { cpu: '1m', memory: '1Gi' },
  })
  const quota = defaulted('', 'v1', 'ResourceQuota', { spec: { hard: { 'requests.cpu': '0.0001' } } })
  assert.deepEqual(quota['spec'], { hard: { 'requests.cpu': '1m' } })
})

test('what a pod may use as a whole is completed from its containers', () => {
  const requests = (cpu: string): object => ({ requests: { cpu } })
  const spec = podSpec({
    resources: { limits: { cpu: '4', memory: '1Gi', 'hugepages-2Mi': '8Mi' } },
    containers: [
      { name: 'a', resources: requests('1') },
      { name: 'b', resources: requests('500m') },
    ],
    initContainers: [
      { name: 'sidecar', restartPolicy: 'Always', resources: requests('250m') },
      { name: 'first', resources: requests('1') },
    ],
  })
  assert.deepEqual((spec['resources'] as Record<string, unknown>)['requests'], {
    cpu: '1750m',
    memory: '1Gi',
    'hugepages-2Mi': '8Mi',
  })
  const heavy = podSpec({
    resources: { limits: { cpu: '4' } },
    containers: [{ name: 'a', resources: requests('1') }],
    initContainers: [{ name: 'first', resources: requests('3') }],
  })
  assert.deepEqual((heavy['resources'] as Record<string, unknown>)['requests'], { cpu: '3' })
  const huge = podSpec({
    resources: { requests: { cpu: '1' } },
    containers: [{ name: 'a', resources: { limits: { 'hugepages-2Mi': '4Mi' } } }],
  })
  assert.deepEqual(huge['resources'], {
    limits: { 'hugepages-2Mi': '4Mi' },
    requests: { cpu: '1', 'hugepages-2Mi': '4Mi' },
  })
})

test('a service that is reached from outside says how, and its addresses lead to it', () => {
  const service = defaulted('', 'v1', 'Service', {
    spec: { type: 'LoadBalancer', ports: [{ port: 1 }] },
    status: {
      loadBalancer: { ingress: [{ ip: '192.0.2.1' }, { hostname: 'h' }, { ip: '192.0.2.2', ipMode: 'Proxy' }] },
    },
  }) as { spec: Record<string, unknown>; status: { loadBalancer: { ingress: unknown } } }
  assert.equal(service.spec['externalTrafficPolicy'], 'Cluster')
  assert.deepEqual(service.status.loadBalancer.ingress, [
    { ip: '192.0.2.1', ipMode: 'VIP' },
    { hostname: 'h' },
    { ip: '192.0.2.2', ipMode: 'Proxy' },
  ])
  const plainService = defaulted('', 'v1', 'Service', { spec: { externalIPs: ['192.0.2.1'] } })
  assert.equal((plainService['spec'] as Record<string, unknown>)['externalTrafficPolicy'], 'Cluster')
})

test('tokens, jobs, stateful sets and priority levels are completed', () => {
  assert.deepEqual(defaulted('authentication.k8s.io', 'v1', 'TokenRequest', { spec: { audiences: ['a'] } })['spec'], {
    audiences: ['a'],
    expirationSeconds: 3600,
  })
  const job = defaulted('batch', 'v1', 'Job', { spec: { template: {} } })['spec'] as Record<string, unknown>
  assert.equal(job['manualSelector'], false)
  const strategy = (updateStrategy?: object): unknown =>
    (defaulted('apps', 'v1', 'StatefulSet', { spec: { updateStrategy } })['spec'] as Record<string, unknown>)[
      'updateStrategy'
    ]
  assert.deepEqual(strategy(), { type: 'RollingUpdate', rollingUpdate: { partition: 0, maxUnavailable: 1 } })
  assert.deepEqual(strategy({ type: 'RollingUpdate' }), { type: 'RollingUpdate' })
  assert.deepEqual(strategy({ type: 'OnDelete' }), { type: 'OnDelete' })
  const level = (spec: object): unknown =>
    defaulted('flowcontrol.apiserver.k8s.io', 'v1', 'PriorityLevelConfiguration', { spec })['spec']
  assert.deepEqual(level({ type: 'Exempt', exempt: {} }), {
    type: 'Exempt',
    exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 },
  })
  assert.deepEqual(level({ type: 'Limited', limited: { limitResponse: { type: 'Queue', queuing: { queues: 9 } } } }), {
    type: 'Limited',
    limited: {
      nominalConcurrencyShares: 30,
      limitResponse: { type: 'Queue', queuing: { queues: 9, handSize: 8, queueLengthLimit: 50 } },
      lendablePercent: 0,
    },
  })
})
