import { parseDuration } from '../duration.ts'
import { type ApiError, badRequest } from '../errors.ts'
import { mutationTimeoutMsMax } from '../http-limits.ts'
import { isMutating } from '../request-info.ts'
import { mutationTimeoutError, timeoutError } from '../status.ts'
import type { RequestInfo } from '../types.ts'

export interface Deadline {
  readonly ms: number
  /** The answer when it has passed. */
  readonly expired: () => ApiError
}

/**
 * How long a request that is not long-running may take: what ?timeout= asks, at most `timeoutMsMax`; a write never more
 * than mutationTimeoutMsMax.
 *
 * @throws ApiError 400 when ?timeout= is not a duration
 */
export function deadlineOf(info: RequestInfo, query: URLSearchParams, timeoutMsMax: number): Deadline {
  const ms = timeoutMs(query, timeoutMsMax)
  if (info.isResourceRequest && isMutating(info) && ms > mutationTimeoutMsMax) {
    return { ms: mutationTimeoutMsMax, expired: mutationTimeoutError }
  }
  return { ms, expired: timeoutError }
}

function timeoutMs(query: URLSearchParams, timeoutMsMax: number): number {
  const asked = query.get('timeout')
  if (asked === null || asked === '') return timeoutMsMax
  const ms = parseDuration(asked)
  if (ms === undefined) {
    throw badRequest(`invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(asked)}`)
  }
  return ms <= 0 ? timeoutMsMax : Math.min(ms, timeoutMsMax)
}
