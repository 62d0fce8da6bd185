/**
 * The smallest object of every built-in kind that a server accepts, by "<group>/<plural>". Shared by tests in process
 * and over HTTP. Namespaced ones leave the namespace to the request.
 */
export interface Manifest {
  /** Of the path: "apps/v1". */
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly [field: string]: unknown
}

const labels = { app: 'tiny' }
const podSpec = { containers: [{ name: 'main', image: 'example.com/tiny:1' }] }
const template = { metadata: { labels }, spec: podSpec }
const selector = { matchLabels: labels }
const onceTemplate = { spec: { ...podSpec, restartPolicy: 'Never' } }
const webhook = {
  name: 'hook.example.com',
  clientConfig: { url: 'https://127.0.0.1:1/hook' },
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
}
const matchConstraints = {
  resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
}
const rbac = 'rbac.authorization.k8s.io'
const admission = 'admissionregistration.k8s.io/v1'

const of = (
  apiVersion: string,
  kind: string,
  fields: Readonly<Record<string, unknown>> = {},
  name = 'tiny',
): Manifest => ({ apiVersion, kind, metadata: { name }, ...fields })

export const manifests: Readonly<Record<string, Manifest>> = {
  '/configmaps': of('v1', 'ConfigMap', { data: { key: 'value' } }),
  '/endpoints': of('v1', 'Endpoints', { subsets: [{ addresses: [{ ip: '192.0.2.1' }], ports: [{ port: 80 }] }] }),
  '/events': of('v1', 'Event', {
    involvedObject: { kind: 'Pod', name: 'tiny', namespace: 'manifests', apiVersion: 'v1' },
    reason: 'Tested',
    message: 'a test looked at it',
    type: 'Normal',
  }),
  '/limitranges': of('v1', 'LimitRange', { spec: { limits: [{ type: 'Container', default: { cpu: '1' } }] } }),
  '/namespaces': of('v1', 'Namespace', {}, 'tiny-namespace'),
  '/nodes': of('v1', 'Node'),
  '/persistentvolumeclaims': of('v1', 'PersistentVolumeClaim', {
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }),
  '/persistentvolumes': of('v1', 'PersistentVolume', {
    spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: '/tmp/tiny' } },
  }),
  '/pods': of('v1', 'Pod', { spec: podSpec }),
  '/podtemplates': of('v1', 'PodTemplate', { template }),
  '/replicationcontrollers': of('v1', 'ReplicationController', { spec: { selector: labels, template } }),
  '/resourcequotas': of('v1', 'ResourceQuota', { spec: { hard: { pods: '10' } } }),
  '/secrets': of('v1', 'Secret', { stringData: { password: 'hush' } }),
  '/serviceaccounts': of('v1', 'ServiceAccount'),
  '/services': of('v1', 'Service', { spec: { selector: labels, ports: [{ port: 80 }] } }),
  'admissionregistration.k8s.io/mutatingadmissionpolicies': of(admission, 'MutatingAdmissionPolicy', {
    spec: {
      matchConstraints,
      reinvocationPolicy: 'Never',
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{}' } }],
    },
  }),
  'admissionregistration.k8s.io/mutatingadmissionpolicybindings': of(admission, 'MutatingAdmissionPolicyBinding', {
    spec: { policyName: 'tiny' },
  }),
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': of(admission, 'MutatingWebhookConfiguration', {
    webhooks: [webhook],
  }),
  'admissionregistration.k8s.io/validatingadmissionpolicies': of(admission, 'ValidatingAdmissionPolicy', {
    spec: { matchConstraints, validations: [{ expression: 'true' }] },
  }),
  'admissionregistration.k8s.io/validatingadmissionpolicybindings': of(admission, 'ValidatingAdmissionPolicyBinding', {
    spec: { policyName: 'tiny', validationActions: ['Deny'] },
  }),
  'admissionregistration.k8s.io/validatingwebhookconfigurations': of(admission, 'ValidatingWebhookConfiguration', {
    webhooks: [webhook],
  }),
  'apiextensions.k8s.io/customresourcedefinitions': of(
    'apiextensions.k8s.io/v1',
    'CustomResourceDefinition',
    {
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'boats', singular: 'boat', kind: 'Boat', listKind: 'BoatList' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    },
    'boats.example.com',
  ),
  'apiregistration.k8s.io/apiservices': of(
    'apiregistration.k8s.io/v1',
    'APIService',
    {
      spec: {
        group: 'tiny.example.com',
        version: 'v1',
        groupPriorityMinimum: 100,
        versionPriority: 10,
        insecureSkipTLSVerify: true,
        service: { namespace: 'default', name: 'tiny' },
      },
    },
    'v1.tiny.example.com',
  ),
  'apps/controllerrevisions': of('apps/v1', 'ControllerRevision', { data: { any: 'thing' }, revision: 1 }),
  'apps/daemonsets': of('apps/v1', 'DaemonSet', { spec: { selector, template } }),
  'apps/deployments': of('apps/v1', 'Deployment', { spec: { selector, template } }),
  'apps/replicasets': of('apps/v1', 'ReplicaSet', { spec: { selector, template } }),
  'apps/statefulsets': of('apps/v1', 'StatefulSet', { spec: { selector, template, serviceName: 'tiny' } }),
  'autoscaling/horizontalpodautoscalers': of('autoscaling/v2', 'HorizontalPodAutoscaler', {
    spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'tiny' }, maxReplicas: 2 },
  }),
  'batch/cronjobs': of('batch/v1', 'CronJob', {
    spec: { schedule: '*/5 * * * *', jobTemplate: { spec: { template: onceTemplate } } },
  }),
  'batch/jobs': of('batch/v1', 'Job', { spec: { template: onceTemplate } }),
  'certificates.k8s.io/certificatesigningrequests': of('certificates.k8s.io/v1', 'CertificateSigningRequest', {
    spec: { request: 'dGlueQ==', signerName: 'example.com/tiny', usages: ['client auth'] },
  }),
  'certificates.k8s.io/clustertrustbundles': of('certificates.k8s.io/v1', 'ClusterTrustBundle', {
    spec: { trustBundle: '-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n' },
  }),
  'certificates.k8s.io/podcertificaterequests': of('certificates.k8s.io/v1', 'PodCertificateRequest', {
    spec: {
      signerName: 'example.com/tiny',
      podName: 'tiny',
      podUID: '11111111-1111-4111-8111-111111111111',
      serviceAccountName: 'default',
      serviceAccountUID: '22222222-2222-4222-8222-222222222222',
      nodeName: 'tiny',
      nodeUID: '33333333-3333-4333-8333-333333333333',
      stubPKCS10Request: 'dGlueQ==',
    },
  }),
  'coordination.k8s.io/leases': of('coordination.k8s.io/v1', 'Lease', { spec: { holderIdentity: 'tiny' } }),
  'discovery.k8s.io/endpointslices': of('discovery.k8s.io/v1', 'EndpointSlice', {
    addressType: 'IPv4',
    endpoints: [{ addresses: ['192.0.2.1'] }],
  }),
  'events.k8s.io/events': of(
    'events.k8s.io/v1',
    'Event',
    {
      eventTime: '2026-01-02T03:04:05.000006Z',
      reportingController: 'example.com/tester',
      reportingInstance: 'tester-1',
      action: 'Testing',
      reason: 'Tested',
      type: 'Normal',
      regarding: { kind: 'Pod', name: 'tiny', namespace: 'manifests', apiVersion: 'v1' },
    },
    'tiny-new',
  ),
  'flowcontrol.apiserver.k8s.io/flowschemas': of('flowcontrol.apiserver.k8s.io/v1', 'FlowSchema', {
    spec: { matchingPrecedence: 9000, priorityLevelConfiguration: { name: 'tiny' } },
  }),
  'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations': of(
    'flowcontrol.apiserver.k8s.io/v1',
    'PriorityLevelConfiguration',
    { spec: { type: 'Limited', limited: { nominalConcurrencyShares: 5, limitResponse: { type: 'Reject' } } } },
  ),
  'networking.k8s.io/ingressclasses': of('networking.k8s.io/v1', 'IngressClass', {
    spec: { controller: 'example.com/tiny' },
  }),
  'networking.k8s.io/ingresses': of('networking.k8s.io/v1', 'Ingress', {
    spec: { defaultBackend: { service: { name: 'tiny', port: { number: 80 } } } },
  }),
  'networking.k8s.io/ipaddresses': of(
    'networking.k8s.io/v1',
    'IPAddress',
    { spec: { parentRef: { resource: 'services', namespace: 'default', name: 'tiny' } } },
    '192.0.2.99',
  ),
  'networking.k8s.io/networkpolicies': of('networking.k8s.io/v1', 'NetworkPolicy', { spec: { podSelector: {} } }),
  'networking.k8s.io/servicecidrs': of('networking.k8s.io/v1', 'ServiceCIDR', { spec: { cidrs: ['192.0.2.0/24'] } }),
  'node.k8s.io/runtimeclasses': of('node.k8s.io/v1', 'RuntimeClass', { handler: 'tiny' }),
  'policy/poddisruptionbudgets': of('policy/v1', 'PodDisruptionBudget', { spec: { minAvailable: 1, selector } }),
  'rbac.authorization.k8s.io/clusterrolebindings': of(`${rbac}/v1`, 'ClusterRoleBinding', {
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'tiny' },
    subjects: [{ apiGroup: rbac, kind: 'User', name: 'tiny' }],
  }),
  'rbac.authorization.k8s.io/clusterroles': of(`${rbac}/v1`, 'ClusterRole', {
    rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
  }),
  'rbac.authorization.k8s.io/rolebindings': of(`${rbac}/v1`, 'RoleBinding', {
    roleRef: { apiGroup: rbac, kind: 'Role', name: 'tiny' },
    subjects: [{ kind: 'ServiceAccount', name: 'default', namespace: 'manifests' }],
  }),
  'rbac.authorization.k8s.io/roles': of(`${rbac}/v1`, 'Role', {
    rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
  }),
  'resource.k8s.io/deviceclasses': of('resource.k8s.io/v1', 'DeviceClass', {
    spec: { selectors: [{ cel: { expression: 'true' } }] },
  }),
  'resource.k8s.io/devicetaintrules': of('resource.k8s.io/v1', 'DeviceTaintRule', {
    spec: { deviceSelector: { driver: 'example.com' }, taint: { key: 'example.com/tiny', effect: 'NoSchedule' } },
  }),
  'resource.k8s.io/resourceclaims': of('resource.k8s.io/v1', 'ResourceClaim', {
    spec: { devices: { requests: [{ name: 'one', exactly: { deviceClassName: 'tiny' } }] } },
  }),
  'resource.k8s.io/resourceclaimtemplates': of('resource.k8s.io/v1', 'ResourceClaimTemplate', {
    spec: { spec: { devices: { requests: [{ name: 'one', exactly: { deviceClassName: 'tiny' } }] } } },
  }),
  'resource.k8s.io/resourceslices': of('resource.k8s.io/v1', 'ResourceSlice', {
    spec: {
      driver: 'example.com',
      pool: { name: 'tiny', generation: 1, resourceSliceCount: 1 },
      nodeName: 'tiny',
      devices: [{ name: 'one' }],
    },
  }),
  'scheduling.k8s.io/priorityclasses': of('scheduling.k8s.io/v1', 'PriorityClass', { value: 10 }),
  'storage.k8s.io/csidrivers': of('storage.k8s.io/v1', 'CSIDriver', { spec: {} }),
  'storage.k8s.io/csinodes': of('storage.k8s.io/v1', 'CSINode', { spec: { drivers: [] } }),
  'storage.k8s.io/csistoragecapacities': of('storage.k8s.io/v1', 'CSIStorageCapacity', { storageClassName: 'tiny' }),
  'storage.k8s.io/storageclasses': of('storage.k8s.io/v1', 'StorageClass', { provisioner: 'example.com/tiny' }),
  'storage.k8s.io/volumeattachments': of('storage.k8s.io/v1', 'VolumeAttachment', {
    spec: { attacher: 'example.com', nodeName: 'tiny', source: { persistentVolumeName: 'tiny' } },
  }),
  'storage.k8s.io/volumeattributesclasses': of('storage.k8s.io/v1', 'VolumeAttributesClass', {
    driverName: 'example.com',
    parameters: { speed: 'high' },
  }),
  'storagemigration.k8s.io/storageversionmigrations': of('storagemigration.k8s.io/v1', 'StorageVersionMigration', {
    spec: { resource: { group: '', resource: 'configmaps' } },
  }),
}

