/** A Go package of API types: one group version, one file of `data/`. */
export interface Package {
  /** Prefix of the OpenAPI names of its types. */
  readonly name: string
  readonly group: string
  readonly version: string
  readonly file: string
}

/** All of them; reading a file waits until one of its types is asked for. */
export const packages: readonly Package[] = [
  { name: 'io.k8s.api.admission.v1', group: 'admission.k8s.io', version: 'v1', file: 'admission-v1.json' },
  {
    name: 'io.k8s.api.admissionregistration.v1',
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    file: 'admissionregistration-v1.json',
  },
  { name: 'io.k8s.api.apidiscovery.v2', group: 'apidiscovery.k8s.io', version: 'v2', file: 'apidiscovery-v2.json' },
  {
    name: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1',
    group: 'apiextensions.k8s.io',
    version: 'v1',
    file: 'apiextensions-v1.json',
  },
  {
    name: 'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1',
    group: 'apiregistration.k8s.io',
    version: 'v1',
    file: 'apiregistration-v1.json',
  },
  { name: 'io.k8s.api.apps.v1', group: 'apps', version: 'v1', file: 'apps-v1.json' },
  {
    name: 'io.k8s.api.authentication.v1',
    group: 'authentication.k8s.io',
    version: 'v1',
    file: 'authentication-v1.json',
  },
  { name: 'io.k8s.api.authorization.v1', group: 'authorization.k8s.io', version: 'v1', file: 'authorization-v1.json' },
  { name: 'io.k8s.api.autoscaling.v1', group: 'autoscaling', version: 'v1', file: 'autoscaling-v1.json' },
  { name: 'io.k8s.api.autoscaling.v2', group: 'autoscaling', version: 'v2', file: 'autoscaling-v2.json' },
  { name: 'io.k8s.api.batch.v1', group: 'batch', version: 'v1', file: 'batch-v1.json' },
  { name: 'io.k8s.api.certificates.v1', group: 'certificates.k8s.io', version: 'v1', file: 'certificates-v1.json' },
  { name: 'io.k8s.api.coordination.v1', group: 'coordination.k8s.io', version: 'v1', file: 'coordination-v1.json' },
  { name: 'io.k8s.api.core.v1', group: '', version: 'v1', file: 'core-v1.json' },
  { name: 'io.k8s.api.discovery.v1', group: 'discovery.k8s.io', version: 'v1', file: 'discovery-v1.json' },
  { name: 'io.k8s.api.events.v1', group: 'events.k8s.io', version: 'v1', file: 'events-v1.json' },
  {
    name: 'io.k8s.api.flowcontrol.v1',
    group: 'flowcontrol.apiserver.k8s.io',
    version: 'v1',
    file: 'flowcontrol-v1.json',
  },
  { name: 'io.k8s.apimachinery.pkg.apis.meta.v1', group: 'meta.k8s.io', version: 'v1', file: 'meta-v1.json' },
  { name: 'io.k8s.api.networking.v1', group: 'networking.k8s.io', version: 'v1', file: 'networking-v1.json' },
  { name: 'io.k8s.api.node.v1', group: 'node.k8s.io', version: 'v1', file: 'node-v1.json' },
  { name: 'io.k8s.api.policy.v1', group: 'policy', version: 'v1', file: 'policy-v1.json' },
  { name: 'io.k8s.api.rbac.v1', group: 'rbac.authorization.k8s.io', version: 'v1', file: 'rbac-v1.json' },
  { name: 'io.k8s.api.resource.v1', group: 'resource.k8s.io', version: 'v1', file: 'resource-v1.json' },
  { name: 'io.k8s.api.scheduling.v1', group: 'scheduling.k8s.io', version: 'v1', file: 'scheduling-v1.json' },
  { name: 'io.k8s.api.storage.v1', group: 'storage.k8s.io', version: 'v1', file: 'storage-v1.json' },
  {
    name: 'io.k8s.api.storagemigration.v1',
    group: 'storagemigration.k8s.io',
    version: 'v1',
    file: 'storagemigration-v1.json',
  },
]
