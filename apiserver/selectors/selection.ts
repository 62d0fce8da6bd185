import { badRequest } from '../errors.ts'
import type { CachedObject, RequestScope } from '../types.ts'
import {
  checkFieldLabels,
  exactMatch,
  type FieldRequirement,
  matchesFields,
  parseFieldSelector,
} from './field-selector.ts'
import { type LabelRequirement, matchesLabels, parseLabelSelector } from './label-selector.ts'

/** Which objects of a resource a list, watch or deletecollection is about. */
export interface Selection {
  readonly labels: readonly LabelRequirement[]
  /** Without the exact match on metadata.name, which is `name`. */
  readonly fields: readonly FieldRequirement[]
  /** The one name selected; "" = any. */
  readonly name: string
  /** Neither selectors nor a name: everything matches. */
  readonly everything: boolean
}

/**
 * Reads labelSelector and fieldSelector.
 *
 * @param pathName - The name in the path, or the one the selector names; "" without.
 * @throws ApiError 400
 */
export function parseSelection(scope: RequestScope, query: URLSearchParams, pathName = ''): Selection {
  const labels = parseLabelSelector(query.get('labelSelector') ?? '')
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '')
  checkFieldLabels(fields, scope.strategy.fieldLabels)
  const selected = exactMatch(fields, 'metadata.name')
  if (pathName !== '' && fields.length > 0 && selected !== pathName) {
    throw badRequest("fieldSelector metadata.name doesn't match requested name")
  }
  const name = selected ?? pathName
  const rest = fields.filter(({ field, operator }) => !(field === 'metadata.name' && operator === '='))
  // Two different names select nothing; the second stays as a requirement that never holds.
  const others = fields.filter(
    ({ field, operator, value }) => field === 'metadata.name' && operator === '=' && value !== name,
  )
  return {
    labels,
    fields: [...rest, ...others],
    name,
    everything: labels.length === 0 && fields.length === 0 && name === '',
  }
}

export function matches(selection: Selection, object: CachedObject): boolean {
  if (selection.everything) return true
  if (selection.name !== '' && object.name !== selection.name) return false
  if (selection.labels.length > 0 && !matchesLabels(selection.labels, object.labels)) return false
  return selection.fields.length === 0 || matchesFields(selection.fields, object.fields)
}

/** For deletecollection: whether an object is selected by the query. */
export function objectMatcher(scope: RequestScope, query: URLSearchParams): (object: CachedObject) => boolean {
  const selection = parseSelection(scope, query)
  return (object) => matches(selection, object)
}
