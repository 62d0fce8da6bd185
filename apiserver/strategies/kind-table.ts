import type { ResourceInfo } from '../../schemas/index.ts'
import { dnsLabelProblems, dnsSubdomainProblems, type NameRule, pathSegmentProblems } from '../validation/names.ts'

/** What differs between kinds and is plain fact (kubernetes pkg/registry/<group>/<kind>/strategy.go and storage). */
export interface KindFacts {
  /** PUT to a name that does not exist creates it. */
  readonly createOnUpdate?: true
  /** PUT without resourceVersion is refused. */
  readonly conditionalUpdateOnly?: true
  readonly tracksGeneration?: true
  readonly returnsDeletedObject?: true
  /** Field labels beyond metadata.name and metadata.namespace, each with the path it reads. */
  readonly fieldLabels?: Readonly<Record<string, string>>
  /** Field labels of another resource that shows the same stored objects: kept beside the own ones, not accepted here. */
  readonly sharedFieldLabels?: Readonly<Record<string, string>>
  readonly nameRule?: NameRule
  /** What happens to dependents when a delete does not say. */
  readonly garbageCollection?: 'orphan' | 'unsupported'
  /** status is kept as the client sent it at creation. */
  readonly keepsStatusOnCreate?: true
  /** Paths that never change after creation: `field is immutable`. */
  readonly immutable?: readonly string[]
  /** /status leaves metadata alone but for these parts of it that it may change; absent: all it may. */
  readonly statusKeeps?: readonly ('labels' | 'ownerReferences')[]
}

const eventLabels = (source: {
  readonly object: string
  readonly controller: string
}): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(
    ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map((field) => [
      `${source.object}.${field}`,
      `involvedObject.${field}`,
    ]),
  ),
  reason: 'reason',
  [source.controller]: 'reportingComponent',
  ...(source.object === 'involvedObject' ? { source: 'source.component' } : {}),
  type: 'type',
})

const coreEventLabels = eventLabels({ object: 'involvedObject', controller: 'reportingComponent' })
const newEventLabels = eventLabels({ object: 'regarding', controller: 'reportingController' })

const definition = { conditionalUpdateOnly: true, tracksGeneration: true } as const
const workload = { tracksGeneration: true } as const
const rbac = { createOnUpdate: true, nameRule: pathSegmentProblems } as const
const storage = { returnsDeletedObject: true } as const
const event = {
  createOnUpdate: true,
  garbageCollection: 'unsupported',
  nameRule: pathSegmentProblems,
} as const

