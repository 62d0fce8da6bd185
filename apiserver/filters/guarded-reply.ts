import type { HttpReply } from '../exchange.ts'
import type { ApiReply, ByteStream } from '../types.ts'

/**
 * The reply a handler holds. When its request was answered over its head (deadline), what it still says goes nowhere
 * instead of into a second answer.
 */
export class GuardedReply implements ApiReply {
  readonly #inner: HttpReply
  #abandoned = false

  constructor(inner: HttpReply) {
    this.#inner = inner
  }

  /** From now on the handler's calls are ignored. */
  abandon(): void {
    this.#abandoned = true
  }

  send(
    status: number,
    contentType: string,
    body: Uint8Array | string,
    headers?: Readonly<Record<string, string>>,
  ): void {
    if (!this.#abandoned) this.#inner.send(status, contentType, body, headers)
  }

  stream(status: number, contentType: string, headers?: Readonly<Record<string, string>>): ByteStream {
    return this.#abandoned ? new ClosedStream() : this.#inner.stream(status, contentType, headers)
  }
}

class ClosedStream implements ByteStream {
  readonly bufferedBytes = 0
  readonly closed = true
  write(): void {}
  flushHead(): void {}
  end(): void {}
  destroy(): void {}
  onDrain(run: () => void): void {
    queueMicrotask(run)
  }
  onClose(run: () => void): void {
    queueMicrotask(run)
  }
}
