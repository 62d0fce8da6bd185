import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { validateEnv, validateEnvFrom } from './container-env.ts'
import { duplicate, forbiddenField, invalidValue, notFoundField, notSupported, required } from './field-error.ts'
import { dnsLabelProblems, portNameProblems, portNumberProblems } from './names.ts'
import { numberAt, objectAt, objectsAt, textAt, valueAt } from './object-fields.ts'
import { validateLifecycle, validateProbes } from './probe.ts'
import { validateResources } from './resource-amounts.ts'
import { validateSecurityContext } from './security-context.ts'
import { validateDevices, validateMounts } from './volume-mounts.ts'
import type { VolumeNames } from './volumes.ts'
import { appendAll } from '../append.ts'

/** Containers of the three kinds (kubernetes pkg/apis/core/validation). */

export interface PodParts {
  readonly volumes: VolumeNames
  readonly claimNames: ReadonlySet<string>
  readonly graceSeconds: number | undefined
  readonly restartPolicy: string
  /** Of a pod, not of a template of pods. */
  readonly inPod: boolean
}

export function validateContainers(containers: readonly ObjectValue[], at: string, pod: PodParts): readonly Cause[] {
  if (containers.length === 0) return [required(at)]
  const causes: Cause[] = []
  const names = new Set<string>()
  for (const [index, container] of containers.entries()) {
    const where = `${at}[${index}]`
    appendAll(causes, validateContainer(container, where, pod))
    appendAll(causes, validateName(container, where, names))
    appendAll(causes, validateLifecycle(container, where, pod.graceSeconds))
    appendAll(causes, validateProbes(container, where, pod.graceSeconds))
    appendAll(causes, validateRestartRules(container, where))
  }
  appendAll(causes, validateHostPorts(containers, at))
  return causes
}

const onlyOfSidecars = ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const

export function validateInitContainers(
  containers: readonly ObjectValue[],
  others: readonly ObjectValue[],
  at: string,
  pod: PodParts,
): readonly Cause[] {
  const causes: Cause[] = []
  const names = new Set(others.map((container) => textAt(container, 'name')))
  for (const [index, container] of containers.entries()) {
    const where = `${at}[${index}]`
    const sidecar = textAt(container, 'restartPolicy') === 'Always'
    appendAll(causes, validateContainer(container, where, pod))
    appendAll(causes, validateName(container, where, names))
    // One after the other: their ports only clash within one of them.
    appendAll(causes, validateHostPorts([container], at))
    if (sidecar) {
      appendAll(causes, validateLifecycle(container, where, pod.graceSeconds))
      appendAll(causes, validateProbes(container, where, pod.graceSeconds))
      if (objectsAt(container, 'restartPolicyRules').length > 0) {
        const text = 'restartPolicyRules are not allowed for init containers with restart policy Always'
        causes.push(forbiddenField(`${where}.restartPolicyRules`, text))
      }
      continue
    }
    appendAll(causes, validateRestartRules(container, where))
    for (const field of onlyOfSidecars) {
      if (objectAt(container, field) === undefined) continue
      causes.push(
        forbiddenField(`${where}.${field}`, 'may not be set for init containers without restartPolicy=Always'),
      )
    }
  }
  return causes
}

const notOfEphemeral = [
  'ports',
  'resources',
  'lifecycle',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
] as const

export function validateEphemeralContainers(
  containers: readonly ObjectValue[],
  others: readonly ObjectValue[],
  at: string,
  pod: PodParts,
): readonly Cause[] {
  const causes: Cause[] = []
  const otherNames = new Set(others.map((container) => textAt(container, 'name')))
  const names = new Set(otherNames)
  const text = 'cannot be set for an Ephemeral Container'
  for (const [index, container] of containers.entries()) {
    const where = `${at}[${index}]`
    appendAll(causes, validateContainer(container, where, { ...pod, inPod: true }))
    appendAll(causes, validateName(container, where, names))
    const target = textAt(container, 'targetContainerName')
    if (target !== '' && !otherNames.has(target)) causes.push(notFoundField(`${where}.targetContainerName`, target))
    for (const field of notOfEphemeral) {
      if (!isEmpty(container[field])) causes.push(forbiddenField(`${where}.${field}`, text))
    }
    for (const [position, mount] of objectsAt(container, 'volumeMounts').entries()) {
      for (const field of ['subPath', 'subPathExpr']) {
        if (textAt(mount, field) === '') continue
        causes.push(forbiddenField(`${where}.volumeMounts[${position}].${field}`, text))
      }
    }
  }
  return causes
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true
  return typeof value === 'object' && Object.keys(value).length === 0
}

function validateName(container: ObjectValue, at: string, names: Set<string>): readonly Cause[] {
  const name = textAt(container, 'name')
  if (name === '') return []
  if (names.has(name)) return [duplicate(`${at}.name`, name)]
  names.add(name)
  return []
}

