/**
 * What a field selector may ask of a kind beyond name and namespace, with the value that the smallest object answers
 * (kubernetes pkg/apis/<group>/<version>/conversion.go and the ToSelectableFields of its strategy).
 */
import assert from 'node:assert/strict'
import { keyOf } from './discovery.ts'
import type { Subject } from './subject.ts'

const reference = (field: string, namespace: string): Readonly<Record<string, string>> => ({
  [`${field}.kind`]: 'Pod',
  [`${field}.namespace`]: namespace,
  [`${field}.name`]: 'tiny',
  [`${field}.uid`]: '',
  [`${field}.apiVersion`]: 'v1',
  [`${field}.resourceVersion`]: '',
  [`${field}.fieldPath`]: '',
})

type Labels = Readonly<Record<string, string>>

const labelsOf: Readonly<Record<string, (subject: Subject) => Labels>> = {
  '/events': ({ namespace }) => ({
    ...reference('involvedObject', namespace),
    reason: 'Tested',
    reportingComponent: '',
    source: '',
    type: 'Normal',
  }),
  'events.k8s.io/events': ({ namespace }) => ({
    ...reference('regarding', namespace),
    reason: 'Tested',
    reportingController: 'example.com/tester',
    type: 'Normal',
  }),
  '/namespaces': () => ({ 'status.phase': 'Active' }),
  '/nodes': () => ({ 'spec.unschedulable': 'false' }),
  '/pods': () => ({
    'spec.nodeName': '',
    'spec.host': '',
    'spec.restartPolicy': 'Always',
    'spec.schedulerName': 'default-scheduler',
    'spec.hostNetwork': 'false',
    'status.phase': 'Pending',
    'status.podIP': '',
    'status.podIPs': '',
    'status.nominatedNodeName': '',
  }),
  '/replicationcontrollers': () => ({ 'status.replicas': '0' }),
  '/secrets': () => ({ type: 'Opaque' }),
  '/services': ({ object }) => ({
    'spec.type': 'ClusterIP',
    'spec.clusterIP': (object['spec'] as { readonly clusterIP: string }).clusterIP,
  }),
  'apps/replicasets': () => ({ 'status.replicas': '0' }),
  'batch/cronjobs': () => ({ 'status.successful': '' }),
  'batch/jobs': () => ({ 'status.successful': '0' }),
  'certificates.k8s.io/certificatesigningrequests': () => ({ 'spec.signerName': 'example.com/tiny' }),
  'certificates.k8s.io/clustertrustbundles': () => ({ 'spec.signerName': '' }),
  'resource.k8s.io/resourceslices': () => ({ 'spec.nodeName': 'tiny', 'spec.driver': 'example.com' }),
}

/** Selected by every label at once, and by none with another value. */
export async function selectsByField(subject: Subject): Promise<void> {
  const { collection, name, namespace } = subject
  const own: Labels = subject.resource.namespaced ? { 'metadata.namespace': namespace } : {}
  const labels: Labels = { ...labelsOf[keyOf(subject.resource)]?.(subject), ...own, 'metadata.name': name }
  const selector = Object.entries(labels).map(([label, value]) => `${label}=${value}`)
  const chosen = await subject.expect(
    200,
    'GET',
    `${collection}?fieldSelector=${encodeURIComponent(selector.join(','))}`,
  )
  assert.deepEqual(
    chosen.json.items.map((item) => item.metadata.name),
    [name],
    selector.join(','),
  )
  for (const label of Object.keys(labels)) {
    const other = encodeURIComponent(`metadata.name=${name},${label}=another`)
    const none = await subject.expect(200, 'GET', `${collection}?fieldSelector=${other}`)
    assert.deepEqual(none.json.items, [], `${label}=another`)
  }
}
