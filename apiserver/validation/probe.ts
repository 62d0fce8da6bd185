import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { forbiddenField, invalidValue, required } from './field-error.ts'
import { headerNameProblems, portNameProblems, portNumberProblems } from './names.ts'
import { isObject, numberAt, objectAt, objectsAt, textAt, textsAt, valueAt } from './object-fields.ts'
import { nonNegative } from './ranges.ts'
import { appendAll } from '../append.ts'

/** Probes and lifecycle hooks: exactly one handler, numbers in range. */

const handlerKinds = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const

function validateHandler(owner: ObjectValue, at: string, graceSeconds: number | undefined): readonly Cause[] {
  const [first, ...more] = handlerKinds.filter((kind) => isObject(owner[kind]))
  if (first === undefined) return [required(at, 'must specify a handler type')]
  return [
    ...validateAction(first, objectAt(owner, first) ?? {}, `${at}.${first}`, graceSeconds),
    ...more.map((kind) => forbiddenField(`${at}.${kind}`, 'may not specify more than 1 handler type')),
  ]
}

function validateAction(
  kind: (typeof handlerKinds)[number],
  action: ObjectValue,
  at: string,
  graceSeconds: number | undefined,
): readonly Cause[] {
  switch (kind) {
    case 'exec':
      return textsAt(action, 'command').length === 0 ? [required(`${at}.command`)] : []
    case 'httpGet':
      return [
        ...(textAt(action, 'path') === '' ? [required(`${at}.path`)] : []),
        ...validatePort(valueAt(action, 'port'), `${at}.port`),
        ...objectsAt(action, 'httpHeaders').flatMap((header) => {
          const name = textAt(header, 'name')
          return headerNameProblems(name).map((problem) => invalidValue(`${at}.httpHeaders`, name, problem))
        }),
      ]
    case 'tcpSocket':
    case 'grpc':
      return validatePort(valueAt(action, 'port'), `${at}.port`)
    case 'sleep': {
      const seconds = numberAt(action, 'seconds') ?? 0
      if (graceSeconds === undefined || (seconds >= 0 && seconds <= graceSeconds)) return []
      const text = `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`
      return [invalidValue(at, seconds, text)]
    }
  }
}

/** A number or the name of a port; absent reads as 0, which is neither. */
export function validatePort(port: unknown, at: string): readonly Cause[] {
  if (typeof port === 'string') return portNameProblems(port).map((problem) => invalidValue(at, port, problem))
  const number = typeof port === 'number' ? port : 0
  return portNumberProblems(number).map((problem) => invalidValue(at, number, problem))
}

const probeNumbers = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
] as const

export function validateProbes(container: ObjectValue, at: string, graceSeconds: number | undefined): readonly Cause[] {
  const causes: Cause[] = []
  for (const kind of ['livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
    const probe = objectAt(container, kind)
    if (probe === undefined) continue
    const where = `${at}.${kind}`
    appendAll(causes, validateHandler(probe, where, graceSeconds))
    for (const field of probeNumbers) appendAll(causes, nonNegative(numberAt(probe, field), `${where}.${field}`))
    const grace = numberAt(probe, 'terminationGracePeriodSeconds')
    const graceAt = `${where}.terminationGracePeriodSeconds`
    if (grace !== undefined && grace <= 0) causes.push(invalidValue(graceAt, grace, 'must be greater than 0'))
    if (kind === 'readinessProbe') {
      if (grace !== undefined) causes.push(invalidValue(graceAt, grace, 'must not be set for readinessProbes'))
    } else {
      // A container is not alive "for the second time": one success is all there is to know.
      const successes = numberAt(probe, 'successThreshold') ?? 0
      if (successes !== 1) causes.push(invalidValue(`${where}.successThreshold`, successes, 'must be 1'))
    }
  }
  return causes
}

export function validateLifecycle(
  container: ObjectValue,
  at: string,
  graceSeconds: number | undefined,
): readonly Cause[] {
  return (['postStart', 'preStop'] as const).flatMap((hook) => {
    const handler = objectAt(container, 'lifecycle', hook)
    return handler === undefined ? [] : validateHandler(handler, `${at}.lifecycle.${hook}`, graceSeconds)
  })
}
