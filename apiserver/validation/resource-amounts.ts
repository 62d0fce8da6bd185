import { compareQuantities, type ObjectValue, parseQuantity } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { forbiddenField, invalidValue, notFoundField, notSupported, required } from './field-error.ts'
import { qualifiedNameProblems } from './names.ts'
import { entriesAt, objectsAt, textAt } from './object-fields.ts'
import { appendAll } from '../append.ts'

/** Names and amounts of resources: requests and limits, quotas, capacities. */

const hugePages = 'hugepages-'
const containerResources = new Set(['cpu', 'memory', 'ephemeral-storage'])
const countedObjects = [
  'pods',
  'services',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
]
const quotaResources = new Set([
  ...['cpu', 'memory', 'ephemeral-storage'].flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
  'requests.storage',
  ...countedObjects,
])
const standardResources = new Set([...quotaResources, 'storage'])
const integerResources = new Set(countedObjects)
const overcommitPrefix = 'kubernetes.io/'

export const isHugePages = (name: string): boolean => name.startsWith(hugePages)
const isNative = (name: string): boolean => !name.includes('/') || name.includes(overcommitPrefix)
const isExtended = (name: string): boolean =>
  !isNative(name) && !name.startsWith('requests.') && qualifiedNameProblems(`requests.${name}`).length === 0
/** More may be promised than there is: not of devices and huge pages. */
const isOvercommitted = (name: string): boolean => isNative(name) && !isHugePages(name)

function validateResourceName(name: string, at: string): readonly Cause[] {
  const problems = qualifiedNameProblems(name)
  if (problems.length > 0) return problems.map((problem) => invalidValue(at, name, problem))
  if (
    name.includes('/') ||
    standardResources.has(name) ||
    isHugePages(name) ||
    name.startsWith('requests.hugepages-')
  ) {
    return []
  }
  return [invalidValue(at, name, 'must be a standard resource type or fully qualified')]
}

export function validateContainerResourceName(name: string, at: string): readonly Cause[] {
  const causes = [...validateResourceName(name, at)]
  if (!name.includes('/')) {
    if (!containerResources.has(name) && !isHugePages(name)) {
      causes.push(invalidValue(at, name, 'must be a standard resource for containers'))
    }
  } else if (!isNative(name) && !isExtended(name)) {
    causes.push(invalidValue(at, name, "doesn't follow extended resource name standard"))
  }
  return causes
}

function validatePodResourceName(name: string, at: string): readonly Cause[] {
  const causes = validateResourceName(name, at)
  if (causes.length > 0 || name === 'cpu' || name === 'memory' || isHugePages(name)) return causes
  return [notSupported(at, name, ['cpu', 'hugepages-', 'memory'])]
}

export function validateQuotaResourceName(name: string, at: string): readonly Cause[] {
  const causes = [...validateResourceName(name, at)]
  const known = quotaResources.has(name) || isHugePages(name) || name.startsWith('requests.hugepages-')
  if (!name.includes('/') && !known) causes.push(invalidValue(at, name, 'must be a standard resource for quota'))
  return causes
}

/** LimitRange: only items for pods and containers are bound to what containers can have. */
export function validateLimitResourceName(type: string, name: string, at: string): readonly Cause[] {
  return type === 'Pod' || type === 'Container'
    ? validateContainerResourceName(name, at)
    : validateResourceName(name, at)
}

export function validateAmount(name: string, amount: string, at: string): readonly Cause[] {
  const causes: Cause[] = []
  if (amount.startsWith('-')) causes.push(invalidValue(at, amount, 'must be greater than or equal to 0'))
  if ((integerResources.has(name) || isExtended(name)) && !isWhole(amount)) {
    causes.push(invalidValue(at, amount, 'must be an integer'))
  }
  return causes
}

export function validatePositiveAmount(amount: string, at: string): readonly Cause[] {
  return compareQuantities(amount, '0') > 0 ? [] : [invalidValue(at, amount, 'must be greater than zero')]
}

function isWhole(amount: string): boolean {
  const { mantissa, exponent } = parseQuantity(amount)
  return exponent >= 0 || mantissa % 10n ** BigInt(-exponent) === 0n
}

export interface ResourceRules {
  readonly of: 'container' | 'pod'
  /** spec.resourceClaims of the pod. */
  readonly claimNames: ReadonlySet<string>
}

export function validateResources(
  resources: ObjectValue | undefined,
  at: string,
  rules: ResourceRules,
): readonly Cause[] {
  if (resources === undefined) return []
  const causes: Cause[] = []
  const nameRule = rules.of === 'pod' ? validatePodResourceName : validateContainerResourceName
  const limits = new Map(entriesAt(resources, 'limits'))
  const requests = entriesAt(resources, 'requests')
  for (const [name, limit] of limits) {
    appendAll(causes, nameRule(name, `${at}.limits[${name}]`))
    appendAll(causes, validateAmount(name, limit, `${at}.limits[${name}]`))
  }
  for (const [name, request] of requests) {
    const where = `${at}.requests[${name}]`
    appendAll(causes, nameRule(name, where))
    appendAll(causes, validateAmount(name, request, where))
    appendAll(causes, validateAgainstLimit(name, request, limits.get(name), at))
  }
  const names = [...limits.keys(), ...requests.map(([name]) => name)]
  if (names.some(isHugePages) && !names.includes('cpu') && !names.includes('memory')) {
    causes.push(forbiddenField(at, 'HugePages require cpu or memory'))
  }
  for (const [index, claim] of objectsAt(resources, 'claims').entries()) {
    const name = textAt(claim, 'name')
    if (name === '') causes.push(required(`${at}.claims[${index}]`))
    else if (!rules.claimNames.has(name)) causes.push(notFoundField(`${at}.claims[${index}]`, name))
  }
  return causes
}

function validateAgainstLimit(name: string, request: string, limit: string | undefined, at: string): readonly Cause[] {
  if (limit === undefined) {
    return isOvercommitted(name) ? [] : [required(`${at}.limits`, 'Limit must be set for non overcommitable resources')]
  }
  const difference = compareQuantities(request, limit)
  if (difference !== 0 && !isOvercommitted(name)) {
    return [invalidValue(`${at}.requests`, request, `must be equal to ${name} limit of ${limit}`)]
  }
  if (difference <= 0) return []
  return [invalidValue(`${at}.requests`, request, `must be less than or equal to ${name} limit of ${limit}`)]
}
