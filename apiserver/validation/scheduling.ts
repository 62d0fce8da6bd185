import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { duplicate, forbiddenField, invalidValue, notSupported, required } from './field-error.ts'
import { validateLabelSelector } from './label-selector.ts'
import { dnsLabelProblems, dnsSubdomainProblems, labelValueProblems, qualifiedNameProblems } from './names.ts'
import { numberAt, objectAt, objectsAt, textAt, textsAt, valueAt } from './object-fields.ts'
import { positive } from './ranges.ts'
import { appendAll } from '../append.ts'

/** Where a pod may run: affinities, spreading, tolerations. */

export function validateTolerations(tolerations: readonly ObjectValue[], at: string): readonly Cause[] {
  const causes: Cause[] = []
  for (const [index, toleration] of tolerations.entries()) {
    const where = `${at}[${index}]`
    const key = textAt(toleration, 'key')
    const operator = textAt(toleration, 'operator')
    const value = textAt(toleration, 'value')
    if (key !== '') {
      appendAll(
        causes,
        qualifiedNameProblems(key).map((problem) => invalidValue(`${where}.key`, key, problem)),
      )
    } else if (operator !== 'Exists') {
      const text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
      causes.push(invalidValue(`${where}.operator`, operator, text))
    }
    if (valueAt(toleration, 'tolerationSeconds') !== undefined && textAt(toleration, 'effect') !== 'NoExecute') {
      const text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
      causes.push(invalidValue(`${where}.effect`, textAt(toleration, 'effect'), text))
    }
    if (operator === 'Exists') {
      if (value !== '') {
        causes.push(invalidValue(`${where}.operator`, value, "value must be empty when `operator` is 'Exists'"))
      }
    } else if (operator === 'Equal' || operator === '') {
      const problems = labelValueProblems(value)
      if (problems.length > 0) causes.push(invalidValue(`${where}.operator`, value, problems.join(';')))
    } else causes.push(notSupported(`${where}.operator`, operator, ['Equal', 'Exists']))
  }
  return causes
}

export function validateAffinity(affinity: ObjectValue | undefined, at: string): readonly Cause[] {
  if (affinity === undefined) return []
  const required = 'requiredDuringSchedulingIgnoredDuringExecution'
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution'
  const node = `${at}.nodeAffinity`
  const selector = objectAt(affinity, 'nodeAffinity', required)
  const causes: Cause[] = []
  if (selector !== undefined) appendAll(causes, validateNodeSelector(selector, `${node}.${required}`))
  for (const [index, term] of objectsAt(affinity, 'nodeAffinity', preferred).entries()) {
    const where = `${node}.${preferred}[${index}]`
    appendAll(causes, validateWeight(term, where))
    appendAll(causes, validateNodeSelectorTerm(objectAt(term, 'preference') ?? {}, `${where}.preference`, true))
  }
  for (const kind of ['podAffinity', 'podAntiAffinity']) {
    for (const [index, term] of objectsAt(affinity, kind, required).entries()) {
      appendAll(causes, validatePodAffinityTerm(term, `${at}.${kind}.${required}[${index}]`))
    }
    for (const [index, weighted] of objectsAt(affinity, kind, preferred).entries()) {
      const where = `${at}.${kind}.${preferred}[${index}]`
      appendAll(causes, validateWeight(weighted, where))
      appendAll(
        causes,
        validatePodAffinityTerm(objectAt(weighted, 'podAffinityTerm') ?? {}, `${where}.podAffinityTerm`),
      )
    }
  }
  return causes
}

function validateWeight(term: ObjectValue, at: string): readonly Cause[] {
  const weight = numberAt(term, 'weight') ?? 0
  return weight >= 1 && weight <= 100 ? [] : [invalidValue(`${at}.weight`, weight, 'must be in the range 1-100')]
}

export function validateNodeSelector(selector: ObjectValue, at: string): readonly Cause[] {
  const terms = objectsAt(selector, 'nodeSelectorTerms')
  if (terms.length === 0) return [required(`${at}.nodeSelectorTerms`, 'must have at least one node selector term')]
  return terms.flatMap((term, index) => validateNodeSelectorTerm(term, `${at}.nodeSelectorTerms[${index}]`, false))
}

function validateNodeSelectorTerm(term: ObjectValue, at: string, anyValues: boolean): readonly Cause[] {
  return [
    ...objectsAt(term, 'matchExpressions').flatMap((one, index) =>
      validateNodeLabel(one, `${at}.matchExpressions[${index}]`, anyValues),
    ),
    ...objectsAt(term, 'matchFields').flatMap((one, index) => validateNodeField(one, `${at}.matchFields[${index}]`)),
  ]
}

