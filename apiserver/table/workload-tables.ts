import type { ObjectValue } from '../../schemas/index.ts'
import { ageOf, humanDuration } from './human-duration.ts'
import {
  ageColumn,
  at,
  type Cell,
  type Column,
  column,
  type KindTable,
  keysAt,
  listAt,
  nameColumn,
  nameOf,
  numberAt,
  objectAge,
  textAt,
} from './kind-table.ts'

const integer = { type: 'integer' } as const
const wide = { priority: 1 } as const
const containersColumn = column('Containers', 'Names of the containers in the template.', wide)
const imagesColumn = column('Images', 'Images of the containers in the template.', wide)
const selectorColumn = column('Selector', 'Labels that choose the pods.', wide)

/** "a=b,c=d" in key order. */
export function labelsText(object: unknown, ...path: readonly string[]): string {
  const pairs = keysAt(object, ...path)
    .toSorted()
    .map((key) => `${key}=${textAt(object, ...path, key)}`)
  return pairs.length === 0 ? '<none>' : pairs.join(',')
}

/** metav1.LabelSelector as kubectl prints it: "a=b,c in (d,e),!f". */
function selectorText(object: ObjectValue): string {
  const labels = at(object, 'spec', 'selector', 'matchLabels')
  const parts = keysAt(labels)
    .toSorted()
    .map((key) => `${key}=${textAt(labels, key)}`)
  for (const expression of listAt(object, 'spec', 'selector', 'matchExpressions')) {
    const key = textAt(expression, 'key')
    const values = listAt(expression, 'values').join(',')
    const operator = textAt(expression, 'operator')
    if (operator === 'In') parts.push(`${key} in (${values})`)
    else if (operator === 'NotIn') parts.push(`${key} notin (${values})`)
    else parts.push(operator === 'Exists' ? key : `!${key}`)
  }
  return parts.length === 0 ? '<none>' : parts.join(',')
}

function templateCells(object: ObjectValue, ...path: readonly string[]): readonly [string, string] {
  const containers = listAt(object, ...path, 'spec', 'containers')
  return [
    containers.map((container) => textAt(container, 'name')).join(','),
    containers.map((container) => textAt(container, 'image')).join(','),
  ]
}

const replicasOf = (object: ObjectValue): number => numberAt(object, 'spec', 'replicas')

function workloadTable(
  columns: readonly Column[],
  cells: (object: ObjectValue) => readonly Cell[],
  options: { readonly selector: boolean },
): KindTable {
  return {
    columns: [
      nameColumn,
      ...columns,
      ageColumn,
      containersColumn,
      imagesColumn,
      ...(options.selector ? [selectorColumn] : []),
    ],
    cells: (object, nowMs) => [
      nameOf(object),
      ...cells(object),
      objectAge(object, nowMs),
      ...templateCells(object, 'spec', 'template'),
      ...(options.selector ? [selectorText(object)] : []),
    ],
  }
}

const readyOfDesired = column('Ready', 'Replicas that are ready, of those wanted.')
const upToDate = column('Up-to-date', 'Replicas of the current template.', integer)
const available = column('Available', 'Replicas ready for long enough.', integer)
const desired = column('Desired', 'Replicas wanted.', integer)
const current = column('Current', 'Replicas that exist.', integer)
const readyCount = column('Ready', 'Replicas that are ready.', integer)

export const deploymentTable: KindTable = workloadTable(
  [readyOfDesired, upToDate, available],
  (object) => [
    `${numberAt(object, 'status', 'readyReplicas')}/${replicasOf(object)}`,
    numberAt(object, 'status', 'updatedReplicas'),
    numberAt(object, 'status', 'availableReplicas'),
  ],
  { selector: true },
)

export const replicaSetTable: KindTable = workloadTable(
  [desired, current, readyCount],
  (object) => [replicasOf(object), numberAt(object, 'status', 'replicas'), numberAt(object, 'status', 'readyReplicas')],
  { selector: true },
)

