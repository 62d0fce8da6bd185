import type { Index, Membership, Term } from '../raft/index.ts'
import type { Key, LeaseId, Revision, Value } from './store.ts'

/**
 * What the key index needs to know of a row. All of it lies in the row's disk key, so that rebuilding the index after
 * a start is a keys-only scan. Rows order by (main, sub).
 */
export interface RowHead {
  /** Revision of the transaction. */
  readonly main: Revision
  /** Position of the change inside its transaction, from 0. */
  readonly sub: number
  readonly tombstone: boolean
  readonly key: Key
  /** 0 in a tombstone, as `version`. */
  readonly createRevision: Revision
  readonly version: number
  readonly lease: LeaseId
}

/** The state that lives beside rows; stored whole with every checkpoint and snapshot. */
export interface StateRecord {
  readonly revision: Revision
  readonly compactRevision: Revision
  /** Live keys at `revision`: tells after a start whether rows are missing that nobody has changed since. */
  readonly keyCount: number
  readonly membership: Membership
  readonly leases: readonly { readonly id: LeaseId; readonly ttlSeconds: number }[]
  readonly alarms: readonly { readonly member: bigint; readonly type: 'NOSPACE' | 'CORRUPT' }[]
}

/**
 * Rows of one replica. Calls between two commits form one atomic batch, on disk together with the applied index they
 * bring about: after a crash a lone index would skip an entry and lone rows would be applied twice
 * (etcd-io/etcd#13766). Committed batches are visible to reads at once and reach the disk in order, unsynced, some 50 ms
 * later: after an unclean stop only what a checkpoint covers is believed, the WAL replays the rest.
 */
export interface Backend {
  put(head: RowHead, value: Value): void
  /** Physical removal by compaction; only of rows that no reader at or above a checkpointed compact revision needs. */
  remove(head: RowHead): void
  commit(applied: { readonly index: Index; readonly term: Term }): void
  /** Synchronous (12 µs from disk). A row that must be there and is not: StorageError ERR_CORRUPT. */
  value(head: RowHead): Value
  /** Every row in order, heads only, in slices small enough not to hold the event loop. */
  heads(): AsyncIterable<readonly RowHead[]>
  /**
   * Everything committed so far, and `state`, made durable; only when this resolves may WAL segments through the
   * returned index go. One at a time.
   */
  checkpoint(state: StateRecord): Promise<{ readonly index: Index; readonly term: Term }>
  /** What the newest durable checkpoint holds; undefined in a new directory. */
  readonly checkpointed: (StateRecord & { readonly index: Index; readonly term: Term }) | undefined
  /** A consistent view of everything committed so far, `state` being the engine's at this moment. */
  openView(state: StateRecord): Promise<BackendView>
  /** Waits for batches under way; a clean close leaves a checkpoint only if the caller made one. */
  close(): Promise<void>
  /** The error that broke it, if any; then every later call fails with it. */
  readonly broken: Error | undefined
}

export interface BackendView {
  readonly state: StateRecord & { readonly index: Index; readonly term: Term }
  rows(): AsyncIterable<readonly { readonly head: RowHead; readonly value: Value }[]>
  close(): Promise<void>
}
