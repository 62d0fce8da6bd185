import type { StorageError } from './errors.ts'

/** The store's logical clock: 1 when empty, +1 for every transaction that changed something. */
export type Revision = number
/** int64: real lease ids exceed 2^53. 0n = no lease. */
export type LeaseId = bigint
/** Keys order bytewise. Shared buffers: nobody mutates, ever. */
export type Key = Uint8Array
export type Value = Uint8Array

export interface KeyValue {
  readonly key: Key
  readonly value: Value
  readonly createRevision: Revision
  readonly modRevision: Revision
  /** 1 at creation, +1 per put; 0 in a tombstone. */
  readonly version: number
  readonly lease: LeaseId
}

export interface RangeRequest {
  readonly key: Key
  /** Absent = the one key; a single zero byte = every key >= `key`; else half-open [key, rangeEnd). */
  readonly rangeEnd?: Key
  /** 0 or absent = latest. */
  readonly revision?: Revision
  /** Items; 0 or absent = all. */
  readonly limit?: number
  readonly keysOnly?: boolean
  readonly countOnly?: boolean
  /** Local state without a quorum round: may be stale. */
  readonly serializable?: boolean
}

export type CompareOperator = '=' | '!=' | '<' | '>'

/** On a missing key: numbers are 0, a value compare is false. With rangeEnd it must hold for all keys in it. */
export type Compare = { readonly key: Key; readonly rangeEnd?: Key; readonly op: CompareOperator } & (
  | { readonly target: 'mod' | 'create' | 'version'; readonly is: number }
  | { readonly target: 'value'; readonly is: Value }
  | { readonly target: 'lease'; readonly is: LeaseId }
)

export type Op =
  | ({ readonly type: 'range' } & RangeRequest)
  | {
      readonly type: 'put'
      readonly key: Key
      readonly value: Value
      /** Absent or 0n detaches an earlier lease. */
      readonly lease?: LeaseId
      readonly prevKv?: boolean
    }
  | { readonly type: 'delete'; readonly key: Key; readonly rangeEnd?: Key; readonly prevKv?: boolean }
  | ({ readonly type: 'txn' } & TxnRequest)

export interface TxnRequest {
  readonly compare: readonly Compare[]
  readonly success: readonly Op[]
  readonly failure: readonly Op[]
}

export interface TxnResult {
  /** Store revision after the transaction; the new one if it changed something. */
  readonly revision: Revision
  readonly succeeded: boolean
  readonly responses: readonly OpResult[]
}

export interface OpResult {
  /** Of a range, in key order. */
  readonly kvs: readonly KeyValue[]
  /** Range: keys in the range before `limit`. Delete: keys deleted. */
  readonly count: number
  readonly more: boolean
  /** Of a put or delete that asked for them. */
  readonly prevKvs: readonly KeyValue[]
  /** Of a nested transaction. */
  readonly txn?: TxnResult
}

export interface RangeResult extends OpResult {
  /** Store revision at which the read happened (not the revision asked for). */
  readonly revision: Revision
}

export interface WatchEvent {
  readonly type: 'put' | 'delete'
  /** Of a delete: key and modRevision only. */
  readonly kv: KeyValue
  /** Present when asked for and the key existed before. Never silently missing. */
  readonly prevKv?: KeyValue
}

/** All events of one revision arrive in one batch; `revision` >= every event in it. Without events it is progress. */
export interface WatchBatch {
  readonly revision: Revision
  readonly events: readonly WatchEvent[]
}

export interface WatchRequest {
  readonly key: Key
  readonly rangeEnd?: Key
  /** Inclusive; 0 = from now; a future one is fine, nothing older arrives. */
  readonly startRevision: Revision
  readonly prevKv: boolean
}

/** Callbacks run synchronously inside apply for live events: they must not throw or await. */
export interface WatchSink {
  onBatch(batch: WatchBatch): void
  /** Once, last. ERR_COMPACTED when history is gone, undefined after cancel() or close(). */
  onEnd(reason: StorageError | undefined): void
}

export interface Watcher {
  /** An empty batch follows, in order behind the events of its revision, as soon as the watcher has caught up. */
  requestProgress(): void
  cancel(): void
}

export interface CompactRequest {
  /** Stays readable itself. */
  readonly revision: Revision
  /** Resolve only when the rows are gone. */
  readonly physical: boolean
}

export interface LeaseGrantRequest {
  /** Absent or 0n: the store chooses. */
  readonly id?: LeaseId
  readonly ttlSeconds: number
}

export interface LeaseGrant {
  readonly id: LeaseId
  /** May be longer than asked for. */
  readonly ttlSeconds: number
}

export interface LeaseTimeToLive {
  /** Remaining. */
  readonly ttlSeconds: number
  readonly grantedTtlSeconds: number
  /** Attached; empty unless asked for. */
  readonly keys: readonly Key[]
}

export interface CallOptions {
  readonly signal: AbortSignal
}

/** etcd semantics. Rejects only StorageError. */
export interface Store {
  /** Pairs in byte order. ERR_COMPACTED, ERR_FUTURE_REVISION; linearizable unless `serializable`. */
  range(request: RangeRequest, options: CallOptions): Promise<RangeResult>
  /** Atomic; at most one new revision. */
  txn(request: TxnRequest, options: CallOptions): Promise<TxnResult>
  /** Linearizable current revision, and the local state has reached it. One coalesced ReadIndex. */
  currentRevision(options: CallOptions): Promise<Revision>
  /** Delivery in revision order. */
  watch(request: WatchRequest, sink: WatchSink): Watcher
  compact(request: CompactRequest, options: CallOptions): Promise<void>
  leaseGrant(request: LeaseGrantRequest, options: CallOptions): Promise<LeaseGrant>
  /** Remaining TTL in seconds, renewed; ERR_LEASE_NOT_FOUND when it is gone. */
  leaseKeepAlive(id: LeaseId, options: CallOptions): Promise<number>
  leaseRevoke(id: LeaseId, options: CallOptions): Promise<void>
  leaseTimeToLive(id: LeaseId, options: CallOptions & { readonly keys?: boolean }): Promise<LeaseTimeToLive>
  status(): StoreStatus
  close(): Promise<void>
}

export interface StoreStatus {
  /** Applied here. */
  readonly revision: Revision
  readonly compactRevision: Revision
  readonly keyCount: number
}
