import type { Logger, Scheduler, Timer } from '../raft/index.ts'
import { StorageError } from './errors.ts'
import type { Revision, Store } from './store.ts'

/** Five minutes of history, as kube-apiserver keeps. */
export const autoCompactionIntervalMs = 5 * 60_000

/** A compaction that did not pass is tried again so many times before the next is due (etcd: as many). */
const retriesPerInterval = 10

/**
 * Every `intervalMs` compacts to the revision of one interval before: between one and two intervals of history stay.
 * One compaction at a time: one that still waits for a leader gives way to the next.
 *
 * @returns the function that stops it.
 */
export function startAutoCompaction(options: {
  readonly store: Pick<Store, 'compact' | 'status'>
  readonly scheduler: Scheduler
  readonly log: Logger
  readonly intervalMs: number
}): () => void {
  const { store, scheduler, log, intervalMs } = options
  let previous: Revision = store.status().revision
  let turn = new AbortController()
  let retry: Timer | undefined

  const end = (): void => {
    turn.abort()
    retry?.cancel()
  }
  const compact = (revision: Revision): void => {
    // Someone else may have compacted further meanwhile.
    if (revision <= Math.max(1, store.status().compactRevision)) return
    const { signal } = turn
    store.compact({ revision, physical: false }, { signal }).then(
      () => log.info({ revision }, 'compacted history'),
      (error: unknown) => {
        if (signal.aborted || (error instanceof StorageError && error.code === 'ERR_COMPACTED')) return
        log.warn({ revision, error }, 'cannot compact history now, will try again')
        retry = scheduler.after(intervalMs / retriesPerInterval, () => compact(revision))
      },
    )
  }
  const timer = scheduler.every(intervalMs, () => {
    end()
    turn = new AbortController()
    const revision = previous
    previous = store.status().revision
    compact(revision)
  })
  return () => {
    end()
    timer.cancel()
  }
}
