import type { Env, Revision, Timer } from '../../storage/index.ts'
import { ApiError, tooLargeResourceVersion } from '../errors.ts'
import { freshnessWaitMs, progressPollMs } from '../limits.ts'

interface Waiter {
  readonly revision: Revision
  settle(error: ApiError | undefined): void
}

/** Reads that wait until the cache holds a revision. */
export class RevisionWaiters {
  readonly #scheduler: Env['scheduler']
  readonly #current: () => Revision
  readonly #askProgress: () => void
  readonly #waiters = new Set<Waiter>()
  #poll: Timer | undefined

  /** @param askProgress - Makes the store say how far it is, when nothing else would. */
  constructor(scheduler: Env['scheduler'], current: () => Revision, askProgress: () => void) {
    this.#scheduler = scheduler
    this.#current = current
    this.#askProgress = askProgress
  }

  /** @throws ApiError 504 ResourceVersionTooLarge after 3 s; 504 Timeout when the signal aborts. */
  wait(revision: Revision, signal: AbortSignal): Promise<void> {
    if (this.#current() >= revision) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const settle = (error: ApiError | undefined): void => {
        if (!this.#waiters.delete(waiter)) return
        timer.cancel()
        signal.removeEventListener('abort', onAbort)
        if (this.#waiters.size === 0) {
          this.#poll?.cancel()
          this.#poll = undefined
        }
        if (error === undefined) resolve()
        else reject(error)
      }
      const onAbort = (): void => settle(new ApiError(504, 'Timeout', 'Timeout: the request ended before the read'))
      const waiter: Waiter = { revision, settle }
      const timer = this.#scheduler.after(freshnessWaitMs, () =>
        settle(tooLargeResourceVersion(revision, this.#current())),
      )
      this.#waiters.add(waiter)
      if (signal.aborted) {
        onAbort()
        return
      }
      signal.addEventListener('abort', onAbort)
      this.#poll ??= this.#scheduler.every(progressPollMs, this.#askProgress)
      this.#askProgress()
    })
  }

  onRevision(): void {
    if (this.#waiters.size === 0) return
    const current = this.#current()
    for (const waiter of this.#waiters) if (waiter.revision <= current) waiter.settle(undefined)
  }

  failAll(error: ApiError): void {
    for (const waiter of this.#waiters) waiter.settle(error)
  }
}
