import type { Cause, StatusDetails } from './types.ts'

/** metav1.StatusReason; the words clients switch on. */
export type StatusReason =
  | ''
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Gone'
  | 'Expired'
  | 'Invalid'
  | 'BadRequest'
  | 'Unauthorized'
  | 'Forbidden'
  | 'MethodNotAllowed'
  | 'NotAcceptable'
  | 'UnsupportedMediaType'
  | 'RequestEntityTooLarge'
  | 'TooManyRequests'
  | 'InternalError'
  | 'ServerTimeout'
  | 'ServiceUnavailable'
  | 'Timeout'

/** A resource as error texts name it: "pods", "deployments.apps". */
export interface GroupResource {
  readonly group: string
  readonly resource: string
}

/** Every failure a client sees. Thrown anywhere in the API layer; status.ts turns it into a v1 Status. */
export class ApiError extends Error {
  readonly code: number
  readonly reason: StatusReason
  readonly details: StatusDetails | undefined
  /** Status.metadata.continue of an expired list. */
  readonly continueToken: string | undefined
  constructor(
    code: number,
    reason: StatusReason,
    message: string,
    options?: { details?: StatusDetails; cause?: unknown; continueToken?: string },
  ) {
    super(message, { cause: options?.cause })
    this.name = 'ApiError'
    this.code = code
    this.reason = reason
    this.details = options?.details
    this.continueToken = options?.continueToken
  }
}

export const qualified = (of: GroupResource): string => (of.group === '' ? of.resource : `${of.resource}.${of.group}`)

const details = (of: GroupResource, name: string): StatusDetails => ({ name, group: of.group, kind: of.resource })

export function notFound(of: GroupResource, name: string): ApiError {
  return new ApiError(404, 'NotFound', `${qualified(of)} "${name}" not found`, { details: details(of, name) })
}

export function alreadyExists(of: GroupResource, name: string): ApiError {
  return new ApiError(409, 'AlreadyExists', `${qualified(of)} "${name}" already exists`, { details: details(of, name) })
}

export function conflict(of: GroupResource, name: string, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${qualified(of)} "${name}": ${why}`
  return new ApiError(409, 'Conflict', message, { details: details(of, name) })
}

/** The text that clients match on to retry (kubernetes/apiserver registry/generic/registry/store.go). */
export const modifiedText =
  'the object has been modified; please apply your changes to the latest version and try again'

export function badRequest(message: string): ApiError {
  return new ApiError(400, 'BadRequest', message)
}

/** Text of all causes of one answer; beyond, they are counted. The answer has it twice. */
const causesCharactersMax = 2 * 1024 * 1024

/** `of.resource` is the KIND here, as in Go's NewInvalid. */
export function invalid(
  kind: { readonly group: string; readonly kind: string },
  name: string,
  causes: readonly Cause[],
): ApiError {
  const told = bounded(causes)
  const texts = told.map((cause) => `${cause.field}: ${cause.message}`)
  if (told.length < causes.length) texts.push(`and ${causes.length - told.length} more`)
  const list = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`
  const who = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`
  return new ApiError(422, 'Invalid', `${who} "${name}" is invalid: ${list}`, {
    details: { name, group: kind.group, kind: kind.kind, causes: told },
  })
}

/** Of very many causes, as many as an answer of bounded size can tell; the first in any case. */
function bounded(causes: readonly Cause[]): readonly Cause[] {
  let characters = 0
  const end = causes.findIndex((cause, index) => {
    characters += cause.field.length + cause.message.length
    return index > 0 && characters > causesCharactersMax
  })
  return end === -1 ? causes : causes.slice(0, end)
}

export function forbidden(of: GroupResource, name: string, why: string): ApiError {
  const subject =
    name === '' ? `${qualified(of)} is forbidden: ${why}` : `${qualified(of)} "${name}" is forbidden: ${why}`
  return new ApiError(403, 'Forbidden', subject, { details: details(of, name) })
}

/** The router's own answer: the path exists, the method does not (kubernetes/apiserver api/errors NewGenericServerResponse). */
export function methodNotAllowed(): ApiError {
  return new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {
    details: {},
  })
}

/** The router's own answer for a path that does not exist below a group version that does. */
export function noSuchResource(): ApiError {
  return new ApiError(404, 'NotFound', 'the server could not find the requested resource', { details: {} })
}

export function expired(message: string, continueToken?: string): ApiError {
  return new ApiError(410, 'Expired', message, continueToken === undefined ? {} : { continueToken })
}

export function tooLargeResourceVersion(asked: number, current: number): ApiError {
  return new ApiError(504, 'Timeout', `Too large resource version: ${asked}, current: ${current}`, {
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', field: '', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  })
}

export function requestEntityTooLarge(message: string): ApiError {
  return new ApiError(413, 'RequestEntityTooLarge', message)
}

export function internalError(cause: unknown): ApiError {
  const text = cause instanceof Error ? cause.message : String(cause)
  return new ApiError(500, 'InternalError', `Internal error occurred: ${text}`, {
    cause,
    details: { causes: [{ reason: '', field: '', message: text }] },
  })
}
