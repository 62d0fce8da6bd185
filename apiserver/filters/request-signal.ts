import type { Scheduler, Timer } from '../../storage/index.ts'

/** The signal of one request: aborts at its deadline, when the client goes away, or when the server stops. */
export interface RequestSignal {
  readonly signal: AbortSignal
  /** Long-running requests have none until they ask. */
  readonly expired: boolean
  release(): void
}

export function requestSignal(options: {
  readonly client: AbortSignal
  readonly stop: AbortSignal
  readonly scheduler: Scheduler
  /** undefined: long-running. */
  readonly deadlineMs: number | undefined
  readonly onExpired: () => void
}): RequestSignal {
  const controller = new AbortController()
  let expired = false
  const gone = (): void => controller.abort(options.client.reason)
  const stopped = (): void => controller.abort(options.stop.reason)
  options.client.addEventListener('abort', gone, { once: true })
  options.stop.addEventListener('abort', stopped, { once: true })
  if (options.client.aborted) gone()
  if (options.stop.aborted) stopped()
  let timer: Timer | undefined
  if (options.deadlineMs !== undefined) {
    timer = options.scheduler.after(options.deadlineMs, () => {
      expired = true
      controller.abort(new DOMException('the request passed its deadline', 'TimeoutError'))
      options.onExpired()
    })
  }
  return {
    signal: controller.signal,
    get expired() {
      return expired
    },
    release() {
      timer?.cancel()
      options.client.removeEventListener('abort', gone)
      options.stop.removeEventListener('abort', stopped)
    },
  }
}
