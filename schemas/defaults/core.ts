import { isObject } from '../patch/json-value.ts'
import type { ObjectValue } from '../types.ts'
import { imageTag } from './image-name.ts'
import { defaultPodResources, requestsFromLimits } from './pod-resources.ts'
import { type DefaultRule, ensure, fresh, isEmpty, objectAt, objectsAt, setDefault } from './rules.ts'

/** core/v1 defaults with a condition (kubernetes pkg/apis/core/v1/defaults.go). */
export const coreRules: Readonly<Record<string, DefaultRule>> = {
  'io.k8s.api.core.v1.Container': defaultPullPolicy,
  'io.k8s.api.core.v1.EphemeralContainer': defaultPullPolicy,
  'io.k8s.api.core.v1.Pod': defaultPod,
  'io.k8s.api.core.v1.PodSpec': mirrorServiceAccount,
  'io.k8s.api.core.v1.Volume': defaultVolume,
  'io.k8s.api.core.v1.Service': defaultIngressMode,
  'io.k8s.api.core.v1.ServiceSpec': defaultService,
  'io.k8s.api.core.v1.ServicePort': defaultServicePort,
  'io.k8s.api.core.v1.ReplicationController': defaultReplicationController,
  'io.k8s.api.core.v1.LimitRangeItem': defaultLimitRangeItem,
  'io.k8s.api.core.v1.NodeStatus': (status) => {
    if (status['capacity'] !== undefined) setDefault(status, 'allocatable', status['capacity'])
  },
}

/** "latest", said or meant, may change under its name; anything else is taken not to. */
const pullPolicyOf = (image: unknown): string =>
  typeof image === 'string' && imageTag(image) === 'latest' ? 'Always' : 'IfNotPresent'

function defaultPullPolicy(container: ObjectValue): void {
  if (isEmpty(container['imagePullPolicy'])) container['imagePullPolicy'] = pullPolicyOf(container['image'])
}

/** One field under two names; the older one counts only where the other is empty. */
function mirrorServiceAccount(spec: ObjectValue): void {
  const name = isEmpty(spec['serviceAccountName']) ? spec['serviceAccount'] : spec['serviceAccountName']
  if (isEmpty(name)) return
  spec['serviceAccountName'] = name
  spec['serviceAccount'] = name
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
  defaultPodResources(spec)
}

function defaultVolume(volume: ObjectValue): void {
  const hasSource = Object.keys(volume).some((field) => field !== 'name')
  if (!hasSource) volume['emptyDir'] = fresh({})
  const image = objectAt(volume, 'image')
  if (image !== undefined && isEmpty(image['pullPolicy'])) image['pullPolicy'] = pullPolicyOf(image['reference'])
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
  const hasAddresses = Array.isArray(spec['externalIPs']) && spec['externalIPs'].length > 0
  if ((external || (type === 'ClusterIP' && hasAddresses)) && isEmpty(spec['externalTrafficPolicy']))
    spec['externalTrafficPolicy'] = 'Cluster'
  if ((external || type === 'ClusterIP') && isEmpty(spec['internalTrafficPolicy'])) {
    spec['internalTrafficPolicy'] = 'Cluster'
  }
  if (type === 'LoadBalancer') setDefault(spec, 'allocateLoadBalancerNodePorts', true)
}

/** Addresses of a load balancer lead to it, not through it, unless said otherwise (KEP-1860). */
function defaultIngressMode(service: ObjectValue): void {
  if (objectAt(service, 'spec')?.['type'] !== 'LoadBalancer') return
  for (const ingress of objectsAt(objectAt(service, 'status', 'loadBalancer'), 'ingress')) {
    if (!isEmpty(ingress['ip'])) setDefault(ingress, 'ipMode', 'VIP')
  }
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
