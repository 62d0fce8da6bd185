import { ApiError } from '../errors.ts'
import type { Exchange } from '../exchange.ts'

const loopbackNames = new Set(['127.0.0.1', 'localhost', '[::1]'])

/**
 * The plain HTTP listener acts as system:masters, so a web page that somebody happens to open must not reach it:
 * not by DNS rebinding (foreign Host), not by fetch or forms (Origin, Sec-Fetch-Site), not by a body that needs no
 * preflight (no Content-Type). Command line clients and libraries send none of these.
 *
 * @throws ApiError 403, or 415 for a body without Content-Type
 */
export function guardLoopback(exchange: Exchange): void {
  const { headers } = exchange
  const host = (headers['host'] ?? '').toLowerCase()
  if (!loopbackNames.has(host.replace(/:\d+$/, ''))) refuse(`host "${host}" is not a loopback name`)
  const origin = headers['origin']
  if (origin !== undefined && origin.toLowerCase() !== `http://${host}`) refuse(`origin "${origin}" is foreign`)
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') refuse(`a ${site} request of a web page`)
  if (hasBody(exchange) && !headers['content-type']) {
    throw new ApiError(415, 'UnsupportedMediaType', 'a body needs a Content-Type on the plain HTTP port')
  }
}

function hasBody({ headers }: Exchange): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function refuse(why: string): never {
  throw new ApiError(403, 'Forbidden', `forbidden on the plain HTTP port: ${why}`)
}