/**
 * Another object of the same kind. Most kinds only need another name; some have a name that says what is in the object,
 * and namespaced references follow the namespace the object is going to be in.
 */
export function another(manifest: Manifest, suffix: string, namespace = 'manifests'): Manifest {
  const text = JSON.stringify(manifest).replaceAll(
    '"namespace":"manifests"',
    `"namespace":${JSON.stringify(namespace)}`,
  )
  const copy = JSON.parse(text) as Manifest
  const spec = copy['spec'] as Readonly<Record<string, unknown>>
  const named = (name: string, fields: Readonly<Record<string, unknown>> = {}): Manifest => ({
    ...copy,
    metadata: { ...copy.metadata, name },
    ...fields,
  })
  switch (manifest.kind) {
    case 'CustomResourceDefinition': {
      const plural = `boats${suffix}`
      const names = { plural, singular: `boat${suffix}`, kind: `Boat${suffix}`, listKind: `Boat${suffix}List` }
      return named(`${plural}.example.com`, { spec: { ...spec, names } })
    }
    case 'APIService':
      return named(`v1.tiny${suffix}.example.com`, { spec: { ...spec, group: `tiny${suffix}.example.com` } })
    case 'IPAddress':
      return named(`2001:db8::${Buffer.from(suffix).toString('hex').slice(-4)}`)
    default:
      return named(`${manifest.metadata.name}-${suffix}`)
  }
}

