import type { ObjectValue } from '../../schemas/index.ts'
import { ageOf } from './human-duration.ts'
import {
  ageColumn,
  at,
  column,
  type KindTable,
  listAt,
  nameColumn,
  nameOf,
  numberAt,
  objectAge,
  textAt,
} from './kind-table.ts'

const none = '<none>'

/** Restarts and the time of the newest one. */
interface Restarts {
  count: number
  /** RFC 3339; these sort as text. */
  last: string
}

interface PodSummary {
  readonly reason: string
  readonly ready: number
  readonly total: number
  readonly restarts: Restarts
}

export const podTable: KindTable = {
  columns: [
    nameColumn,
    column('Ready', 'Containers that are ready, of all.'),
    column('Status', 'What the pod is doing or waiting for, in one word.'),
    column('Restarts', 'Restarts of its containers, and when the last one was.'),
    ageColumn,
    column('IP', 'Address of the pod.', { priority: 1 }),
    column('Node', 'Node it runs on.', { priority: 1 }),
    column('Nominated Node', 'Node where room is being made for it.', { priority: 1 }),
    column('Readiness Gates', 'Readiness gates that are met, of all.', { priority: 1 }),
  ],
  cells(pod, nowMs) {
    const { reason, ready, total, restarts } = summarize(pod)
    const since = restarts.count > 0 && restarts.last !== '' ? ` (${ageOf(restarts.last, nowMs)} ago)` : ''
    return [
      nameOf(pod),
      `${ready}/${total}`,
      reason,
      `${restarts.count}${since}`,
      objectAge(pod, nowMs),
      textAt(listAt(pod, 'status', 'podIPs')[0], 'ip') || textAt(pod, 'status', 'podIP') || none,
      textAt(pod, 'spec', 'nodeName') || none,
      textAt(pod, 'status', 'nominatedNodeName') || none,
      readinessGates(pod),
    ]
  },
}

/** The status word as kubectl users know it (kubernetes/kubernetes pkg/printers/internalversion printPod). */
function summarize(pod: ObjectValue): PodSummary {
  const initContainers = listAt(pod, 'spec', 'initContainers')
  const sidecars = new Set(
    initContainers
      .filter((container) => textAt(container, 'restartPolicy') === 'Always')
      .map((container) => textAt(container, 'name')),
  )
  const total = listAt(pod, 'spec', 'containers').length + sidecars.size
  const gated = conditions(pod).some(
    (condition) => textAt(condition, 'type') === 'PodScheduled' && textAt(condition, 'reason') === 'SchedulingGated',
  )
  let reason = gated ? 'SchedulingGated' : textAt(pod, 'status', 'reason') || textAt(pod, 'status', 'phase')
  let ready = 0
  let restarts: Restarts = { count: 0, last: '' }
  const sidecarRestarts: Restarts = { count: 0, last: '' }
  let initializing = false
  for (const [index, status] of listAt(pod, 'status', 'initContainerStatuses').entries()) {
    const isSidecar = sidecars.has(textAt(status, 'name'))
    addRestarts(restarts, status)
    if (isSidecar) addRestarts(sidecarRestarts, status)
    const terminated = at(status, 'state', 'terminated')
    if (terminated !== undefined && numberAt(terminated, 'exitCode') === 0) continue
    if (isSidecar && at(status, 'started') === true) {
      if (at(status, 'ready') === true) ready++
      continue
    }
    const waiting = textAt(status, 'state', 'waiting', 'reason')
    if (terminated !== undefined) reason = `Init:${terminationWord(terminated)}`
    else if (waiting !== '' && waiting !== 'PodInitializing') reason = `Init:${waiting}`
    else reason = `Init:${index}/${initContainers.length}`
    initializing = true
    break
  }
  if (!initializing || isTrue(pod, 'Initialized')) {
    restarts = sidecarRestarts
    let running = false
    for (const status of listAt(pod, 'status', 'containerStatuses').toReversed()) {
      addRestarts(restarts, status)
      const waiting = textAt(status, 'state', 'waiting', 'reason')
      const terminated = at(status, 'state', 'terminated')
      if (waiting !== '') reason = waiting
      else if (terminated !== undefined) reason = terminationWord(terminated)
      else if (at(status, 'ready') === true && at(status, 'state', 'running') !== undefined) {
        running = true
        ready++
      }
    }
    if (reason === 'Completed' && running) reason = isTrue(pod, 'Ready') ? 'Running' : 'NotReady'
  }
  if (at(pod, 'metadata', 'deletionTimestamp') !== undefined) {
    const phase = textAt(pod, 'status', 'phase')
    if (textAt(pod, 'status', 'reason') === 'NodeLost') reason = 'Unknown'
    else if (phase !== 'Succeeded' && phase !== 'Failed') reason = 'Terminating'
  }
  return { reason, ready, total, restarts }
}

function addRestarts(restarts: Restarts, status: unknown): void {
  restarts.count += numberAt(status, 'restartCount')
  const finished = textAt(status, 'lastState', 'terminated', 'finishedAt')
  if (finished > restarts.last) restarts.last = finished
}

function terminationWord(terminated: unknown): string {
  const reason = textAt(terminated, 'reason')
  if (reason !== '') return reason
  const signal = numberAt(terminated, 'signal')
  return signal !== 0 ? `Signal:${signal}` : `ExitCode:${numberAt(terminated, 'exitCode')}`
}

const conditions = (pod: ObjectValue): readonly unknown[] => listAt(pod, 'status', 'conditions')

function isTrue(pod: ObjectValue, type: string): boolean {
  return conditions(pod).some(
    (condition) => textAt(condition, 'type') === type && textAt(condition, 'status') === 'True',
  )
}

function readinessGates(pod: ObjectValue): string {
  const gates = listAt(pod, 'spec', 'readinessGates')
  if (gates.length === 0) return none
  return `${gates.filter((gate) => isTrue(pod, textAt(gate, 'conditionType'))).length}/${gates.length}`
}
