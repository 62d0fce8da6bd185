import { setMaxListeners } from 'node:events'
import { RaftError } from './errors.ts'

/**
 * A caller's promise, settled once, that also listens to the caller's signal. What an abort means depends on how far the
 * request has come, so the owner says.
 */
export class Waiting<T> {
  readonly promise: Promise<T>
  #resolve: (value: T) => void = () => undefined
  #reject: (error: unknown) => void = () => undefined
  readonly #signal: AbortSignal
  readonly #onAbort: () => void

  constructor(signal: AbortSignal, onAbort: () => void) {
    this.#signal = signal
    this.#onAbort = onAbort
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // One signal may stand for a whole subsystem with many requests under way: no leak, and bounded by their number.
    setMaxListeners(0, signal)
    signal.addEventListener('abort', onAbort)
  }

  resolve(value: T): void {
    this.#signal.removeEventListener('abort', this.#onAbort)
    this.#resolve(value)
  }

  reject(error: unknown): void {
    this.#signal.removeEventListener('abort', this.#onAbort)
    this.#reject(error)
  }
}

export const stopped = (): RaftError => new RaftError('ERR_STOPPED', 'this member is stopped')
export const aborted = (signal: AbortSignal): RaftError =>
  new RaftError('ERR_ABORTED', 'the request was aborted before it was proposed', { cause: signal.reason })
