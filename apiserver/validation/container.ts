import { compareQuantities, type ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { duplicate, forbiddenField, invalidValue, notFoundField, required } from './field-error.ts'
import { dnsLabelProblems, envVarNameProblems, portNameProblems, portNumberProblems } from './names.ts'
import { entriesAt, isObject, numberAt, objectAt, objectsAt, textAt, valueAt } from './object-fields.ts'

export interface ContainerRules {
  readonly volumeNames: ReadonlySet<string>
  /** Names of containers validated before. */
  readonly takenNames: readonly string[]
}

export function validateContainers(
  containers: readonly ObjectValue[],
  at: string,
  rules: ContainerRules,
): readonly Cause[] {
  const causes: Cause[] = []
  const seen = new Set(rules.takenNames)
  for (const [index, container] of containers.entries()) {
    const where = `${at}[${index}]`
    const name = textAt(container, 'name')
    if (name === '') causes.push(required(`${where}.name`))
    else {
      causes.push(...dnsLabelProblems(name).map((problem) => invalidValue(`${where}.name`, name, problem)))
      if (seen.has(name)) causes.push(duplicate(`${where}.name`, name))
      seen.add(name)
    }
    causes.push(...validateContainer(container, where, rules))
  }
  return causes
}

function validateContainer(container: ObjectValue, at: string, rules: ContainerRules): readonly Cause[] {
  const image = textAt(container, 'image')
  const causes: Cause[] = []
  if (image === '') causes.push(required(`${at}.image`))
  else if (image.trim() !== image) {
    causes.push(invalidValue(`${at}.image`, image, 'must not have leading or trailing whitespace'))
  }
  causes.push(
    ...validatePorts(objectsAt(container, 'ports'), `${at}.ports`),
    ...validateEnv(objectsAt(container, 'env'), `${at}.env`),
    ...validateMounts(objectsAt(container, 'volumeMounts'), `${at}.volumeMounts`, rules.volumeNames),
    ...validateResources(objectAt(container, 'resources'), `${at}.resources`),
  )
  for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    causes.push(...validateProbe(objectAt(container, probe), `${at}.${probe}`))
  }
  return causes
}

function validatePorts(ports: readonly ObjectValue[], at: string): readonly Cause[] {
  const causes: Cause[] = []
  const names = new Set<string>()
  for (const [index, port] of ports.entries()) {
    const where = `${at}[${index}]`
    const name = textAt(port, 'name')
    if (name !== '') {
      const problems = portNameProblems(name)
      causes.push(...problems.map((problem) => invalidValue(`${where}.name`, name, problem)))
      if (problems.length === 0 && names.has(name)) causes.push(duplicate(`${where}.name`, name))
      names.add(name)
    }
    const number = numberAt(port, 'containerPort') ?? 0
    if (number === 0) causes.push(required(`${where}.containerPort`))
    else {
      const problems = portNumberProblems(number)
      causes.push(...problems.map((problem) => invalidValue(`${where}.containerPort`, number, problem)))
    }
    const hostPort = numberAt(port, 'hostPort') ?? 0
    if (hostPort !== 0) {
      const problems = portNumberProblems(hostPort)
      causes.push(...problems.map((problem) => invalidValue(`${where}.hostPort`, hostPort, problem)))
    }
  }
  return causes
}

