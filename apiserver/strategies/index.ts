import type { ResourceInfo } from '../../schemas/index.ts'
import type { Strategy } from '../types.ts'
import {
  apiServiceRules,
  certificateSigningRequestRules,
  customResourceDefinitionRules,
  deviceTaintRuleRules,
  eventRules,
  ipAddressRules,
  leaseRules,
  nodeRules,
  resourceSliceRules,
} from './cluster-kinds.ts'
import { configMapRules, secretRules } from './config-data.ts'
import { genericStrategy } from './generic-strategy.ts'
import { cronJobRules, jobRules } from './job.ts'
import type { KindRules } from './kind-rules.ts'
import { kindKey } from './kind-table.ts'
import { namespaceRules } from './namespace.ts'
import { ingressRules, networkPolicyRules } from './networking.ts'
import { podRules } from './pod.ts'
import { endpointsRules, limitRangeRules, resourceQuotaRules } from './namespace-kinds.ts'
import { clusterRoleBindingRules, clusterRoleRules, roleBindingRules, roleKindRules } from './rbac.ts'
import { serviceRules } from './service.ts'
import {
  persistentVolumeClaimRules,
  persistentVolumeRules,
  priorityClassRules,
  storageClassRules,
} from './storage-kinds.ts'
import {
  daemonSetRules,
  deploymentRules,
  horizontalPodAutoscalerRules,
  podDisruptionBudgetRules,
  podTemplateRules,
  replicaSetRules,
  replicationControllerRules,
  statefulSetRules,
} from './workload.ts'

const rulesByKind: Readonly<Record<string, KindRules>> = {
  '/configmaps': configMapRules,
  '/endpoints': endpointsRules,
  '/events': eventRules,
  '/limitranges': limitRangeRules,
  '/namespaces': namespaceRules,
  '/nodes': nodeRules,
  '/persistentvolumeclaims': persistentVolumeClaimRules,
  '/persistentvolumes': persistentVolumeRules,
  '/pods': podRules,
  '/podtemplates': podTemplateRules,
  '/replicationcontrollers': replicationControllerRules,
  '/resourcequotas': resourceQuotaRules,
  '/secrets': secretRules,
  '/services': serviceRules,
  'apiextensions.k8s.io/customresourcedefinitions': customResourceDefinitionRules,
  'apiregistration.k8s.io/apiservices': apiServiceRules,
  'apps/daemonsets': daemonSetRules,
  'apps/deployments': deploymentRules,
  'apps/replicasets': replicaSetRules,
  'apps/statefulsets': statefulSetRules,
  'autoscaling/horizontalpodautoscalers': horizontalPodAutoscalerRules,
  'batch/cronjobs': cronJobRules,
  'batch/jobs': jobRules,
  'certificates.k8s.io/certificatesigningrequests': certificateSigningRequestRules,
  'coordination.k8s.io/leases': leaseRules,
  'events.k8s.io/events': eventRules,
  'networking.k8s.io/ingresses': ingressRules,
  'networking.k8s.io/ipaddresses': ipAddressRules,
  'networking.k8s.io/networkpolicies': networkPolicyRules,
  'policy/poddisruptionbudgets': podDisruptionBudgetRules,
  'rbac.authorization.k8s.io/clusterrolebindings': clusterRoleBindingRules,
  'rbac.authorization.k8s.io/clusterroles': clusterRoleRules,
  'rbac.authorization.k8s.io/rolebindings': roleBindingRules,
  'rbac.authorization.k8s.io/roles': roleKindRules,
  'resource.k8s.io/devicetaintrules': deviceTaintRuleRules,
  'resource.k8s.io/resourceslices': resourceSliceRules,
  'scheduling.k8s.io/priorityclasses': priorityClassRules,
  'storage.k8s.io/storageclasses': storageClassRules,
}

/** How objects of this resource are made, changed and checked. Stateless: one per resource is enough. */
export function strategyFor(resource: ResourceInfo): Strategy {
  return genericStrategy(resource, rulesByKind[kindKey(resource)] ?? {})
}

export { factsOf, garbageCollectionOf, kindKey, nameRuleOf } from './kind-table.ts'
export type { KindFacts } from './kind-table.ts'
export type { KindRules, SubresourceRules } from './kind-rules.ts'
