import { statusMedia } from './encoding/negotiation.ts'
import { protobufValue } from './encoding/protobuf-encoder.ts'
import { yamlText } from './encoding/yaml-text.ts'
import type { ApiError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { goJson, statusOf } from './status.ts'

/** Answers with a v1 Status; mirrors retryAfterSeconds into the header (handlers/responsewriters/status.go). */
export function writeStatus(exchange: Exchange, failure: ApiError): void {
  const retryAfter = failure.details?.retryAfterSeconds
  const status = statusOf(failure)
  const headers = retryAfter ? { 'Retry-After': String(retryAfter) } : undefined
  const media = statusMedia(exchange.headers['accept'])
  const message = media === 'protobuf' ? protobufValue({ ...status }) : undefined
  if (message !== undefined) {
    exchange.reply.send(failure.code, 'application/vnd.kubernetes.protobuf', message, headers)
    return
  }
  if (media === 'yaml') {
    exchange.reply.send(failure.code, 'application/yaml', yamlText(status), headers)
    return
  }
  exchange.reply.send(
    failure.code,
    'application/json',
    `${goJson(status, wantsPretty(exchange.target, exchange.headers) ? 2 : undefined)}\n`,
    headers,
  )
}

export function writeNotFound(exchange: Exchange): void {
  exchange.reply.send(404, 'text/plain; charset=utf-8', '404 page not found\n', { 'X-Content-Type-Options': 'nosniff' })
}

/** Browsers and curl get indented JSON unless they say otherwise (handlers/negotiation/negotiate.go isPrettyPrint). */
export function wantsPretty(target: string, headers: Readonly<Record<string, string | undefined>>): boolean {
  const asked = /[?&]pretty(?:=([^&]*))?(?:&|$)/.exec(target)
  if (asked) return asked[1] === undefined || (asked[1] !== '0' && asked[1] !== 'false')
  return /^(?:curl|Wget|Mozilla\/5\.0)/.test(headers['user-agent'] ?? '')
}
