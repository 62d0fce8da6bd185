import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { ApiError, badRequest, requestEntityTooLarge } from './errors.ts'
import { refusedBodyDrainBytesMax, requestBodyBytesMax } from './http-limits.ts'
import { tooManyRequests } from './status.ts'

const gunzipAsync = promisify(gunzip)

const tooLarge = (): ApiError => requestEntityTooLarge(`Request entity too large: limit is ${requestBodyBytesMax}`)

/** What the bodies of all requests of a port hold together: each alone is bounded, many of them are not. */
export class BodyBudget {
  readonly #bytesMax: number
  #held = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Of one request, from its first byte until release(). */
  share(): BodyShare {
    let held = 0
    let released = false
    return {
      take: (bytes) => {
        if (released) throw badRequest('the request was answered before its body came')
        if (this.#held + bytes > this.#bytesMax) throw tooManyRequests()
        this.#held += bytes
        held += bytes
      },
      release: () => {
        this.#held -= held
        held = 0
        released = true
      },
      get released() {
        return released
      },
    }
  }
}

export interface BodyShare {
  /** @throws ApiError 429 when there is no room for so much more. */
  take(bytes: number): void
  release(): void
  readonly released: boolean
}

/** Reads a request's body once, bounded before and after decompression. See Exchange.body. */
export async function readBody(request: IncomingMessage | Http2ServerRequest, share: BodyShare): Promise<Uint8Array> {
  const declared = Number(request.headers['content-length'] ?? 0)
  if (declared > requestBodyBytesMax) throw tooLarge()
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  if (encoding !== 'identity' && encoding !== 'gzip') {
    throw new ApiError(
      415,
      'UnsupportedMediaType',
      `the body of the request has an unsupported content encoding: ${encoding}`,
    )
  }
  const raw = await collect(request, share)
  if (encoding === 'identity' || raw.length === 0) return raw
  let body: Uint8Array
  try {
    body = await gunzipAsync(raw, { maxOutputLength: requestBodyBytesMax })
  } catch (cause) {
    if (cause instanceof RangeError || (cause as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge()
    throw badRequest(
      `the body of the request is not valid gzip: ${cause instanceof Error ? cause.message : String(cause)}`,
    )
  }
  share.take(body.length)
  return body
}

function collect(request: IncomingMessage | Http2ServerRequest, share: BodyShare): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const stop = (): void => {
      request.off('data', onData)
      request.off('end', onEnd)
      request.off('error', onGone)
      request.off('aborted', onGone)
      request.off('close', onGone)
    }
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      try {
        if (size > requestBodyBytesMax) throw tooLarge()
        share.take(chunk.length)
      } catch (error) {
        stop()
        // answered before its body came: the rest is being dropped already, see dropBody
        if (!share.released) request.pause()
        reject(error instanceof Error ? error : new Error(String(error)))
        return
      }
      chunks.push(chunk)
    }
    const onEnd = (): void => {
      stop()
      const [first] = chunks
      resolve(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks, size))
    }
    const onGone = (): void => {
      stop()
      reject(badRequest('unexpected EOF'))
    }
    request.on('data', onData)
    request.on('end', onEnd)
    request.on('error', onGone)
    request.on('aborted', onGone)
    request.on('close', onGone)
  })
}

/**
 * After an answer: reads and drops what is left of the body, so that a client still sending gets to read the answer
 * instead of a reset connection. `cut` is called when it sends more, or for longer, than anybody would by accident.
 */
export function dropBody(request: IncomingMessage | Http2ServerRequest, drainMsMax: number, cut: () => void): void {
  if (request.complete || request.readableEnded || request.destroyed) return
  let size = 0
  const late = setTimeout(cut, drainMsMax)
  late.unref()
  const over = (): void => clearTimeout(late)
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > refusedBodyDrainBytesMax) cut()
  })
  request.on('error', cut)
  request.on('end', over)
  request.on('close', over)
  request.resume()
}
