import type {
  ConfChange,
  CoreStatus,
  Entry,
  Index,
  MemberId,
  Membership,
  Message,
  SnapshotMeta,
  Term,
} from './types.ts'

/** Opaque to raft; never an exception (a refused compare is a result). */
export type ApplyResult = unknown

/**
 * Implemented by storage, called by the driver. apply() is synchronous, total and deterministic: equal entries give
 * equal state on all members.
 */
export interface StateMachine {
  /** The last entry whose effects apply() has made visible. */
  readonly appliedIndex: Index
  /** `entry.index === appliedIndex + 1`, always. Entries of type confChange and empty ones come here too. */
  apply(entry: Entry): ApplyResult
  /** The membership in force at `index`; stored with every checkpoint and snapshot. */
  setMembership(membership: Membership): void
  /** A consistent view of the applied state, streamed to a lagging member or a backup. The caller closes it. */
  openSnapshot(): Promise<SnapshotSource>
  /** Writes an incoming snapshot beside the live state. Rejects (and cleans up) on a broken or cancelled stream. */
  stageSnapshot(meta: SnapshotMeta, chunks: AsyncIterable<Uint8Array>): Promise<StagedSnapshot>
  /** Makes every effect through some applied index durable and returns it; the log up to there may then go. */
  checkpoint(): Promise<{ readonly index: Index; readonly term: Term }>
  /** If it can break between two calls (its disk failed behind apply): the node then ends with that error. */
  onBroken?(listener: (error: Error) => void): void
}

export interface SnapshotSource {
  readonly meta: SnapshotMeta
  readonly chunks: AsyncIterable<Uint8Array>
  close(): Promise<void>
}

export interface StagedSnapshot {
  readonly meta: SnapshotMeta
  /** Durably replaces the live state; when it resolves appliedIndex === meta.index. */
  install(): Promise<void>
  discard(): Promise<void>
}

/** How messages reach peers. Unreliable by contract: losing, doubling and reordering are fine; blocking is not. */
export interface Transport {
  send(message: Message): void
  /** Streams the state beside a snapshot message; resolves when the peer has staged or refused it. */
  sendSnapshot(message: Message & { type: 'snapshot' }, source: SnapshotSource): Promise<void>
  /** Called once by the node; from then on messages of peers come in here. */
  attach(receiver: TransportReceiver): void
  close(): void
}

export interface TransportReceiver {
  onMessage(message: Message): void
  onSnapshot(message: Message & { type: 'snapshot' }, chunks: AsyncIterable<Uint8Array>): Promise<void>
}

/** The driver's face to storage. Rejects only RaftError. */
export interface RaftNode {
  readonly id: MemberId
  /** Resolves with apply()'s result after LOCAL apply. */
  propose(data: Uint8Array, options: { readonly signal: AbortSignal }): Promise<ApplyResult>
  /** At the leader only; elsewhere it rejects ERR_NO_LEADER. */
  proposeConfChange(change: ConfChange, options: { readonly signal: AbortSignal }): Promise<Membership>
  /** Coalesced; resolves with the index once it is applied here. */
  readIndex(options: { readonly signal: AbortSignal }): Promise<Index>
  /** Stand for election at once. */
  campaign(): void
  /** Resolves when `to` leads; rejects ERR_NO_LEADER after one election timeout without success. */
  transferLeadership(to: MemberId): Promise<void>
  status(): RaftStatus
  /** Runs after every change of role, leader or term; returns the unsubscriber. */
  onStatusChange(listener: (status: RaftStatus) => void): () => void
  /**
   * Resolves once the running fsync and apply are done and files are closed. Pending calls reject. With `checkpoint` state
   * and log are left so that the next start has next to nothing to replay; that it failed is logged, not thrown.
   */
  stop(options?: { readonly checkpoint?: boolean }): Promise<void>
  /** Resolves when the node has ended: undefined after stop(), the error when it broke (fsync error, corruption). */
  readonly ended: Promise<Error | undefined>
}

export type RaftStatus = CoreStatus

/** What a closed log directory holds, without starting a node: how `trireme up` finds the most up-to-date replica. */
export interface LogSummary {
  readonly term: Term
  readonly vote: MemberId
  readonly commit: Index
  readonly firstIndex: Index
  readonly lastIndex: Index
  readonly lastTerm: Term
}
