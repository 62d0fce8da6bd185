import { SchemaError } from '../schemas/index.ts'
import { StorageError } from '../storage/index.ts'
import { ApiError, badRequest, expired, internalError, requestEntityTooLarge } from './errors.ts'
import type { StatusDetails } from './types.ts'

/** A v1 Status in Go's field order (apimachinery apis/meta/v1 Status, StatusDetails, StatusCause). */
export interface StatusObject {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: { readonly continue?: string }
  readonly status: 'Failure'
  readonly message: string
  readonly reason?: string
  readonly details?: object
  readonly code: number
}

/** The one place where any failure becomes what a client sees. */
export function apiErrorOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof StorageError) return ofStorage(error)
  if (error instanceof SchemaError) return ofSchema(error)
  return internalError(error)
}

function ofStorage(error: StorageError): ApiError {
  const { cause, message } = { cause: error, message: error.message }
  switch (error.code) {
    case 'ERR_COMPACTED':
      return expired('The resourceVersion for the provided list is too old.')
    case 'ERR_FUTURE_REVISION':
      return new ApiError(
        504,
        'Timeout',
        `Too large resource version, current: ${error.currentRevision ?? 'unknown'}`,
        {
          cause,
          details: {
            causes: [{ reason: 'ResourceVersionTooLarge', field: '', message: 'Too large resource version' }],
            retryAfterSeconds: 1,
          },
        },
      )
    case 'ERR_TOO_LARGE':
    case 'ERR_TOO_MANY_OPS':
      return requestEntityTooLarge(`Request entity too large: ${message}`)
    case 'ERR_NO_LEADER':
    case 'ERR_STOPPED':
      // nothing was written: as Go's NewServerTimeout, which clients retry
      return new ApiError(500, 'ServerTimeout', `the store could not be reached, try again: ${message}`, {
        cause,
        details: { retryAfterSeconds: 1 },
      })
    case 'ERR_OVERLOADED':
      return new ApiError(429, 'TooManyRequests', 'the store is overloaded, please try again later', {
        cause,
        details: { retryAfterSeconds: 1 },
      })
    case 'ERR_OUTCOME_UNKNOWN':
    case 'ERR_ABORTED':
      return timeoutError({ cause })
    case 'ERR_EMPTY_KEY':
    case 'ERR_DUPLICATE_KEY':
    case 'ERR_LEASE_NOT_FOUND':
    case 'ERR_LEASE_EXISTS':
    case 'ERR_LEASE_TTL_TOO_LARGE':
    case 'ERR_CORRUPT':
    case 'ERR_FORMAT':
    case 'ERR_DATA_DIR':
      return internalError(error)
  }
}

function ofSchema(error: SchemaError): ApiError {
  switch (error.code) {
    case 'ERR_PATCH_TEST':
      return new ApiError(422, 'Invalid', error.message, { cause: error })
    case 'ERR_SYNTAX':
    case 'ERR_DEPTH':
    case 'ERR_TYPE':
    case 'ERR_PATCH':
      return badRequest(error.message)
  }
}

/** The request's deadline passed; what it asked for may still have happened (kubernetes/apiserver server/filters/timeout.go). */
export function timeoutError(options?: { cause?: unknown }): ApiError {
  return new ApiError(504, 'Timeout', 'Timeout: request did not complete within the allotted timeout', {
    cause: options?.cause,
    details: {},
  })
}

/** A write used up what any write may take, whatever its request allows (endpoints/handlers/finisher/finisher.go). */
export function mutationTimeoutError(): ApiError {
  const text = 'Timeout: request did not complete within requested timeout - context deadline exceeded'
  return new ApiError(504, 'Timeout', text, { details: {} })
}

export function unauthorized(): ApiError {
  return new ApiError(401, 'Unauthorized', 'Unauthorized')
}

export function tooManyRequests(): ApiError {
  return new ApiError(429, 'TooManyRequests', 'Too many requests, please try again later.', {
    details: { retryAfterSeconds: 1 },
  })
}

export function statusOf(error: ApiError): StatusObject {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: error.continueToken === undefined ? {} : { continue: error.continueToken },
    status: 'Failure',
    message: error.message,
    ...(error.reason === '' ? {} : { reason: error.reason }),
    ...(error.details === undefined ? {} : { details: detailsOf(error.details) }),
    code: error.code,
  }
}

function detailsOf(details: StatusDetails): object {
  return {
    ...(details.name ? { name: details.name } : {}),
    ...(details.group ? { group: details.group } : {}),
    ...(details.kind ? { kind: details.kind } : {}),
    ...(details.uid ? { uid: details.uid } : {}),
    ...(details.causes && details.causes.length > 0
      ? {
          causes: details.causes.map((cause) => ({
            ...(cause.reason ? { reason: cause.reason } : {}),
            ...(cause.message ? { message: cause.message } : {}),
            ...(cause.field ? { field: cause.field } : {}),
          })),
        }
      : {}),
    ...(details.retryAfterSeconds ? { retryAfterSeconds: details.retryAfterSeconds } : {}),
  }
}

const htmlEscapes: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
}

/** JSON as Go's encoder writes it: HTML-escaped. `indent` as for people (?pretty). No final newline. */
export function goJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replaceAll(
    /[<>&\u2028\u2029]/g,
    (found) => htmlEscapes[found] ?? found,
  )
}