/** What holds for containers of every kind. */
function validateContainer(container: ObjectValue, at: string, pod: PodParts): readonly Cause[] {
  const name = textAt(container, 'name')
  const image = textAt(container, 'image')
  const causes: Cause[] = []
  if (name === '') causes.push(required(`${at}.name`))
  else
    appendAll(
      causes,
      dnsLabelProblems(name).map((problem) => invalidValue(`${at}.name`, name, problem)),
    )
  if (image === '') causes.push(required(`${at}.image`))
  else if (pod.inPod && image.trim() !== image) {
    causes.push(invalidValue(`${at}.image`, image, 'must not have leading or trailing whitespace'))
  }
  return [
    ...causes,
    ...validatePorts(objectsAt(container, 'ports'), `${at}.ports`),
    ...validateEnv(objectsAt(container, 'env'), `${at}.env`),
    ...validateEnvFrom(objectsAt(container, 'envFrom'), `${at}.envFrom`),
    ...validateMounts(container, `${at}.volumeMounts`, pod.volumes),
    ...validateDevices(container, `${at}.volumeDevices`, pod.volumes),
    ...validateResources(objectAt(container, 'resources'), `${at}.resources`, {
      of: 'container',
      claimNames: pod.claimNames,
    }),
    ...validateResizePolicy(objectsAt(container, 'resizePolicy'), `${at}.resizePolicy`, pod.restartPolicy),
    ...validateSecurityContext(objectAt(container, 'securityContext'), `${at}.securityContext`),
  ]
}

function validatePorts(ports: readonly ObjectValue[], at: string): readonly Cause[] {
  const causes: Cause[] = []
  const names = new Set<string>()
  for (const [index, port] of ports.entries()) {
    const where = `${at}[${index}]`
    const name = textAt(port, 'name')
    if (name !== '') {
      const problems = portNameProblems(name)
      appendAll(
        causes,
        problems.map((problem) => invalidValue(`${where}.name`, name, problem)),
      )
      if (problems.length === 0 && names.has(name)) causes.push(duplicate(`${where}.name`, name))
      names.add(name)
    }
    const number = numberAt(port, 'containerPort') ?? 0
    if (number === 0) causes.push(required(`${where}.containerPort`))
    else appendAll(causes, portNumberCauses(number, `${where}.containerPort`))
    const hostPort = numberAt(port, 'hostPort') ?? 0
    if (hostPort !== 0) appendAll(causes, portNumberCauses(hostPort, `${where}.hostPort`))
  }
  return causes
}

const portNumberCauses = (port: number, at: string): readonly Cause[] =>
  portNumberProblems(port).map((problem) => invalidValue(at, port, problem))

/** A port of the host can be had once per protocol and address. */
function validateHostPorts(containers: readonly ObjectValue[], at: string): readonly Cause[] {
  const causes: Cause[] = []
  const taken = new Set<string>()
  for (const [index, container] of containers.entries()) {
    for (const [position, port] of objectsAt(container, 'ports').entries()) {
      const number = numberAt(port, 'hostPort') ?? 0
      if (number === 0) continue
      const key = `${textAt(port, 'protocol')}/${textAt(port, 'hostIP')}/${number}`
      if (taken.has(key)) causes.push(duplicate(`${at}[${index}].ports[${position}].hostPort`, key))
      taken.add(key)
    }
  }
  return causes
}

const resizable = ['cpu', 'memory'] as const
const resizePolicies = ['NotRequired', 'RestartContainer'] as const

function validateResizePolicy(policies: readonly ObjectValue[], at: string, restartPolicy: string): readonly Cause[] {
  const causes: Cause[] = []
  const seen = new Set<string>()
  for (const [index, policy] of policies.entries()) {
    const resource = textAt(policy, 'resourceName')
    const restart = textAt(policy, 'restartPolicy')
    if (seen.has(resource)) causes.push(duplicate(`${at}[${index}]`, resource))
    seen.add(resource)
    if (resource === '' || restart === '') causes.push(required(at))
    if (resource !== '' && !resizable.some((known) => known === resource)) {
      causes.push(notSupported(at, resource, resizable))
    }
    if (restart !== '' && !resizePolicies.some((known) => known === restart)) {
      causes.push(notSupported(at, restart, resizePolicies))
    }
    if (restartPolicy === 'Never' && restart !== 'NotRequired') {
      causes.push(invalidValue(at, restart, "must be 'NotRequired' when `restartPolicy` is 'Never'"))
    }
  }
  return causes
}

const restartPolicies = ['Always', 'Never', 'OnFailure'] as const

/** A container's own restart policy and its rules by exit code (KEP-5307). */
function validateRestartRules(container: ObjectValue, at: string): readonly Cause[] {
  const policy = valueAt(container, 'restartPolicy')
  const rules = objectsAt(container, 'restartPolicyRules')
  const causes: Cause[] = []
  if (policy === undefined) {
    if (rules.length > 0) {
      causes.push(required(`${at}.restartPolicy`, 'must specify restartPolicy when restart rules are used'))
    }
  } else if (!restartPolicies.some((known) => known === policy)) {
    causes.push(notSupported(`${at}.restartPolicy`, policy, restartPolicies))
  }
  for (const [index, rule] of rules.entries()) {
    if (objectAt(rule, 'exitCodes') === undefined) {
      causes.push(required(`${at}.restartPolicyRules[${index}].exitCodes`, 'must be specified'))
    }
  }
  return causes
}
