import assert from 'node:assert/strict'
import test from 'node:test'
import {
  decodeJson,
  encodeJson,
  type ObjectValue,
  resourceGroups,
  resources,
  typeDescriptor,
  typeNames,
  typeOf,
  type TypeRef,
} from '../../schemas/index.ts'

const resource = (group: string, plural: string) => {
  const found = resources().find((one) => one.group === group && one.plural === plural)
  assert.ok(found, `${plural}.${group}`)
  return found
}

test('every descriptor resolves, and names and wire numbers are unique within a message', () => {
  for (const name of typeNames()) {
    const type = typeDescriptor(name)
    assert.equal(type.byJsonName.size, type.fields.length, name)
    const numbers = type.fields.filter(({ inlineMessage, protoNumber }) => !inlineMessage && protoNumber > 0)
    assert.equal(new Set(numbers.map(({ protoNumber }) => protoNumber)).size, numbers.length, name)
    for (const field of type.fields) {
      let ref: TypeRef = field.type
      while (ref.is === 'list' || ref.is === 'map') ref = ref.of
      if (ref.is === 'message') assert.ok(ref.descriptor().name)
    }
  }
})

test('every resource has types, a known group and sorted verbs; subresources have types', () => {
  const groups = resourceGroups().map(({ group }) => group)
  for (const one of resources()) {
    assert.ok(groups.includes(one.group), one.group)
    assert.deepEqual([...one.verbs].sort(), one.verbs)
    assert.ok(typeOf(one.storageVersion), one.plural)
    for (const { type } of one.served) assert.ok(type.byJsonName.has('metadata'), one.plural)
    for (const { gvk, name } of one.subresources) assert.ok(typeOf(gvk), `${one.plural}/${name}`)
    assert.equal(one.storagePrefix !== undefined, one.verbs.includes('watch'), one.plural)
  }
})

test('the prefixes that do not follow from the plural are those of the real server', () => {
  const prefixes = [
    ['', 'services', '/registry/services/specs'],
    ['', 'endpoints', '/registry/services/endpoints'],
    ['', 'nodes', '/registry/minions'],
    ['', 'replicationcontrollers', '/registry/controllers'],
    ['networking.k8s.io', 'ingresses', '/registry/ingress'],
    ['apiextensions.k8s.io', 'customresourcedefinitions', '/registry/apiextensions.k8s.io/customresourcedefinitions'],
    ['events.k8s.io', 'events', '/registry/events'],
  ] as const
  for (const [group, plural, prefix] of prefixes) assert.equal(resource(group, plural).storagePrefix, prefix)
})

test('kinds of the machinery are found under any group version, unknown ones nowhere', () => {
  const status = typeDescriptor('io.k8s.apimachinery.pkg.apis.meta.v1.Status')
  assert.equal(typeOf({ group: '', version: 'v1', kind: 'Status' }), status)
  assert.equal(typeOf({ group: 'apps', version: 'v1', kind: 'Status' }), status)
  assert.equal(typeOf({ group: 'apps', version: 'v1', kind: 'toString' }), undefined)
  assert.equal(typeOf({ group: 'example.com', version: 'v1', kind: 'Status' }), undefined)
})

function convert(group: string, plural: string, version: string, text: string, way: 'toStorage' | 'fromStorage') {
  const one = resource(group, plural)
  const served = one.served.find(({ gvk }) => gvk.version === version)
  const stored = typeOf(one.storageVersion)
  assert.ok(served && stored)
  const [from, to] = way === 'toStorage' ? [served.type, stored] : [stored, served.type]
  const converted: ObjectValue = served[way](decodeJson(Buffer.from(text), from).object)
  return JSON.parse(Buffer.from(encodeJson(converted, to)).toString()) as Record<string, Record<string, unknown>>
}

test('an event of events.k8s.io is stored as the core event', () => {
  const text =
    '{"apiVersion":"events.k8s.io/v1","kind":"Event","note":"n","regarding":{"name":"p"},"reportingController":"c",' +
    '"deprecatedCount":2,"reason":"r"}'
  const core: Record<string, unknown> = convert('events.k8s.io', 'events', 'v1', text, 'toStorage')
  assert.equal(core['apiVersion'], 'v1')
  assert.deepEqual(
    [core['message'], core['involvedObject'], core['reportingComponent'], core['count'], core['reason']],
    ['n', { name: 'p' }, 'c', 2, 'r'],
  )
  const back: Record<string, unknown> = convert('events.k8s.io', 'events', 'v1', JSON.stringify(core), 'fromStorage')
  assert.deepEqual([back['apiVersion'], back['note'], back['deprecatedCount']], ['events.k8s.io/v1', 'n', 2])
})

test('an autoscaler keeps through autoscaling/v1 what only v2 can say', () => {
  const v2 = {
    kind: 'HorizontalPodAutoscaler',
    apiVersion: 'autoscaling/v2',
    metadata: { name: 'h', annotations: { mine: 'x' } },
    spec: {
      scaleTargetRef: { kind: 'Deployment', name: 'd' },
      maxReplicas: 5,
      metrics: [
        { type: 'Pods', pods: { metric: { name: 'q' }, target: { type: 'AverageValue', averageValue: '10' } } },
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
      ],
      behavior: { scaleDown: { selectPolicy: 'Min', stabilizationWindowSeconds: 60 } },
    },
    status: {
      desiredReplicas: 0,
      currentMetrics: [{ type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 40 } } }],
    },
  }
  const v1 = convert('autoscaling', 'horizontalpodautoscalers', 'v1', JSON.stringify(v2), 'fromStorage')
  assert.equal(v1['spec']?.['targetCPUUtilizationPercentage'], 80)
  assert.equal(v1['status']?.['currentCPUUtilizationPercentage'], 40)
  const annotations = v1['metadata']?.['annotations'] as Record<string, string>
  assert.equal(
    annotations['autoscaling.alpha.kubernetes.io/metrics'],
    '[{"type":"Pods","pods":{"metricName":"q","targetAverageValue":"10"}}]',
  )
  const back = convert('autoscaling', 'horizontalpodautoscalers', 'v1', JSON.stringify(v1), 'toStorage')
  assert.deepEqual(back['metadata'], v2.metadata)
  assert.deepEqual(back['spec']?.['metrics'], v2.spec.metrics)
  assert.deepEqual(back['spec']?.['behavior'], v2.spec.behavior)
  // The flat form of v1 has no place for a missing amount: Go writes zero there.
  assert.deepEqual(back['status']?.['currentMetrics'], [
    { type: 'Resource', resource: { name: 'cpu', current: { averageValue: '0', averageUtilization: 40 } } },
  ])
})

test('annotations of an autoscaler that are not JSON are dropped, not an error', () => {
  const text =
    '{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":"{oops"}},"spec":{"maxReplicas":1}}'
  const v2 = convert('autoscaling', 'horizontalpodautoscalers', 'v1', text, 'toStorage')
  assert.deepEqual([v2['metadata'], v2['spec']?.['metrics']], [{}, undefined])
})
