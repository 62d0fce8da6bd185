import { StorageError } from '../../storage/index.ts'
import { ApiError, expired, type GroupResource, internalError, qualified, requestEntityTooLarge } from '../errors.ts'
import { noLeaderRetrySeconds } from './limits.ts'

/**
 * What a client is told when the store refused or lost a write. Retry-safe failures are 500 ServerTimeout with a delay;
 * an unknown outcome is 504 Timeout: the client must look before it tries again.
 */
export function storageFailure(error: unknown, operation: string, of: GroupResource, name: string): unknown {
  if (!(error instanceof StorageError)) return error
  const details = { name, group: of.group, kind: of.resource }
  switch (error.code) {
    case 'ERR_NO_LEADER':
    case 'ERR_OVERLOADED':
    case 'ERR_STOPPED':
      return new ApiError(
        500,
        'ServerTimeout',
        `The ${operation} operation against ${qualified(of)} could not be completed at this time, please try again.`,
        { cause: error, details: { ...details, retryAfterSeconds: noLeaderRetrySeconds } },
      )
    case 'ERR_OUTCOME_UNKNOWN':
    case 'ERR_ABORTED':
      return new ApiError(
        504,
        'Timeout',
        `Timeout: request did not complete within the allotted time: the outcome of the ${operation} is not known`,
        { cause: error, details },
      )
    case 'ERR_TOO_LARGE':
    case 'ERR_TOO_MANY_OPS':
      return requestEntityTooLarge('etcdserver: request is too large')
    case 'ERR_COMPACTED':
      return expired('The resourceVersion for the provided list is too old.')
    case 'ERR_FUTURE_REVISION':
    case 'ERR_EMPTY_KEY':
    case 'ERR_DUPLICATE_KEY':
    case 'ERR_LEASE_NOT_FOUND':
    case 'ERR_LEASE_EXISTS':
    case 'ERR_LEASE_TTL_TOO_LARGE':
    case 'ERR_CORRUPT':
    case 'ERR_FORMAT':
    case 'ERR_DATA_DIR':
      return internalError(error)
    default:
      return error.code satisfies never
  }
}
