import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { validateContainers } from './container.ts'
import { duplicate, forbiddenField, invalidValue, required } from './field-error.ts'
import { dnsLabelProblems, dnsSubdomainProblems, labelValueProblems, qualifiedNameProblems } from './names.ts'
import { entriesAt, isObject, numberAt, objectsAt, textAt, valueAt } from './object-fields.ts'
import { validateLabels, validateUnique } from './object-meta.ts'

/** Pod specs, alone and in templates (kubernetes pkg/apis/core/validation). */
export function validatePodSpec(spec: ObjectValue | undefined, at: string): readonly Cause[] {
  if (spec === undefined) return [required(`${at}.containers`)]
  const volumes = objectsAt(spec, 'volumes')
  const volumeNames = new Set(volumes.map((volume) => textAt(volume, 'name')))
  const causes: Cause[] = [...validateVolumes(volumes, `${at}.volumes`)]
  const containers = objectsAt(spec, 'containers')
  if (containers.length === 0) causes.push(required(`${at}.containers`))
  const initContainers = objectsAt(spec, 'initContainers')
  causes.push(
    ...validateContainers(containers, `${at}.containers`, { volumeNames, takenNames: [] }),
    ...validateContainers(initContainers, `${at}.initContainers`, {
      volumeNames,
      takenNames: containers.map((container) => textAt(container, 'name')),
    }),
    ...validateContainers(objectsAt(spec, 'ephemeralContainers'), `${at}.ephemeralContainers`, {
      volumeNames,
      takenNames: [...containers, ...initContainers].map((container) => textAt(container, 'name')),
    }),
    ...validateLabels(spec, 'nodeSelector', `${at}.nodeSelector`),
    ...validateTolerations(objectsAt(spec, 'tolerations'), `${at}.tolerations`),
    ...validateUnique(objectsAt(spec, 'schedulingGates'), 'name', `${at}.schedulingGates`),
  )
  for (const [field, rule] of nameFields) {
    const value = textAt(spec, field)
    if (value !== '') causes.push(...rule(value).map((problem) => invalidValue(`${at}.${field}`, value, problem)))
  }
  for (const [index, secret] of objectsAt(spec, 'imagePullSecrets').entries()) {
    if (textAt(secret, 'name') === '') causes.push(required(`${at}.imagePullSecrets[${index}].name`))
  }
  const deadline = numberAt(spec, 'activeDeadlineSeconds')
  if (deadline !== undefined && (deadline < 1 || deadline > 2147483647)) {
    const text = 'must be between 1 and 2147483647, inclusive'
    causes.push(invalidValue(`${at}.activeDeadlineSeconds`, deadline, text))
  }
  causes.push(...validateHostNetworkPorts(spec, at))
  return causes
}

const nameFields = [
  ['serviceAccountName', dnsSubdomainProblems],
  ['nodeName', dnsSubdomainProblems],
  ['hostname', dnsLabelProblems],
  ['subdomain', dnsLabelProblems],
  ['priorityClassName', dnsSubdomainProblems],
  ['runtimeClassName', dnsSubdomainProblems],
] as const

const volumeMembers = new Set(['name'])

function validateVolumes(volumes: readonly ObjectValue[], at: string): readonly Cause[] {
  const causes: Cause[] = []
  const seen = new Set<string>()
  for (const [index, volume] of volumes.entries()) {
    const where = `${at}[${index}]`
    const name = textAt(volume, 'name')
    if (name === '') causes.push(required(`${where}.name`))
    else {
      causes.push(...dnsLabelProblems(name).map((problem) => invalidValue(`${where}.name`, name, problem)))
      if (seen.has(name)) causes.push(duplicate(`${where}.name`, name))
      seen.add(name)
    }
    const sources = Object.keys(volume).filter((field) => !volumeMembers.has(field) && volume[field] !== undefined)
    if (sources.length === 0) causes.push(required(where, 'must specify a volume type'))
    for (const extra of sources.slice(1)) {
      causes.push(forbiddenField(`${where}.${extra}`, 'may not specify more than 1 volume type'))
    }
    causes.push(...requiredIn(volume, where))
  }
  return causes
}

/** Texts that a volume source cannot be without. */
const sourceFields: readonly (readonly [source: string, field: string])[] = [
  ['secret', 'secretName'],
  ['configMap', 'name'],
  ['persistentVolumeClaim', 'claimName'],
  ['hostPath', 'path'],
  ['nfs', 'server'],
  ['nfs', 'path'],
  ['csi', 'driver'],
]

function requiredIn(volume: ObjectValue, at: string): readonly Cause[] {
  return sourceFields
    .filter(([source, field]) => isObject(volume[source]) && textAt(volume, source, field) === '')
    .map(([source, field]) => required(`${at}.${source}.${field}`))
}

function validateTolerations(tolerations: readonly ObjectValue[], at: string): readonly Cause[] {
  const causes: Cause[] = []
  for (const [index, toleration] of tolerations.entries()) {
    const where = `${at}[${index}]`
    const key = textAt(toleration, 'key')
    const operator = textAt(toleration, 'operator')
    const value = textAt(toleration, 'value')
    if (key !== '') {
      causes.push(...qualifiedNameProblems(key).map((problem) => invalidValue(`${where}.key`, key, problem)))
    } else if (operator !== 'Exists') {
      const text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
      causes.push(invalidValue(`${where}.operator`, operator, text))
    }
    if (valueAt(toleration, 'tolerationSeconds') !== undefined && textAt(toleration, 'effect') !== 'NoExecute') {
      const text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
      causes.push(invalidValue(`${where}.effect`, textAt(toleration, 'effect'), text))
    }
    if (operator === 'Exists' && value !== '') {
      causes.push(invalidValue(`${where}.operator`, toleration, "value must be empty when `operator` is 'Exists'"))
    } else if (operator === 'Equal' || operator === '') {
      const problems = labelValueProblems(value)
      causes.push(...problems.map((problem) => invalidValue(`${where}.operator`, value, problem)))
    }
  }
  return causes
}

/** On the host's network a port is the host's port, and nothing else. */
function validateHostNetworkPorts(spec: ObjectValue, at: string): readonly Cause[] {
  if (valueAt(spec, 'hostNetwork') !== true) return []
  return objectsAt(spec, 'containers').flatMap((container, index) =>
    objectsAt(container, 'ports').flatMap((port, position) => {
      const hostPort = numberAt(port, 'hostPort')
      if (hostPort === undefined || hostPort === 0 || hostPort === numberAt(port, 'containerPort')) return []
      const where = `${at}.containers[${index}].ports[${position}].hostPort`
      return [invalidValue(where, hostPort, 'must match `containerPort` when `hostNetwork` is true')]
    }),
  )
}

/** metadata.labels and metadata.annotations of a template, and its spec. */
export function validatePodTemplate(template: unknown, at: string): readonly Cause[] {
  const value = isObject(template) ? template : {}
  const metadata = valueAt(value, 'metadata')
  const spec = valueAt(value, 'spec')
  return [
    ...(isObject(metadata) ? validateLabels(metadata, 'labels', `${at}.labels`) : []),
    ...entriesAt(metadata, 'annotations').flatMap(([key]) =>
      qualifiedNameProblems(key.toLowerCase()).map((problem) => invalidValue(`${at}.annotations`, key, problem)),
    ),
    ...validatePodSpec(isObject(spec) ? spec : undefined, `${at}.spec`),
  ]
}