export const statefulSetTable: KindTable = workloadTable(
  [readyOfDesired],
  (object) => [`${numberAt(object, 'status', 'readyReplicas')}/${replicasOf(object)}`],
  { selector: false },
)

export const daemonSetTable: KindTable = workloadTable(
  [desired, current, readyCount, upToDate, available, column('Node Selector', 'Labels of the nodes it runs on.')],
  (object) => [
    numberAt(object, 'status', 'desiredNumberScheduled'),
    numberAt(object, 'status', 'currentNumberScheduled'),
    numberAt(object, 'status', 'numberReady'),
    numberAt(object, 'status', 'updatedNumberScheduled'),
    numberAt(object, 'status', 'numberAvailable'),
    labelsText(object, 'spec', 'template', 'spec', 'nodeSelector'),
  ],
  { selector: true },
)

export const jobTable: KindTable = {
  columns: [
    nameColumn,
    column('Status', 'Where the job stands.'),
    column('Completions', 'Pods that succeeded, of those wanted.'),
    column('Duration', 'Time from start to completion, or to now.'),
    ageColumn,
    containersColumn,
    imagesColumn,
    selectorColumn,
  ],
  cells: (job, nowMs) => [
    nameOf(job),
    jobStatus(job),
    completions(job),
    duration(job, nowMs),
    objectAge(job, nowMs),
    ...templateCells(job, 'spec', 'template'),
    selectorText(job),
  ],
}

function jobStatus(job: ObjectValue): string {
  const holds = (type: string): boolean =>
    listAt(job, 'status', 'conditions').some(
      (condition) => textAt(condition, 'type') === type && textAt(condition, 'status') === 'True',
    )
  if (holds('Complete')) return 'Complete'
  if (holds('Failed')) return 'Failed'
  if (at(job, 'metadata', 'deletionTimestamp') !== undefined) return 'Terminating'
  return ['Suspended', 'FailureTarget', 'SuccessCriteriaMet'].find(holds) ?? 'Running'
}

function completions(job: ObjectValue): string {
  const succeeded = numberAt(job, 'status', 'succeeded')
  const wanted = at(job, 'spec', 'completions')
  if (typeof wanted === 'number') return `${succeeded}/${wanted}`
  const parallelism = numberAt(job, 'spec', 'parallelism')
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`
}

function duration(job: ObjectValue, nowMs: number): string {
  const start = textAt(job, 'status', 'startTime')
  if (start === '') return ''
  const end = textAt(job, 'status', 'completionTime')
  return humanDuration((end === '' ? nowMs : Date.parse(end)) - Date.parse(start))
}

export const cronJobTable: KindTable = {
  columns: [
    nameColumn,
    column('Schedule', 'When it runs, in cron form.'),
    column('Timezone', 'Time zone of the schedule.'),
    column('Suspend', 'Whether runs are held back.', { type: 'boolean' }),
    column('Active', 'Jobs running now.', integer),
    column('Last Schedule', 'Time since the last run was due.'),
    ageColumn,
    containersColumn,
    imagesColumn,
    selectorColumn,
  ],
  cells(cronJob, nowMs) {
    const suspend = at(cronJob, 'spec', 'suspend')
    const last = textAt(cronJob, 'status', 'lastScheduleTime')
    return [
      nameOf(cronJob),
      textAt(cronJob, 'spec', 'schedule'),
      textAt(cronJob, 'spec', 'timeZone') || '<none>',
      suspend === undefined ? '<unset>' : suspend === true ? 'True' : 'False',
      listAt(cronJob, 'status', 'active').length,
      last === '' ? '<none>' : ageOf(last, nowMs),
      objectAge(cronJob, nowMs),
      ...templateCells(cronJob, 'spec', 'jobTemplate', 'spec', 'template'),
      '<none>',
    ]
  },
}