const time = '2026-01-02T03:04:05Z'
const condition = { type: 'Tested', status: 'True', reason: 'Tested', message: 'seen', lastTransitionTime: time }
const replicas = { replicas: 1, fullyLabeledReplicas: 1, readyReplicas: 1, availableReplicas: 1, observedGeneration: 1 }

/** What a controller could report of the object above, for every kind with a `/status`. */
export const statuses: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  '/namespaces': { phase: 'Active', conditions: [condition] },
  '/nodes': { capacity: { cpu: '4' }, nodeInfo: { kubeletVersion: 'v1.37.0' } },
  '/persistentvolumeclaims': { phase: 'Pending', conditions: [condition] },
  '/persistentvolumes': { phase: 'Available', message: 'seen' },
  '/pods': { phase: 'Running', podIP: '192.0.2.7', podIPs: [{ ip: '192.0.2.7' }] },
  '/replicationcontrollers': replicas,
  '/resourcequotas': { hard: { pods: '10' }, used: { pods: '1' } },
  '/services': { conditions: [condition] },
  'admissionregistration.k8s.io/validatingadmissionpolicies': { observedGeneration: 1, conditions: [condition] },
  'apiextensions.k8s.io/customresourcedefinitions': {
    conditions: [{ type: 'Established', status: 'True', reason: 'Tested', message: 'seen', lastTransitionTime: time }],
    storedVersions: ['v1'],
  },
  'apiregistration.k8s.io/apiservices': { conditions: [{ ...condition, type: 'Available' }] },
  'apps/daemonsets': { desiredNumberScheduled: 1, currentNumberScheduled: 1, numberReady: 1, observedGeneration: 1 },
  'apps/deployments': { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 },
  'apps/replicasets': replicas,
  'apps/statefulsets': { replicas: 1, readyReplicas: 1, currentReplicas: 1, currentRevision: 'tiny-1' },
  'autoscaling/horizontalpodautoscalers': { observedGeneration: 1, currentReplicas: 1, desiredReplicas: 2 },
  'batch/cronjobs': { lastScheduleTime: time },
  'batch/jobs': { active: 1, startTime: time },
  'certificates.k8s.io/certificatesigningrequests': {
    conditions: [{ type: 'Failed', status: 'True', reason: 'Tested', message: 'seen' }],
  },
  'certificates.k8s.io/podcertificaterequests': { conditions: [{ ...condition, type: 'Denied' }] },
  'flowcontrol.apiserver.k8s.io/flowschemas': { conditions: [{ ...condition, type: 'Dangling' }] },
  'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations': { conditions: [condition] },
  'networking.k8s.io/ingresses': { loadBalancer: { ingress: [{ ip: '192.0.2.8' }] } },
  'networking.k8s.io/servicecidrs': { conditions: [{ ...condition, type: 'Ready' }] },
  'policy/poddisruptionbudgets': {
    disruptionsAllowed: 1,
    currentHealthy: 2,
    desiredHealthy: 1,
    expectedPods: 2,
    observedGeneration: 1,
  },
  'resource.k8s.io/devicetaintrules': { conditions: [{ ...condition, type: 'EvictionInProgress' }] },
  'resource.k8s.io/resourceclaims': {
    allocation: { devices: { results: [{ request: 'one', driver: 'example.com', pool: 'tiny', device: 'one' }] } },
  },
  'storage.k8s.io/volumeattachments': { attached: true },
  'storagemigration.k8s.io/storageversionmigrations': { conditions: [{ ...condition, type: 'Running' }] },
}
