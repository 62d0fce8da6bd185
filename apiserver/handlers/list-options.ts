import { badRequest, invalid } from '../errors.ts'
import type { Cause } from '../types.ts'

export type VersionMatch = '' | 'Exact' | 'NotOlderThan'

/** Query of a list or watch beside selectors (metav1.ListOptions). */
export interface ListOptions {
  /** undefined = unset; 0 = any. */
  readonly resourceVersion: number | undefined
  readonly match: VersionMatch
  /** Items; 0 = all. */
  readonly limit: number
  readonly continueToken: string
  readonly timeoutSeconds: number | undefined
  readonly allowWatchBookmarks: boolean
  readonly sendInitialEvents: boolean | undefined
}

/** @throws ApiError 400 for what cannot be read, 422 for what does not go together. */
export function parseListOptions(query: URLSearchParams, verb: 'list' | 'watch'): ListOptions {
  const text = (name: string): string => query.get(name) ?? ''
  const limit = integer(query, 'limit') ?? 0
  const timeoutSeconds = integer(query, 'timeoutSeconds')
  const sendInitialEvents = flag(query, 'sendInitialEvents')
  const causes = verb === 'list' ? listCauses(query, sendInitialEvents) : watchCauses(query, sendInitialEvents)
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', causes)
  return {
    resourceVersion: parseResourceVersion(text('resourceVersion')),
    match: text('resourceVersionMatch') as VersionMatch,
    limit: Math.max(0, limit),
    continueToken: text('continue'),
    timeoutSeconds,
    allowWatchBookmarks: flag(query, 'allowWatchBookmarks') ?? false,
    sendInitialEvents,
  }
}

/** @returns undefined when unset. Throws ApiError 400. */
export function parseResourceVersion(text: string): number | undefined {
  if (text === '') return undefined
  const revision = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(revision)) return revision
  const why = /^\d+$/.test(text) ? 'value out of range' : 'invalid syntax'
  throw badRequest(
    `resourceVersion: Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: parsing ${JSON.stringify(text)}: ${why}`,
  )
}

function integer(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  const value = Number(text)
  if (/^[+-]?\d+$/.test(text) && Number.isSafeInteger(value)) return value
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`)
}

/** Absent = undefined; "0" and "false" are false, anything else, nothing included, is true. */
function flag(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name)
  return text === null ? undefined : text !== '0' && text.toLowerCase() !== 'false'
}

function forbidden(field: string, why: string): Cause {
  return { reason: 'FieldValueForbidden', field, message: `Forbidden: ${why}` }
}

function unsupported(match: string, supported: readonly string[]): Cause {
  const list = supported.map((value) => JSON.stringify(value)).join(', ')
  return {
    reason: 'FieldValueNotSupported',
    field: 'resourceVersionMatch',
    message: `Unsupported value: ${JSON.stringify(match)}: supported values: ${list}`,
  }
}

/** apimachinery pkg/apis/meta/internalversion/validation. */
function listCauses(query: URLSearchParams, sendInitialEvents: boolean | undefined): readonly Cause[] {
  const causes: Cause[] = []
  const match = query.get('resourceVersionMatch') ?? ''
  const version = query.get('resourceVersion') ?? ''
  const on = 'resourceVersionMatch'
  if (match !== '') {
    if (version === '') causes.push(forbidden(on, `${on} is forbidden unless resourceVersion is provided`))
    if ((query.get('continue') ?? '') !== '') causes.push(forbidden(on, `${on} is forbidden when continue is provided`))
    if (match !== 'Exact' && match !== 'NotOlderThan') causes.push(unsupported(match, ['Exact', 'NotOlderThan', '']))
    if (match === 'Exact' && version === '0') {
      causes.push(forbidden(on, `${on} "exact" is forbidden for resourceVersion "0"`))
    }
  }
  if (sendInitialEvents !== undefined) {
    causes.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  }
  return causes
}

function watchCauses(query: URLSearchParams, sendInitialEvents: boolean | undefined): readonly Cause[] {
  const causes: Cause[] = []
  const match = query.get('resourceVersionMatch') ?? ''
  const on = 'resourceVersionMatch'
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    causes.push(forbidden(on, `sendInitialEvents requires setting ${on} to NotOlderThan`))
  }
  if (match !== '') {
    if (sendInitialEvents === undefined) {
      causes.push(forbidden(on, `${on} is forbidden for watch unless sendInitialEvents is provided`))
    }
    if (match !== 'NotOlderThan') causes.push(unsupported(match, ['NotOlderThan']))
    if ((query.get('continue') ?? '') !== '') causes.push(forbidden(on, `${on} is forbidden when continue is provided`))
  }
  return causes
}
