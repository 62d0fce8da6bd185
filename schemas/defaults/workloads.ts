import type { ObjectValue } from '../types.ts'
import { type DefaultRule, ensure, fresh, isEmpty, objectsAt, setDefault } from './rules.ts'

/** Conditional defaults of apps, batch, autoscaling and the smaller groups. */
export const workloadRules: Readonly<Record<string, DefaultRule>> = {
  'io.k8s.api.apps.v1.DeploymentStrategy': rollingUpdateByType,
  'io.k8s.api.apps.v1.DaemonSetUpdateStrategy': rollingUpdateByType,
  'io.k8s.api.apps.v1.StatefulSetUpdateStrategy': defaultStatefulSetStrategy,
  'io.k8s.api.apps.v1.StatefulSetSpec': (spec) => {
    for (const claim of objectsAt(spec, 'volumeClaimTemplates')) {
      setDefault(claim, 'apiVersion', 'v1')
      setDefault(claim, 'kind', 'PersistentVolumeClaim')
    }
  },
  'io.k8s.api.batch.v1.Job': defaultJob,
  'io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec': (spec) => {
    if (objectsAt(spec, 'metrics').length > 0) return
    const cpu = { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } }
    spec['metrics'] = fresh([cpu])
  },
  'io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior': defaultScalingBehavior,
  'io.k8s.api.networking.v1.NetworkPolicySpec': (spec) => {
    if (Array.isArray(spec['policyTypes']) && spec['policyTypes'].length > 0) return
    const egress = Array.isArray(spec['egress']) && spec['egress'].length > 0
    spec['policyTypes'] = egress ? ['Ingress', 'Egress'] : ['Ingress']
  },
  'io.k8s.api.rbac.v1.Subject': (subject) => {
    const named = subject['kind'] === 'User' || subject['kind'] === 'Group'
    if (named && isEmpty(subject['apiGroup'])) subject['apiGroup'] = 'rbac.authorization.k8s.io'
  },
  'io.k8s.api.resource.v1.ExactDeviceRequest': countOfExact,
  'io.k8s.api.resource.v1.DeviceSubRequest': countOfExact,
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec': (spec) => {
    const names = ensure(spec, 'names')
    const kind = names['kind']
    if (typeof kind !== 'string' || kind === '') return
    if (isEmpty(names['singular'])) names['singular'] = kind.toLowerCase()
    if (isEmpty(names['listKind'])) names['listKind'] = `${kind}List`
  },
}

/** The numbers of a rolling update are there exactly when it is one; what they are is in defaults.json. */
function rollingUpdateByType(strategy: ObjectValue): void {
  if (strategy['type'] === 'RollingUpdate') ensure(strategy, 'rollingUpdate')
}

/** Unlike the other workloads': a type that is given does not bring the numbers with it. */
function defaultStatefulSetStrategy(strategy: ObjectValue): void {
  if (!isEmpty(strategy['type'])) return
  strategy['type'] = 'RollingUpdate'
  ensure(strategy, 'rollingUpdate')
}

function defaultJob(job: ObjectValue): void {
  const spec = ensure(job, 'spec')
  if (spec['completions'] === undefined && spec['parallelism'] === undefined) spec['completions'] = 1
  setDefault(spec, 'parallelism', 1)
  setDefault(spec, 'backoffLimit', spec['backoffLimitPerIndex'] === undefined ? 6 : 2_147_483_647)
  setDefault(spec, 'completionMode', 'NonIndexed')
  setDefault(spec, 'suspend', false)
  setDefault(spec, 'manualSelector', false)
  setDefault(spec, 'podReplacementPolicy', spec['podFailurePolicy'] === undefined ? 'TerminatingOrFailed' : 'Failed')
}

/** kubernetes pkg/apis/autoscaling/v2/defaults.go: only a behavior that is given is completed. */
function defaultScalingBehavior(behavior: ObjectValue): void {
  const up = ensure(behavior, 'scaleUp')
  setDefault(up, 'stabilizationWindowSeconds', 0)
  setDefault(up, 'selectPolicy', 'Max')
  setDefault(up, 'policies', [
    { type: 'Pods', value: 4, periodSeconds: 15 },
    { type: 'Percent', value: 100, periodSeconds: 15 },
  ])
  const down = ensure(behavior, 'scaleDown')
  setDefault(down, 'selectPolicy', 'Max')
  setDefault(down, 'policies', [{ type: 'Percent', value: 100, periodSeconds: 15 }])
}

function countOfExact(request: ObjectValue): void {
  if (request['allocationMode'] !== 'ExactCount') return
  if (request['count'] === undefined || request['count'] === 0) request['count'] = 1
}
