import { parseDuration } from '../duration.ts'
import { badRequest } from '../errors.ts'

/**
 * Milliseconds that a request may take: what ?timeout= asks, at most `timeoutMsMax`.
 * @throws ApiError 400 when ?timeout= is not a duration
 */
export function deadlineMs(query: URLSearchParams, timeoutMsMax: number): number {
  const asked = query.get('timeout')
  if (asked === null || asked === '') return timeoutMsMax
  const ms = parseDuration(asked)
  if (ms === undefined) {
    throw badRequest(`invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(asked)}`)
  }
  return ms <= 0 ? timeoutMsMax : Math.min(ms, timeoutMsMax)
}
