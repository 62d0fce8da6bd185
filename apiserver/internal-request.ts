import { ownUser } from './authentication/authenticator.ts'
import { ApiError } from './errors.ts'
import type { ApiReply, ApiRequest, ByteStream, RequestInfo } from './types.ts'

export interface InternalAnswer {
  readonly status: number
  readonly body: string
}

/**
 * Runs a handler for the server itself, as system:apiserver, without a socket: what it writes goes through the same
 * admission, validation and transaction as everybody's.
 */
export async function runInternally(options: {
  readonly info: RequestInfo
  readonly method: string
  readonly body: object | undefined
  readonly signal: AbortSignal
  readonly run: (request: ApiRequest, reply: ApiReply) => Promise<void>
}): Promise<InternalAnswer> {
  const bytes = options.body === undefined ? new Uint8Array(0) : Buffer.from(JSON.stringify(options.body))
  const request: ApiRequest = {
    info: options.info,
    method: options.method,
    query: new URLSearchParams(),
    headers: { accept: 'application/json', 'content-type': 'application/json', 'user-agent': 'trireme' },
    user: ownUser,
    signal: options.signal,
    body: () => Promise.resolve(bytes),
    warn() {},
  }
  let answer: InternalAnswer | undefined
  const reply: ApiReply = {
    send(status, _contentType, body) {
      answer = { status, body: typeof body === 'string' ? body : Buffer.from(body).toString('utf8') }
    },
    stream(): ByteStream {
      throw new Error('an internal request has no stream')
    },
  }
  await options.run(request, reply)
  if (answer === undefined) throw new ApiError(500, 'InternalError', `no answer to internal ${options.info.verb}`)
  return answer
}