function validateEnv(variables: readonly ObjectValue[], at: string): readonly Cause[] {
  const causes: Cause[] = []
  for (const [index, variable] of variables.entries()) {
    const where = `${at}[${index}]`
    const name = textAt(variable, 'name')
    if (name === '') causes.push(required(`${where}.name`))
    else causes.push(...envVarNameProblems(name).map((problem) => invalidValue(`${where}.name`, name, problem)))
    const from = objectAt(variable, 'valueFrom')
    if (from === undefined) continue
    const sources = Object.keys(from).filter((field) => isObject(from[field]))
    if (textAt(variable, 'value') !== '' && sources.length > 0) {
      causes.push(invalidValue(`${where}.valueFrom`, '', 'may not be specified when `value` is not empty'))
    } else if (sources.length > 1) {
      causes.push(invalidValue(`${where}.valueFrom`, '', 'may not have more than one field specified at a time'))
    } else if (sources.length === 0) {
      causes.push(
        invalidValue(
          `${where}.valueFrom`,
          '',
          'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`',
        ),
      )
    }
    for (const source of ['configMapKeyRef', 'secretKeyRef']) {
      if (isObject(from[source]) && textAt(from, source, 'key') === '') {
        causes.push(required(`${where}.valueFrom.${source}.key`))
      }
    }
  }
  return causes
}

function validateMounts(
  mounts: readonly ObjectValue[],
  at: string,
  volumeNames: ReadonlySet<string>,
): readonly Cause[] {
  const causes: Cause[] = []
  const paths = new Set<string>()
  for (const [index, mount] of mounts.entries()) {
    const where = `${at}[${index}]`
    const name = textAt(mount, 'name')
    const path = textAt(mount, 'mountPath')
    if (name === '') causes.push(required(`${where}.name`))
    else if (!volumeNames.has(name)) causes.push(notFoundField(`${where}.name`, name))
    if (path === '') causes.push(required(`${where}.mountPath`))
    else if (paths.has(path)) causes.push(invalidValue(`${where}.mountPath`, path, 'must be unique'))
    paths.add(path)
    const subPath = textAt(mount, 'subPath')
    if (subPath.startsWith('/')) causes.push(invalidValue(`${where}.subPath`, subPath, 'must be a relative path'))
    if (subPath.split('/').includes('..')) {
      causes.push(invalidValue(`${where}.subPath`, subPath, "must not contain '..'"))
    }
  }
  return causes
}

/** requests <= limits; what must be equal (hugepages, extended resources) is left to the scheduler. */
export function validateResources(resources: ObjectValue | undefined, at: string): readonly Cause[] {
  const causes: Cause[] = []
  const limits = new Map(entriesAt(resources, 'limits'))
  for (const [name, request] of entriesAt(resources, 'requests')) {
    causes.push(...validateNonNegative(request, `${at}.requests[${name}]`))
    const limit = limits.get(name)
    if (limit !== undefined && (compareQuantities(request, limit) ?? 0) > 0) {
      causes.push(invalidValue(`${at}.requests`, request, `must be less than or equal to ${name} limit of ${limit}`))
    }
  }
  for (const [name, limit] of limits) causes.push(...validateNonNegative(limit, `${at}.limits[${name}]`))
  return causes
}

export function validateNonNegative(quantity: string, at: string): readonly Cause[] {
  return quantity.startsWith('-') ? [invalidValue(at, quantity, 'must be greater than or equal to 0')] : []
}

const probeHandlers = ['exec', 'httpGet', 'tcpSocket', 'grpc'] as const

function validateProbe(probe: ObjectValue | undefined, at: string): readonly Cause[] {
  if (probe === undefined) return []
  const causes: Cause[] = []
  const handlers = probeHandlers.filter((handler) => isObject(probe[handler]))
  if (handlers.length === 0) causes.push(required(at, 'must specify a handler type'))
  for (const extra of handlers.slice(1)) {
    causes.push(forbiddenField(`${at}.${extra}`, 'may not specify more than 1 handler type'))
  }
  for (const field of [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
  ]) {
    const value = numberAt(probe, field) ?? 0
    if (value < 0) causes.push(invalidValue(`${at}.${field}`, value, 'must be greater than or equal to 0'))
  }
  for (const handler of ['httpGet', 'tcpSocket']) {
    const port = valueAt(probe, handler, 'port')
    if (typeof port !== 'number') continue
    causes.push(...portNumberProblems(port).map((problem) => invalidValue(`${at}.${handler}.port`, port, problem)))
  }
  return causes
}
