import type { Logger, Scheduler } from '../raft/index.ts'
import { StorageError } from './errors.ts'
import type { Revision, Store } from './store.ts'

/** Five minutes of history, as kube-apiserver keeps. */
export const autoCompactionIntervalMs = 5 * 60_000

/**
 * Every `intervalMs` compacts to the revision of one interval before: between one and two intervals of history stay.
 *
 * @returns the function that stops it.
 */
export function startAutoCompaction(options: {
  readonly store: Pick<Store, 'compact' | 'status'>
  readonly scheduler: Scheduler
  readonly log: Logger
  readonly intervalMs: number
}): () => void {
  const { store, scheduler, log } = options
  const stopping = new AbortController()
  let previous: Revision = store.status().revision
  const timer = scheduler.every(options.intervalMs, () => {
    const revision = previous
    const { revision: current, compactRevision } = store.status()
    previous = current
    if (revision <= compactRevision || revision <= 1) return
    store.compact({ revision, physical: false }, { signal: stopping.signal }).then(
      () => log.info({ revision }, 'compacted history'),
      (error: unknown) => {
        // Someone else compacted further, or the next turn will: nothing is lost.
        const expected = stopping.signal.aborted || (error instanceof StorageError && error.code === 'ERR_COMPACTED')
        if (!expected) log.warn({ revision, error }, 'cannot compact history now')
      },
    )
  })
  return () => {
    stopping.abort()
    timer.cancel()
  }
}
