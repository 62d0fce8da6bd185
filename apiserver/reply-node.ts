import type { ServerResponse } from 'node:http'
import { constants, type Http2ServerResponse } from 'node:http2'
import type { HttpReply } from './exchange.ts'
import { replyBufferedBytesLow } from './http-limits.ts'
import type { ByteStream } from './types.ts'

export type NodeResponse = ServerResponse | Http2ServerResponse

/** The answer over Node's response object, the same for HTTP/1.1 and HTTP/2. */
export function createReply(response: NodeResponse, head: boolean): HttpReply {
  let started = false
  let finished = false
  const watchers: (() => void)[] = []
  const finish = (): void => {
    if (finished) return
    finished = true
    for (const run of watchers.splice(0)) run()
  }
  response.on('finish', finish)
  response.on('close', finish)
  // a client that goes away is not a fault of ours: 'close' follows
  response.on('error', finish)

  const begin = (status: number, contentType: string, headers: Readonly<Record<string, string>> | undefined): void => {
    if (started) throw new Error('the answer has already started')
    started = true
    response.statusCode = status
    if (contentType !== '') response.setHeader('Content-Type', contentType)
    for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value)
  }
  return {
    get started() {
      return started
    },
    get finished() {
      return finished
    },
    get status() {
      return started ? response.statusCode : 0
    },
    setHeader(name, value) {
      if (response.headersSent || finished) return
      response.setHeader(name, typeof value === 'string' ? value : [...value])
    },
    send(status, contentType, body, headers) {
      if (finished) return
      begin(status, contentType, headers)
      const bytes = typeof body === 'string' ? Buffer.from(body) : body
      // 204 and 304 have no body and no length (RFC 9110 8.6)
      if (status === 204 || status === 304) {
        response.end()
        return
      }
      response.setHeader('Content-Length', String(bytes.length))
      if (head) response.end()
      else response.end(bytes)
    },
    stream(status, contentType, headers) {
      if (!finished) begin(status, contentType, headers)
      return new ResponseStream(response, { head, finished: () => finished })
    },
    destroy() {
      cutResponse(response)
      finish()
    },
    onFinished(run) {
      if (finished) run()
      else watchers.push(run)
    },
  }
}

/**
 * HTTP/2: resets the stream alone, with an error code: without one half an answer looks like a whole one. HTTP/1.1:
 * closes the connection, the only way to say "this answer is broken".
 */
export function cutResponse(response: NodeResponse): void {
  if (!('stream' in response)) {
    response.destroy()
    return
  }
  const { stream } = response
  if (!stream.closed) stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  stream.destroy()
}

/**
 * Counts by the callbacks of write(): they come when the kernel's socket took the bytes (HTTP/2: when flow control let
 * them through as well), so bufferedBytes is what this process still holds for this client.
 */
class ResponseStream implements ByteStream {
  readonly #response: NodeResponse
  readonly #head: boolean
  /** Sizes of writes not yet taken, oldest first; callbacks come in order. */
  readonly #pending: number[] = []
  #pendingFrom = 0
  #buffered = 0
  #closed = false
  #drainWaiters: (() => void)[] = []
  #closeWaiters: (() => void)[] = []

  constructor(response: NodeResponse, options: { head: boolean; finished: () => boolean }) {
    this.#response = response
    this.#head = options.head
    if (options.finished()) {
      this.#closed = true
      return
    }
    const close = (): void => this.#close()
    response.on('close', close)
    response.on('error', close)
  }

  get bufferedBytes(): number {
    return this.#buffered
  }

  get closed(): boolean {
    return this.#closed
  }

  write(bytes: Uint8Array): void {
    if (this.#closed || bytes.length === 0) return
    if (this.#head) {
      this.flushHead()
      return
    }
    this.#pending.push(bytes.length)
    this.#buffered += bytes.length
    // the two response types declare write() with different overloads, of which no call satisfies both
    if ('stream' in this.#response) this.#response.write(bytes, this.#taken)
    else this.#response.write(bytes, this.#taken)
  }

  flushHead(): void {
    if (this.#closed || this.#response.headersSent) return
    if ('stream' in this.#response) this.#response.writeHead(this.#response.statusCode)
    else this.#response.flushHeaders()
  }

  onDrain(run: () => void): void {
    if (this.#closed || this.#buffered <= replyBufferedBytesLow) queueMicrotask(run)
    else this.#drainWaiters.push(run)
  }

  end(): void {
    if (this.#closed) return
    this.#response.end()
    this.#close()
  }

  destroy(): void {
    if (this.#closed) return
    cutResponse(this.#response)
    this.#close()
  }

  onClose(run: () => void): void {
    if (this.#closed) queueMicrotask(run)
    else this.#closeWaiters.push(run)
  }

  readonly #taken = (): void => {
    this.#buffered -= this.#pending[this.#pendingFrom] ?? 0
    this.#pendingFrom += 1
    if (this.#pendingFrom === this.#pending.length) {
      this.#pending.length = 0
      this.#pendingFrom = 0
    } else if (this.#pendingFrom === 1024) {
      this.#pending.splice(0, 1024)
      this.#pendingFrom = 0
    }
    if (this.#buffered <= replyBufferedBytesLow && this.#drainWaiters.length > 0) this.#wake()
  }

  #wake(): void {
    const waiters = this.#drainWaiters
    this.#drainWaiters = []
    for (const run of waiters) run()
  }

  #close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#wake()
    const waiters = this.#closeWaiters
    this.#closeWaiters = []
    for (const run of waiters) run()
  }
}
