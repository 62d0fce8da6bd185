import type { ResourceInfo } from '../../schemas/index.ts'
import {
  componentStatusTable,
  configMapTable,
  eventTable,
  namespaceTable,
  nodeTable,
  secretTable,
  serviceAccountTable,
  serviceTable,
} from './core-tables.ts'
import { type KindTable, plainTable, resourceId } from './kind-table.ts'
import { podTable } from './pod-table.ts'
import {
  cronJobTable,
  daemonSetTable,
  deploymentTable,
  jobTable,
  replicaSetTable,
  statefulSetTable,
} from './workload-tables.ts'

/** Tables by "plural.group". */
const tables: ReadonlyMap<string, KindTable> = new Map([
  ['pods', podTable],
  ['services', serviceTable],
  ['componentstatuses', componentStatusTable],
  ['configmaps', configMapTable],
  ['secrets', secretTable],
  ['serviceaccounts', serviceAccountTable],
  ['namespaces', namespaceTable],
  ['nodes', nodeTable],
  ['events', eventTable],
  ['events.events.k8s.io', eventTable],
  ['deployments.apps', deploymentTable],
  ['replicasets.apps', replicaSetTable],
  ['statefulsets.apps', statefulSetTable],
  ['daemonsets.apps', daemonSetTable],
  ['jobs.batch', jobTable],
  ['cronjobs.batch', cronJobTable],
])

export function tableFor(resource: ResourceInfo): KindTable {
  return tables.get(resourceId(resource)) ?? plainTable
}
