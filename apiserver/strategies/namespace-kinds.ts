import { compareQuantities, type ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { duplicate, forbiddenField, immutableText, invalidValue, required } from '../validation/field-error.ts'
import { validateEndpointIp, validateIp } from '../validation/ip-address.ts'
import { dnsLabelProblems, portNumberProblems, qualifiedNameProblems } from '../validation/names.ts'
import { entriesAt, numberAt, objectsAt, textAt, textsAt } from '../validation/object-fields.ts'
import { validateAmount, validateLimitResourceName, validateQuotaResourceName } from '../validation/resource-amounts.ts'
import type { KindRules } from './kind-rules.ts'
import { appendAll } from '../append.ts'

/** What bounds a namespace, and where its Services lead: LimitRange, ResourceQuota, Endpoints. */

const limitTypes = new Set(['Container', 'PersistentVolumeClaim', 'Pod'])
const limitFields = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const

/** The smaller field must not exceed the larger one: what the path names, whose amount is shown, and the words. */
const limitOrders = [
  ['min', 'max', 'min', 'smaller', ['min value', 'max value']],
  ['min', 'defaultRequest', 'defaultRequest', 'larger', ['min value', 'default request value']],
  ['defaultRequest', 'max', 'defaultRequest', 'smaller', ['default request value', 'max value']],
  ['defaultRequest', 'default', 'defaultRequest', 'smaller', ['default request value', 'default limit value']],
  ['min', 'default', 'default', 'smaller', ['min value', 'default value']],
  ['default', 'max', 'default', 'larger', ['default value', 'max value']],
] as const

function validateLimit(limit: ObjectValue, at: string): readonly Cause[] {
  const type = textAt(limit, 'type')
  const causes: Cause[] = []
  const problems = qualifiedNameProblems(type)
  appendAll(
    causes,
    problems.map((problem) => invalidValue(`${at}.type`, type, problem)),
  )
  if (problems.length === 0 && !type.includes('/') && !limitTypes.has(type)) {
    causes.push(invalidValue(`${at}.type`, type, 'must be a standard limit type or fully qualified'))
  }
  const names = new Set<string>()
  for (const field of limitFields) {
    const entries = entriesAt(limit, field)
    if (type === 'Pod' && (field === 'default' || field === 'defaultRequest')) {
      if (entries.length > 0) {
        causes.push(forbiddenField(`${at}.${field}`, "may not be specified when `type` is 'Pod'"))
      }
      continue
    }
    for (const [name] of entries) {
      names.add(name)
      appendAll(causes, validateLimitResourceName(type, name, `${at}.${field}[${name}]`))
    }
  }
  if (
    type === 'PersistentVolumeClaim' &&
    textAt(limit, 'min', 'storage') === '' &&
    textAt(limit, 'max', 'storage') === ''
  ) {
    const text = 'either minimum or maximum storage value is required, but neither was provided'
    causes.push(required(`${at}.limits`, text))
  }
  return [...causes, ...[...names].flatMap((name) => validateOrder(limit, name, at))]
}

function validateOrder(limit: ObjectValue, name: string, at: string): readonly Cause[] {
  const causes: Cause[] = []
  for (const [smaller, larger, named, shown, [lowWords, highWords]] of limitOrders) {
    const low = textAt(limit, smaller, name)
    const high = textAt(limit, larger, name)
    if (low === '' || high === '' || compareQuantities(low, high) <= 0) continue
    const text = `${lowWords} ${low} is greater than ${highWords} ${high}`
    causes.push(invalidValue(`${at}.${named}[${name}]`, shown === 'smaller' ? low : high, text))
  }
  const ratio = textAt(limit, 'maxLimitRequestRatio', name)
  if (ratio !== '' && compareQuantities(ratio, '1') < 0) {
    causes.push(invalidValue(`${at}.maxLimitRequestRatio[${name}]`, ratio, `ratio ${ratio} is less than 1`))
  }
  return causes
}

export const limitRangeRules: KindRules = {
  validate(object) {
    const seen = new Set<string>()
    return objectsAt(object, 'spec', 'limits').flatMap((limit, index) => {
      const at = `spec.limits[${index}]`
      const type = textAt(limit, 'type')
      const again = seen.has(type) ? [duplicate(`${at}.type`, type)] : []
      seen.add(type)
      return [...validateLimit(limit, at), ...again]
    })
  },
}

const contradictions = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
] as const
const scopes = new Set([
  'BestEffort',
  'CrossNamespacePodAffinity',
  'NotBestEffort',
  'NotTerminating',
  'PriorityClass',
  'Terminating',
  'VolumeAttributesClass',
])

