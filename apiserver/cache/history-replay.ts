import type { Revision, Store, StorageError, WatchBatch, WatchEvent } from '../../storage/index.ts'
import { replayBytesMax } from '../limits.ts'
import { keyBytes, prefixEnd } from '../store-keys.ts'

/** Consecutive history of one prefix: every event above the asked revision through `reached`. */
export interface HistoryPiece {
  readonly events: readonly WatchEvent[]
  readonly reached: Revision
}

/**
 * Reads a piece of the store's own history: as much as fits in `replayBytesMax`, or through `enough` at least. The
 * store pushes without waiting, so a piece is cut by cancelling and the next one is a new watch.
 *
 * @throws StorageError ERR_COMPACTED and what else ends a watch; the signal's reason when it aborts.
 */
export function readHistory(
  store: Store,
  of: { readonly prefix: string; readonly after: Revision; readonly enough: () => Revision },
  signal: AbortSignal,
): Promise<HistoryPiece> {
  return new Promise((resolve, reject) => {
    const events: WatchEvent[] = []
    let bytes = 0
    let settled = false
    let cancel: (() => void) | undefined
    const settle = (finish: () => void): void => {
      if (settled) return
      settled = true
      signal.removeEventListener('abort', onAbort)
      cancel?.()
      finish()
    }
    const onAbort = (): void => settle(() => reject(abortError(signal)))
    const onBatch = (batch: WatchBatch): void => {
      if (settled) return
      for (const event of batch.events) {
        events.push(event)
        bytes += event.kv.value.length + (event.prevKv?.value.length ?? 0)
      }
      if (bytes < replayBytesMax && batch.revision < of.enough()) return
      // Below the first revision asked for a batch says nothing.
      if (batch.revision > of.after) settle(() => resolve({ events, reached: batch.revision }))
    }
    const onEnd = (reason: StorageError | undefined): void =>
      settle(() => reject(reason ?? new Error('the store closed the watch')))
    if (signal.aborted) {
      onAbort()
      return
    }
    signal.addEventListener('abort', onAbort)
    const watcher = store.watch(
      { key: keyBytes(of.prefix), rangeEnd: prefixEnd(of.prefix), startRevision: of.after + 1, prevKv: true },
      { onBatch, onEnd },
    )
    if (settled) {
      watcher.cancel()
      return
    }
    cancel = () => watcher.cancel()
    // Without events in between nothing else would say that the end was reached.
    watcher.requestProgress()
  })
}

function abortError(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error('aborted')
}