const facts: Readonly<Record<string, KindFacts>> = {
  '/endpoints': { createOnUpdate: true },
  '/events': { ...event, fieldLabels: coreEventLabels, sharedFieldLabels: newEventLabels },
  'events.k8s.io/events': { ...event, fieldLabels: newEventLabels, sharedFieldLabels: coreEventLabels },
  '/limitranges': { createOnUpdate: true },
  '/namespaces': { nameRule: dnsLabelProblems, fieldLabels: { 'status.phase': 'status.phase', name: 'metadata.name' } },
  '/nodes': { keepsStatusOnCreate: true, fieldLabels: { 'spec.unschedulable': 'spec.unschedulable' } },
  '/persistentvolumeclaims': storage,
  '/persistentvolumes': storage,
  '/pods': {
    tracksGeneration: true,
    returnsDeletedObject: true,
    statusKeeps: ['ownerReferences'],
    fieldLabels: {
      'spec.nodeName': 'spec.nodeName',
      'spec.host': 'spec.nodeName',
      'spec.restartPolicy': 'spec.restartPolicy',
      'spec.schedulerName': 'spec.schedulerName',
      'spec.serviceAccountName': 'spec.serviceAccountName',
      'spec.hostNetwork': 'spec.hostNetwork',
      'status.phase': 'status.phase',
      'status.podIP': 'status.podIP',
      'status.podIPs': 'status.podIP',
      'status.nominatedNodeName': 'status.nominatedNodeName',
    },
  },
  '/podtemplates': { tracksGeneration: true, returnsDeletedObject: true },
  '/replicationcontrollers': {
    tracksGeneration: true,
    garbageCollection: 'orphan',
    fieldLabels: { 'status.replicas': 'status.replicas' },
  },
  '/resourcequotas': { returnsDeletedObject: true },
  '/secrets': { fieldLabels: { type: 'type' }, immutable: ['type'] },
  '/serviceaccounts': { returnsDeletedObject: true },
  '/services': {
    createOnUpdate: true,
    returnsDeletedObject: true,
    // Relaxed for good in 1.37 (KEP-5311): a leading digit is fine.
    nameRule: dnsLabelProblems,
    fieldLabels: { 'spec.clusterIP': 'spec.clusterIP', 'spec.type': 'spec.type' },
  },
  'apps/controllerrevisions': { immutable: ['data'] },
  'apps/daemonsets': { ...workload, immutable: ['spec.selector'] },
  'apps/deployments': { ...workload, statusKeeps: ['labels'], immutable: ['spec.selector'] },
  'apps/replicasets': {
    ...workload,
    fieldLabels: { 'status.replicas': 'status.replicas' },
    immutable: ['spec.selector'],
  },
  'apps/statefulsets': workload,
  'autoscaling/horizontalpodautoscalers': {},
  'batch/cronjobs': { ...workload, fieldLabels: { 'status.successful': 'status.successful' } },
  'batch/jobs': {
    ...workload,
    garbageCollection: 'orphan',
    fieldLabels: { 'status.successful': 'status.succeeded' },
    immutable: ['spec.selector', 'spec.completionMode', 'spec.managedBy', 'spec.podFailurePolicy'],
  },
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': definition,
  'admissionregistration.k8s.io/validatingwebhookconfigurations': definition,
  'admissionregistration.k8s.io/validatingadmissionpolicies': definition,
  'admissionregistration.k8s.io/validatingadmissionpolicybindings': definition,
  'admissionregistration.k8s.io/mutatingadmissionpolicies': definition,
  'admissionregistration.k8s.io/mutatingadmissionpolicybindings': definition,
  'apiextensions.k8s.io/customresourcedefinitions': {
    ...definition,
    nameRule: pathSegmentProblems,
    immutable: ['spec.group', 'spec.scope', 'spec.names.plural'],
  },
  'apiregistration.k8s.io/apiservices': { conditionalUpdateOnly: true, nameRule: pathSegmentProblems },
  'certificates.k8s.io/certificatesigningrequests': { fieldLabels: { 'spec.signerName': 'spec.signerName' } },
  'certificates.k8s.io/clustertrustbundles': {
    nameRule: pathSegmentProblems,
    fieldLabels: { 'spec.signerName': 'spec.signerName' },
    immutable: ['spec.signerName'],
  },
  'certificates.k8s.io/podcertificaterequests': {
    fieldLabels: {
      'spec.signerName': 'spec.signerName',
      'spec.podName': 'spec.podName',
      'spec.nodeName': 'spec.nodeName',
    },
    immutable: ['spec'],
  },
  'coordination.k8s.io/leases': { createOnUpdate: true, conditionalUpdateOnly: true },
  'discovery.k8s.io/endpointslices': { tracksGeneration: true, immutable: ['addressType'] },
  'flowcontrol.apiserver.k8s.io/flowschemas': definition,
  'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations': definition,
  'networking.k8s.io/ingresses': { tracksGeneration: true },
  'networking.k8s.io/ingressclasses': { tracksGeneration: true, immutable: ['spec.controller'] },
  'networking.k8s.io/networkpolicies': { tracksGeneration: true },
  'networking.k8s.io/ipaddresses': { nameRule: pathSegmentProblems, immutable: ['spec'] },
  'node.k8s.io/runtimeclasses': { conditionalUpdateOnly: true, immutable: ['handler'] },
  'policy/poddisruptionbudgets': definition,
  'rbac.authorization.k8s.io/roles': rbac,
  'rbac.authorization.k8s.io/rolebindings': rbac,
  'rbac.authorization.k8s.io/clusterroles': rbac,
  'rbac.authorization.k8s.io/clusterrolebindings': rbac,
  'resource.k8s.io/deviceclasses': { tracksGeneration: true, returnsDeletedObject: true },
  'resource.k8s.io/devicetaintrules': { tracksGeneration: true, returnsDeletedObject: true },
  'resource.k8s.io/resourceclaims': { returnsDeletedObject: true, immutable: ['spec'] },
  'resource.k8s.io/resourceclaimtemplates': { returnsDeletedObject: true, immutable: ['spec'] },
  'resource.k8s.io/resourceslices': {
    tracksGeneration: true,
    returnsDeletedObject: true,
    fieldLabels: { 'spec.nodeName': 'spec.nodeName', 'spec.driver': 'spec.driver' },
    immutable: ['spec.driver', 'spec.pool.name', 'spec.nodeName'],
  },
  'scheduling.k8s.io/priorityclasses': { tracksGeneration: true },
  'storage.k8s.io/csidrivers': { ...storage, conditionalUpdateOnly: true, immutable: ['spec.attachRequired'] },
  'storage.k8s.io/csinodes': { ...storage, conditionalUpdateOnly: true },
  'storage.k8s.io/storageclasses': { ...storage, immutable: ['volumeBindingMode'] },
  'storage.k8s.io/volumeattachments': { ...storage, conditionalUpdateOnly: true, immutable: ['spec'] },
  'storage.k8s.io/csistoragecapacities': {
    ...storage,
    conditionalUpdateOnly: true,
    immutable: ['nodeTopology', 'storageClassName'],
  },
  'storage.k8s.io/volumeattributesclasses': { ...storage, immutable: ['driverName', 'parameters'] },
}

const plain: KindFacts = {}

/** "/pods", "apps/deployments". */
export const kindKey = (resource: Pick<ResourceInfo, 'group' | 'plural'>): string =>
  `${resource.group}/${resource.plural}`

export const factsOf = (resource: Pick<ResourceInfo, 'group' | 'plural'>): KindFacts =>
  facts[kindKey(resource)] ?? plain

export const nameRuleOf = (resource: Pick<ResourceInfo, 'group' | 'plural'>): NameRule =>
  factsOf(resource).nameRule ?? dnsSubdomainProblems

export function garbageCollectionOf(
  resource: Pick<ResourceInfo, 'group' | 'plural'>,
): 'background' | 'orphan' | 'unsupported' {
  return factsOf(resource).garbageCollection ?? 'background'
}