export const resourceQuotaRules: KindRules = {
  validate(object) {
    const given = textsAt(object, 'spec', 'scopes')
    const causes: Cause[] = entriesAt(object, 'spec', 'hard').flatMap(([name, amount]) => [
      ...validateQuotaResourceName(name, `spec.hard[${name}]`),
      ...validateAmount(name, amount, `spec.hard[${name}]`),
    ])
    for (const scope of given) {
      if (!scopes.has(scope)) causes.push(invalidValue('spec.scopes', given, 'unsupported scope'))
    }
    for (const pair of contradictions) {
      if (pair.every((scope) => given.includes(scope))) {
        causes.push(invalidValue('spec.scopes', given, 'conflicting scopes'))
      }
    }
    const at = 'spec.scopeSelector.matchExpressions'
    for (const expression of objectsAt(object, 'spec', 'scopeSelector', 'matchExpressions')) {
      appendAll(causes, validateScope(expression, at))
    }
    return causes
  },
  validateUpdate(object, old) {
    const before = textsAt(old, 'spec', 'scopes').toSorted()
    const after = textsAt(object, 'spec', 'scopes')
    if (before.join() === after.toSorted().join()) return []
    return [invalidValue('spec.scopes', after, immutableText)]
  },
}

function validateScope(expression: ObjectValue, at: string): readonly Cause[] {
  const scope = textAt(expression, 'scopeName')
  const operator = textAt(expression, 'operator')
  const values = textsAt(expression, 'values')
  const causes: Cause[] = []
  if (!scopes.has(scope)) causes.push(invalidValue(`${at}.scopeName`, scope, 'unsupported scope'))
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0) {
      const text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
      causes.push(required(`${at}.values`, text))
    }
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0) {
      const text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
      causes.push(invalidValue(`${at}.values`, values, text))
    }
  } else causes.push(invalidValue(`${at}.operator`, operator, 'not a valid selector operator'))
  return causes
}

function validateAddress(address: ObjectValue, at: string): readonly Cause[] {
  const ip = textAt(address, 'ip')
  const hostname = textAt(address, 'hostname')
  const causes: Cause[] = [...validateIp(ip, `${at}.ip`)]
  if (causes.length === 0) appendAll(causes, validateEndpointIp(ip, `${at}.ip`))
  if (hostname !== '') {
    appendAll(
      causes,
      dnsLabelProblems(hostname).map((problem) => invalidValue(`${at}.hostname`, hostname, problem)),
    )
  }
  return causes
}

export const endpointsRules: KindRules = {
  validate(object) {
    const causes: Cause[] = []
    for (const [index, subset] of objectsAt(object, 'subsets').entries()) {
      const at = `subsets[${index}]`
      const lists = ['addresses', 'notReadyAddresses'] as const
      if (lists.every((list) => objectsAt(subset, list).length === 0)) {
        causes.push(required(at, 'must specify `addresses` or `notReadyAddresses`'))
      }
      for (const list of lists) {
        for (const [position, address] of objectsAt(subset, list).entries()) {
          appendAll(causes, validateAddress(address, `${at}.${list}[${position}]`))
        }
      }
      const ports = objectsAt(subset, 'ports')
      for (const [position, port] of ports.entries()) {
        const where = `${at}.ports[${position}]`
        const name = textAt(port, 'name')
        const number = numberAt(port, 'port') ?? 0
        if (name === '' && ports.length > 1) causes.push(required(`${where}.name`))
        if (name !== '')
          appendAll(
            causes,
            dnsLabelProblems(name).map((problem) => invalidValue(`${where}.name`, name, problem)),
          )
        appendAll(
          causes,
          portNumberProblems(number).map((problem) => invalidValue(`${where}.port`, number, problem)),
        )
      }
    }
    return causes
  },
}
