import type { ObjectValue } from '../../schemas/index.ts'
import { ageOf } from './human-duration.ts'
import {
  ageColumn,
  at,
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
import { labelsText } from './workload-tables.ts'

const none = '<none>'
const integer = { type: 'integer' } as const
const wide = { priority: 1 } as const

export const serviceTable: KindTable = {
  columns: [
    nameColumn,
    column('Type', 'How the service is exposed.'),
    column('Cluster-IP', 'Address inside the cluster.'),
    column('External-IP', 'Addresses outside the cluster.'),
    column('Port(s)', 'Ports it listens on.'),
    ageColumn,
    column('Selector', 'Labels that choose the pods behind it.', wide),
  ],
  cells: (service, nowMs) => [
    nameOf(service),
    textAt(service, 'spec', 'type'),
    textAt(service, 'spec', 'clusterIP') || none,
    externalIp(service),
    servicePorts(service),
    objectAge(service, nowMs),
    labelsText(service, 'spec', 'selector'),
  ],
}

function externalIp(service: ObjectValue): string {
  const external = listAt(service, 'spec', 'externalIPs').join(',')
  switch (textAt(service, 'spec', 'type')) {
    case 'ExternalName':
      return textAt(service, 'spec', 'externalName')
    case 'LoadBalancer': {
      const ingress = listAt(service, 'status', 'loadBalancer', 'ingress')
        .map((entry) => textAt(entry, 'ip') || textAt(entry, 'hostname'))
        .filter((entry) => entry !== '')
      const all = [...ingress, ...(external === '' ? [] : [external])]
      return all.length === 0 ? '<pending>' : all.join(',')
    }
    default:
      return external === '' ? none : external
  }
}

function servicePorts(service: ObjectValue): string {
  const ports = listAt(service, 'spec', 'ports').map((port) => {
    const nodePort = numberAt(port, 'nodePort')
    return `${numberAt(port, 'port')}${nodePort > 0 ? `:${nodePort}` : ''}/${textAt(port, 'protocol')}`
  })
  return ports.length === 0 ? none : ports.join(',')
}

export const secretTable: KindTable = {
  columns: [
    nameColumn,
    column('Type', 'What the secret is for.'),
    column('Data', 'Number of entries.', integer),
    ageColumn,
  ],
  cells: (secret, nowMs) => [
    nameOf(secret),
    textAt(secret, 'type'),
    keysAt(secret, 'data').length,
    objectAge(secret, nowMs),
  ],
}

export const configMapTable: KindTable = {
  columns: [nameColumn, column('Data', 'Number of entries.', integer), ageColumn],
  cells: (map, nowMs) => [
    nameOf(map),
    keysAt(map, 'data').length + keysAt(map, 'binaryData').length,
    objectAge(map, nowMs),
  ],
}

export const serviceAccountTable: KindTable = {
  columns: [nameColumn, column('Secrets', 'Number of secrets it may use.', integer), ageColumn],
  cells: (account, nowMs) => [nameOf(account), listAt(account, 'secrets').length, objectAge(account, nowMs)],
}

export const namespaceTable: KindTable = {
  columns: [nameColumn, column('Status', 'Active, or Terminating while its content goes.'), ageColumn],
  cells: (namespace, nowMs) => [nameOf(namespace), textAt(namespace, 'status', 'phase'), objectAge(namespace, nowMs)],
}

const nodeRolePrefix = 'node-role.kubernetes.io/'

export const nodeTable: KindTable = {
  columns: [
    nameColumn,
    column('Status', 'Whether pods can run and be scheduled on it.'),
    column('Roles', 'Its roles, from its labels.'),
    ageColumn,
    column('Version', 'Version of the kubelet.'),
    column('Internal-IP', 'Address inside the cluster.', wide),
    column('External-IP', 'Address outside the cluster.', wide),
    column('OS-Image', 'Operating system.', wide),
    column('Kernel-Version', 'Kernel.', wide),
    column('Container-Runtime', 'Container runtime.', wide),
  ],
  cells(node, nowMs) {
    const info = (field: string): string => textAt(node, 'status', 'nodeInfo', field) || '<unknown>'
    return [
      nameOf(node),
      nodeStatus(node),
      nodeRoles(node),
      objectAge(node, nowMs),
      textAt(node, 'status', 'nodeInfo', 'kubeletVersion'),
      nodeAddress(node, 'InternalIP'),
      nodeAddress(node, 'ExternalIP'),
      info('osImage'),
      info('kernelVersion'),
      info('containerRuntimeVersion'),
    ]
  },
}

function nodeStatus(node: ObjectValue): string {
  const ready = listAt(node, 'status', 'conditions').find((condition) => textAt(condition, 'type') === 'Ready')
  const word = ready === undefined ? 'Unknown' : textAt(ready, 'status') === 'True' ? 'Ready' : 'NotReady'
  return at(node, 'spec', 'unschedulable') === true ? `${word},SchedulingDisabled` : word
}

function nodeRoles(node: ObjectValue): string {
  const roles = new Set<string>()
  for (const label of keysAt(node, 'metadata', 'labels')) {
    const value = textAt(node, 'metadata', 'labels', label)
    if (label.startsWith(nodeRolePrefix) && label !== nodeRolePrefix) roles.add(label.slice(nodeRolePrefix.length))
    else if (label === 'kubernetes.io/role' && value !== '') roles.add(value)
  }
  return roles.size === 0 ? none : [...roles].toSorted().join(',')
}

function nodeAddress(node: ObjectValue, type: string): string {
  const address = listAt(node, 'status', 'addresses').find((entry) => textAt(entry, 'type') === type)
  return textAt(address, 'address') || none
}

export const eventTable: KindTable = {
  columns: [
    column('Last Seen', 'Time since it was last seen.'),
    column('Type', 'Normal or Warning.'),
    column('Reason', 'Why it was reported, in one word.'),
    column('Object', 'What it is about.'),
    column('Subobject', 'Which part of the object.', wide),
    column('Source', 'Who reported it.', wide),
    column('Message', 'What happened.'),
    column('First Seen', 'Time since it was first seen.', wide),
    column('Count', 'How often it was seen.', { ...integer, ...wide }),
    { ...nameColumn, priority: 1 },
  ],
  cells(event, nowMs) {
    const eventTime = textAt(event, 'eventTime')
    const last = textAt(event, 'series', 'lastObservedTime') || textAt(event, 'lastTimestamp') || eventTime
    const source = [textAt(event, 'source', 'component') || textAt(event, 'reportingComponent')]
    const host = textAt(event, 'source', 'host') || textAt(event, 'reportingInstance')
    if (host !== '') source.push(host)
    return [
      ageOf(last, nowMs),
      textAt(event, 'type'),
      textAt(event, 'reason'),
      `${textAt(event, 'involvedObject', 'kind').toLowerCase()}/${textAt(event, 'involvedObject', 'name')}`,
      textAt(event, 'involvedObject', 'fieldPath'),
      source.join(', '),
      textAt(event, 'message').trim(),
      ageOf(textAt(event, 'firstTimestamp') || eventTime, nowMs),
      numberAt(event, 'series', 'count') || numberAt(event, 'count') || 1,
      nameOf(event),
    ]
  },
}

/** Of the condition Healthy, the only one. */
export const componentStatusTable: KindTable = {
  columns: [
    nameColumn,
    column('Status', 'Whether the component answers as it should.'),
    column('Message', 'What the component says.'),
    column('Error', 'Why it could not be asked.'),
  ],
  cells(object) {
    const healthy = listAt(object, 'conditions').find((condition) => textAt(condition, 'type') === 'Healthy')
    const words = new Map([
      ['True', 'Healthy'],
      ['False', 'Unhealthy'],
    ])
    return [
      nameOf(object),
      words.get(textAt(healthy, 'status')) ?? 'Unknown',
      textAt(healthy, 'message'),
      textAt(healthy, 'error'),
    ]
  },
}