function validateNodeLabel(requirement: ObjectValue, at: string, anyValues: boolean): readonly Cause[] {
  const operator = textAt(requirement, 'operator')
  const key = textAt(requirement, 'key')
  const values = textsAt(requirement, 'values')
  const causes: Cause[] = []
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0) {
      causes.push(required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
    }
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0) {
      const text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
      causes.push(forbiddenField(`${at}.values`, text))
    }
  } else if (operator === 'Gt' || operator === 'Lt') {
    if (values.length !== 1) {
      causes.push(required(`${at}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    }
  } else causes.push(invalidValue(`${at}.operator`, operator, 'not a valid selector operator'))
  appendAll(
    causes,
    qualifiedNameProblems(key).map((problem) => invalidValue(`${at}.key`, key, problem)),
  )
  if (anyValues) return causes
  for (const [index, value] of values.entries()) {
    appendAll(
      causes,
      labelValueProblems(value).map((problem) => invalidValue(`${at}.values[${index}]`, value, problem)),
    )
  }
  return causes
}

function validateNodeField(requirement: ObjectValue, at: string): readonly Cause[] {
  const operator = textAt(requirement, 'operator')
  const key = textAt(requirement, 'key')
  const values = textsAt(requirement, 'values')
  const causes: Cause[] = []
  if (operator !== 'In' && operator !== 'NotIn') {
    causes.push(invalidValue(`${at}.operator`, operator, 'not a valid selector operator'))
  } else if (values.length !== 1) {
    const text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
    causes.push(required(`${at}.values`, text))
  }
  if (key !== 'metadata.name') return [...causes, invalidValue(`${at}.key`, key, 'not a valid field selector key')]
  for (const [index, value] of values.entries()) {
    appendAll(
      causes,
      dnsSubdomainProblems(value).map((problem) => invalidValue(`${at}.values[${index}]`, value, problem)),
    )
  }
  return causes
}

function validatePodAffinityTerm(term: ObjectValue, at: string): readonly Cause[] {
  const topologyKey = textAt(term, 'topologyKey')
  return [
    ...validateLabelSelector(term['labelSelector'], `${at}.labelSelector`),
    ...validateLabelSelector(term['namespaceSelector'], `${at}.namespaceSelector`),
    ...textsAt(term, 'namespaces').flatMap((name) =>
      dnsLabelProblems(name).map((problem) => invalidValue(`${at}.namespace`, name, problem)),
    ),
    ...(topologyKey === '' ? [required(`${at}.topologyKey`, 'can not be empty')] : []),
    ...qualifiedNameProblems(topologyKey).map((problem) => invalidValue(`${at}.topologyKey`, topologyKey, problem)),
  ]
}

export function validateTopologySpread(constraints: readonly ObjectValue[], at: string): readonly Cause[] {
  const causes: Cause[] = []
  const pairOf = (constraint: ObjectValue): string =>
    JSON.stringify([textAt(constraint, 'topologyKey'), textAt(constraint, 'whenUnsatisfiable')])
  const lastOf = new Map(constraints.map((constraint, index) => [pairOf(constraint), index]))
  for (const [index, constraint] of constraints.entries()) {
    const where = `${at}[${index}]`
    const key = textAt(constraint, 'topologyKey')
    const action = textAt(constraint, 'whenUnsatisfiable')
    appendAll(causes, positive(numberAt(constraint, 'maxSkew') ?? 0, `${where}.maxSkew`))
    if (key === '') causes.push(required(`${where}.topologyKey`, 'can not be empty'))
    if (action === '') {
      causes.push(notSupported(`${where}.whenUnsatisfiable`, action, ['DoNotSchedule', 'ScheduleAnyway']))
    }
    if (lastOf.get(pairOf(constraint)) !== index)
      causes.push(duplicate(`${where}.{topologyKey, whenUnsatisfiable}`, `{${key}, ${action}}`))
    const minDomains = numberAt(constraint, 'minDomains')
    appendAll(causes, positive(minDomains, `${where}.minDomains`))
    if (minDomains !== undefined && action !== 'DoNotSchedule') {
      const text = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${action}`
      causes.push(invalidValue(`${where}.minDomains`, minDomains, text))
    }
    appendAll(causes, validateLabelSelector(constraint['labelSelector'], `${where}.labelSelector`))
  }
  return causes
}
