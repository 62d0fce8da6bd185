import type { Scheduler } from '../../raft/index.ts'
import type { Backend } from '../backend.ts'
import { StorageError } from '../errors.ts'
import { compactionRowsPerSlice } from '../limits.ts'
import type { Revision } from '../store.ts'
import type { Row } from './key-history.ts'
import type { KeyIndex } from './key-index.ts'
import type { RevisionLog } from './revision-log.ts'

interface Waiter {
  readonly revision: Revision
  readonly resolve: () => void
  readonly reject: (reason: StorageError) => void
}

/**
 * Removes rows that nobody at or above the compact revision can see. Logical compaction has refused such readers
 * already, so this may run at any later time, in any slices, again from the start after a restart: what it removes
 * depends on the rows alone. Removals join the batch of the next entry.
 *
 * A pass to `target` walks the revision log upwards. A row with main <= target goes when its key has a later row with
 * main <= target, or when it is a tombstone below target; the tombstone AT target stays (etcd-io/etcd#18089).
 */
export class PhysicalCompaction {
  readonly #index: KeyIndex
  readonly #revisionLog: RevisionLog
  readonly #backend: Backend
  readonly #scheduler: Scheduler
  /** The highest revision up to which rows may go now. */
  readonly #limit: () => Revision
  readonly #pins = new Map<symbol, Revision>()
  readonly #waiters = new Set<Waiter>()
  /** Every pass up to here is finished. */
  #finished: Revision
  /** The pass under way, and the last revision it has dealt with. */
  #pass: { readonly target: Revision; done: Revision } | undefined
  #scheduled = false
  #closed = false

  constructor(init: {
    readonly index: KeyIndex
    readonly revisionLog: RevisionLog
    readonly backend: Backend
    readonly scheduler: Scheduler
    readonly finished: Revision
    readonly limit: () => Revision
  }) {
    this.#index = init.index
    this.#revisionLog = init.revisionLog
    this.#backend = init.backend
    this.#scheduler = init.scheduler
    this.#finished = init.finished
    this.#limit = init.limit
  }

  get finished(): Revision {
    return this.#finished
  }

  /** While pinned, everything a reader at `revision` sees stays. `revision` >= the compact revision at this moment. */
  pin(revision: Revision): () => void {
    const pin = Symbol('pin')
    this.#pins.set(pin, revision)
    return () => {
      if (this.#pins.delete(pin)) this.resume()
    }
  }

  /** Looks whether there is something to do: after a compaction, a checkpoint, a released pin. */
  resume(): void {
    if (this.#scheduled || this.#closed || (this.#pass === undefined && this.#target() <= this.#finished)) return
    this.#scheduled = true
    this.#scheduler.soon(() => {
      this.#scheduled = false
      if (this.#closed || this.#backend.broken !== undefined) return
      this.#slice()
      this.resume()
    })
  }

  whenFinished(revision: Revision): Promise<void> {
    if (this.#finished >= revision) return Promise.resolve()
    if (this.#closed) return Promise.reject(stopped())
    return new Promise((resolve, reject) => void this.#waiters.add({ revision, resolve, reject }))
  }

  close(): void {
    this.#closed = true
    for (const waiter of this.#waiters) waiter.reject(stopped())
    this.#waiters.clear()
  }

  #target(): Revision {
    return Math.min(this.#limit(), ...this.#pins.values())
  }

  #slice(): void {
    this.#pass ??= { target: this.#target(), done: 0 }
    const pass = this.#pass
    if (pass.target <= this.#finished) {
      this.#pass = undefined
      return
    }
    let rows = 0
    for (let position = this.#revisionLog.positionOf(pass.done + 1); ; position += 1) {
      const row = this.#revisionLog.at(position)
      if (row === undefined || row.main > pass.target) break
      if (row.main !== pass.done && rows >= compactionRowsPerSlice) return
      pass.done = row.main
      rows += 1
      this.#settle(row, pass.target)
    }
    this.#finish(pass.target)
  }

  /** Removes what `row` makes unreachable, and `row` itself if it is. Earlier rows of the log are settled already. */
  #settle(row: Row, target: Revision): void {
    const { history } = row
    for (let oldest = history.oldest; oldest !== undefined && oldest.main < row.main; oldest = history.oldest) {
      this.#remove(oldest)
    }
    const next = history.at(target)
    if (next === row ? row.tombstone && row.main < target : history.oldest === row) this.#remove(row)
  }

  #remove(row: Row): void {
    row.history.removeOldest()
    this.#backend.remove(row)
    if (row.history.size === 0) this.#index.drop(row.history)
  }

  #finish(target: Revision): void {
    this.#pass = undefined
    this.#finished = target
    this.#revisionLog.trim(target)
    for (const waiter of this.#waiters) {
      if (waiter.revision > target) continue
      this.#waiters.delete(waiter)
      waiter.resolve()
    }
  }
}

function stopped(): StorageError {
  return new StorageError('ERR_STOPPED', 'the store stopped before the compaction was finished')
}
