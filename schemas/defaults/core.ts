import { isObject } from '../patch/json-value.ts'
import type { ObjectValue } from '../types.ts'
import { type DefaultRule, ensure, fresh, isEmpty, objectAt, objectsAt, setDefault } from './rules.ts'

/** core/v1 defaults with a condition (kubernetes pkg/apis/core/v1/defaults.go). */
export const coreRules: Readonly<Record<string, DefaultRule>> = {
  'io.k8s.api.core.v1.Container': defaultPullPolicy,
  'io.k8s.api.core.v1.EphemeralContainer': defaultPullPolicy,
  'io.k8s.api.core.v1.Pod': defaultPod,
  'io.k8s.api.core.v1.Volume': defaultVolume,
  'io.k8s.api.core.v1.ServiceSpec': defaultService,
  'io.k8s.api.core.v1.ServicePort': defaultServicePort,
  'io.k8s.api.core.v1.ReplicationController': defaultReplicationController,
  'io.k8s.api.core.v1.LimitRangeItem': defaultLimitRangeItem,
  'io.k8s.api.core.v1.NodeStatus': (status) => {
    if (status['capacity'] !== undefined) setDefault(status, 'allocatable', status['capacity'])
  },
}

/** No tag or "latest" means the image may change under its name. A digest never does. */
function defaultPullPolicy(container: ObjectValue): void {
  if (!isEmpty(container['imagePullPolicy'])) return
  const image = typeof container['image'] === 'string' ? container['image'] : ''
  const hasDigest = image.includes('@')
  const lastPart = image.slice(image.lastIndexOf('/') + 1)
  const tag = lastPart.includes(':') ? lastPart.slice(lastPart.indexOf(':') + 1) : 'latest'
  container['imagePullPolicy'] = !hasDigest && tag === 'latest' ? 'Always' : 'IfNotPresent'
}

function defaultPod(pod: ObjectValue): void {
  const spec = ensure(pod, 'spec')
  setDefault(spec, 'enableServiceLinks', true)
  const containers = [...objectsAt(spec, 'containers'), ...objectsAt(spec, 'initContainers')]
  for (const container of containers) {
    requestsFromLimits(container)
    if (spec['hostNetwork'] === true) {
      for (const port of objectsAt(container, 'ports')) {
        if (port['hostPort'] === undefined || port['hostPort'] === 0) port['hostPort'] = port['containerPort']
      }
    }
  }
  requestsFromLimits(spec)
}

/** A limit without a request is the request too. */
function requestsFromLimits(owner: ObjectValue): void {
  const limits = objectAt(owner, 'resources', 'limits')
  if (limits === undefined) return
  const resources = ensure(owner, 'resources')
  const requests = ensure(resources, 'requests')
  for (const name of Object.keys(limits)) setDefault(requests, name, limits[name])
}

function defaultVolume(volume: ObjectValue): void {
  const hasSource = Object.keys(volume).some((field) => field !== 'name')
  if (!hasSource) volume['emptyDir'] = fresh({})
}

function defaultService(spec: ObjectValue): void {
  const type = spec['type']
  if (spec['sessionAffinity'] === 'ClientIP') {
    const clientIp = ensure(ensure(spec, 'sessionAffinityConfig'), 'clientIP')
    setDefault(clientIp, 'timeoutSeconds', 10_800)
  } else if (spec['sessionAffinity'] === 'None') {
    delete spec['sessionAffinityConfig']
  }
  const external = type === 'NodePort' || type === 'LoadBalancer'
  if (external && isEmpty(spec['externalTrafficPolicy'])) spec['externalTrafficPolicy'] = 'Cluster'
  if ((external || type === 'ClusterIP') && isEmpty(spec['internalTrafficPolicy'])) {
    spec['internalTrafficPolicy'] = 'Cluster'
  }
  if (type === 'LoadBalancer') setDefault(spec, 'allocateLoadBalancerNodePorts', true)
}

function defaultServicePort(port: ObjectValue): void {
  const target = port['targetPort']
  if ((target === undefined || target === 0 || target === '') && port['port'] !== undefined) {
    port['targetPort'] = port['port']
  }
}

function defaultReplicationController(controller: ObjectValue): void {
  const labels = objectAt(controller, 'spec', 'template', 'metadata', 'labels')
  if (labels === undefined) return
  const spec = ensure(controller, 'spec')
  if (isEmpty(spec['selector'])) spec['selector'] = fresh(labels)
  const metadata = ensure(controller, 'metadata')
  if (isEmpty(metadata['labels'])) metadata['labels'] = fresh(labels)
}

/** For containers: the default limit is the maximum, the default request that limit, else the minimum. */
function defaultLimitRangeItem(item: ObjectValue): void {
  if (item['type'] !== 'Container') return
  const merge = (into: string, from: unknown): void => {
    if (!isObject(from) || Object.keys(from).length === 0) return
    const target = ensure(item, into)
    for (const name of Object.keys(from)) setDefault(target, name, from[name])
  }
  merge('default', item['max'])
  merge('defaultRequest', item['default'])
  merge('defaultRequest', item['min'])
}
