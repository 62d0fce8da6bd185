import type { Cause } from '../types.ts'
import { forbiddenField, invalidValue, required } from './field-error.ts'
import { labelValueProblems, qualifiedNameProblems } from './names.ts'
import { entriesAt, isObject, objectsAt, textAt, textsAt } from './object-fields.ts'
import { validateLabels } from './object-meta.ts'
import { appendAll } from '../append.ts'

/** metav1.LabelSelector (apimachinery pkg/apis/meta/v1/validation). */
export function validateLabelSelector(selector: unknown, at: string): readonly Cause[] {
  if (!isObject(selector)) return []
  const causes: Cause[] = [...validateLabels(selector, 'matchLabels', `${at}.matchLabels`)]
  for (const [index, expression] of objectsAt(selector, 'matchExpressions').entries()) {
    const where = `${at}.matchExpressions[${index}]`
    const key = textAt(expression, 'key')
    const operator = textAt(expression, 'operator')
    const values = textsAt(expression, 'values')
    if (operator === 'In' || operator === 'NotIn') {
      if (values.length === 0) {
        causes.push(required(`${where}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
      }
    } else if (operator === 'Exists' || operator === 'DoesNotExist') {
      if (values.length > 0) {
        causes.push(
          forbiddenField(`${where}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        )
      }
    } else causes.push(invalidValue(`${where}.operator`, operator, 'not a valid selector operator'))
    appendAll(
      causes,
      qualifiedNameProblems(key).map((problem) => invalidValue(`${where}.key`, key, problem)),
    )
    for (const [position, value] of values.entries()) {
      const problems = labelValueProblems(value)
      appendAll(
        causes,
        problems.map((problem) => invalidValue(`${where}.values[${position}]`, value, problem)),
      )
    }
  }
  return causes
}

export function isEmptySelector(selector: unknown): boolean {
  return entriesAt(selector, 'matchLabels').length === 0 && objectsAt(selector, 'matchExpressions').length === 0
}

/** Whether labels satisfy a valid selector; an empty one matches everything. */
export function selectorMatches(selector: unknown, labels: Readonly<Record<string, string>>): boolean {
  const has = (key: string): boolean => Object.hasOwn(labels, key)
  return (
    entriesAt(selector, 'matchLabels').every(([key, value]) => has(key) && labels[key] === value) &&
    objectsAt(selector, 'matchExpressions').every((expression) => {
      const key = textAt(expression, 'key')
      const value = labels[key]
      switch (textAt(expression, 'operator')) {
        case 'In':
          return has(key) && value !== undefined && textsAt(expression, 'values').includes(value)
        case 'NotIn':
          return !has(key) || value === undefined || !textsAt(expression, 'values').includes(value)
        case 'Exists':
          return has(key)
        case 'DoesNotExist':
          return !has(key)
        default:
          return false
      }
    })
  )
}

/** A selector as text, sorted by key as Go's labels.Selector prints it: Scale's status.selector. */
export function selectorText(selector: unknown): string {
  const requirements: (readonly [string, string])[] = entriesAt(selector, 'matchLabels').map(
    ([key, value]) => [key, `${key}=${value}`] as const,
  )
  for (const expression of objectsAt(selector, 'matchExpressions')) {
    const key = textAt(expression, 'key')
    const values = textsAt(expression, 'values').toSorted().join(',')
    const operator = textAt(expression, 'operator')
    const texts: Readonly<Record<string, string>> = {
      In: `${key} in (${values})`,
      NotIn: `${key} notin (${values})`,
      Exists: key,
      DoesNotExist: `!${key}`,
    }
    requirements.push([key, texts[operator] ?? key])
  }
  return requirements
    .toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, text]) => text)
    .join(',')
}
