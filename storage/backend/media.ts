import type { Index, Term } from '../../raft/index.ts'
import type { RowHead } from '../backend.ts'
import type { Revision, Value } from '../store.ts'

export interface Applied {
  readonly index: Index
  readonly term: Term
}

export type RowChange =
  | { readonly type: 'put'; readonly head: RowHead; readonly value: Value }
  | { readonly type: 'remove'; readonly head: RowHead }

export interface Row {
  readonly head: RowHead
  readonly value: Value
}

/** Whole commits, in order, and the applied index the last of them brings about. */
export interface RowBatch {
  readonly changes: readonly RowChange[]
  readonly applied: Applied
}

/**
 * What keeps rows under a BufferedBackend: LevelDB, or files on a Disk. One call at a time, `get` and `view` excepted.
 * Everything rejects or throws StorageError ERR_CORRUPT for damage, any other error for a failing system.
 */
export interface RowMedia {
  /** Of the newest batch that survived; undefined in a new directory. Says nothing about older batches. */
  applied(): Promise<Applied | undefined>
  /** Atomic, visible to `get` when it resolves, not durable. */
  write(batch: RowBatch): Promise<void>
  get(head: RowHead): Value | undefined
  heads(): AsyncIterable<readonly RowHead[]>
  /** Removes every row above `revision`; not durable. */
  removeAbove(revision: Revision): Promise<void>
  /** Every write so far is on disk when it resolves. */
  makeDurable(): Promise<void>
  /** The rows as of the last write, taken at once. */
  view(): RowMediaView
  close(): Promise<void>
}

export interface RowMediaView {
  /** In order, in slices bounded by rowSliceRows and rowSliceBytes. */
  rows(): AsyncIterable<readonly Row[]>
  close(): Promise<void>
}
