/** Words of the Raft paper and of etcd-io/raft. Numbers are asserted to be safe integers wherever they are decoded. */

/** Position in the log, from 1; 0 = before the first entry. */
export type Index = number
export type Term = number
/** uint64 on etcd's wire; 0n = nobody. */
export type MemberId = bigint
export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader' | 'learner'

export const NOBODY: MemberId = 0n

export interface Entry {
  readonly index: Index
  readonly term: Term
  /** An empty normal entry is what a new leader appends; state machines see it and only move their applied index. */
  readonly type: 'normal' | 'confChange'
  readonly data: Uint8Array
}

/** What must be on disk before any answer that depends on it leaves the member (Raft paper, figure 2: persistent state). */
export interface HardState {
  readonly term: Term
  readonly vote: MemberId
  readonly commit: Index
}

/** Voters and learners as of some index. */
export interface Membership {
  readonly voters: readonly MemberId[]
  readonly learners: readonly MemberId[]
}

/** One change at a time (Raft thesis, section 4.1): `data` of a confChange entry, see raft/FORMATS.md. */
export interface ConfChange {
  readonly type: 'addVoter' | 'addLearner' | 'remove'
  readonly member: MemberId
}

/** What a snapshot stands for. The state itself travels beside it as a stream (SnapshotSource), never inside a message. */
export interface SnapshotMeta {
  readonly index: Index
  readonly term: Term
  readonly membership: Membership
}

interface Addressed {
  readonly from: MemberId
  readonly to: MemberId
  /** Sender's term; for a pre-vote the term the sender would campaign at. */
  readonly term: Term
}

export type Message =
  | (Addressed & { readonly type: 'propose'; readonly entries: readonly Entry[] })
  | (Addressed & {
      readonly type: 'append'
      readonly previousIndex: Index
      readonly previousTerm: Term
      readonly entries: readonly Entry[]
      readonly commit: Index
    })
  | (Addressed & {
      readonly type: 'appendResponse'
      /** Accepted: last index now matching. Rejected: the previousIndex that was refused. */
      readonly index: Index
      readonly reject: boolean
      /** Where to probe next when rejected: the largest (index, term) of the follower that may match. */
      readonly hintIndex: Index
      readonly hintTerm: Term
    })
  | (Addressed & {
      readonly type: 'preVote' | 'vote'
      readonly lastIndex: Index
      readonly lastTerm: Term
      /** A leadership transfer ignores the leader lease of CheckQuorum. */
      readonly transfer: boolean
      /** What the sender knows to be committed: spreads a committed membership that no leader is left to announce. */
      readonly commit: Index
      readonly commitTerm: Term
    })
  | (Addressed & {
      readonly type: 'preVoteResponse' | 'voteResponse'
      readonly reject: boolean
      /** As in the request (etcd-io/etcd#12359). */
      readonly commit: Index
      readonly commitTerm: Term
    })
  | (Addressed & { readonly type: 'heartbeat' | 'heartbeatResponse'; readonly commit: Index; readonly readId: bigint })
  | (Addressed & { readonly type: 'snapshot'; readonly snapshot: SnapshotMeta })
  | (Addressed & { readonly type: 'readIndex'; readonly readId: bigint })
  | (Addressed & { readonly type: 'readIndexResponse'; readonly readId: bigint; readonly index: Index })
  | (Addressed & { readonly type: 'timeoutNow' })
  | (Addressed & { readonly type: 'transferLeader'; readonly transferee: MemberId })

export type MessageType = Message['type']

/**
 * What the driver does, in this order: send sendNow; persist hardState, entries and snapshot (one fsync when mustSync);
 * send sendAfterPersist; apply committed; answer readStates; advance().
 */
export interface Ready {
  /** Present only when changed. */
  readonly hardState?: HardState
  /** Present only when changed; leader 0n = none known. */
  readonly softState?: { readonly leader: MemberId; readonly role: Role }
  /** May overwrite a conflicting suffix of the log. */
  readonly entries: readonly Entry[]
  /** A snapshot from the leader to install before `committed`, replacing log and state. */
  readonly snapshot?: SnapshotMeta
  /** A leader's appends and heartbeats: may leave while its own WAL writes (Raft thesis, section 10.2.1). */
  readonly sendNow: readonly Message[]
  /** Votes and append answers: never before fsync. */
  readonly sendAfterPersist: readonly Message[]
  /** Never above what this member itself has persisted: through advance() of an earlier Ready. */
  readonly committed: readonly Entry[]
  /** Linearizable reads that may be served once `index` is applied. index -1 = dropped (leader lost): retry with a new id. */
  readonly readStates: readonly { readonly id: bigint; readonly index: Index }[]
  /** False when only the commit index moved: no fsync is owed. */
  readonly mustSync: boolean
}

/** Pure. No I/O, clock or await; `random` is a seeded source given at construction. Nothing here throws on a peer's message. */
export interface RaftCore {
  step(message: Message): void
  /** One heartbeat unit has passed. */
  tick(): void
  /** Bootstrap and transfer: do not wait for an election timeout. */
  campaign(): void
  /** Leader appends, follower forwards. 'overloaded' = uncommitted bytes bound reached; nothing was proposed. */
  propose(data: Uint8Array): 'accepted' | 'noLeader' | 'overloaded'
  proposeConfChange(change: ConfChange): 'accepted' | 'noLeader' | 'pending'
  /** Called by the driver for every committed confChange entry once applied. */
  applyConfChange(change: ConfChange): Membership
  /** `id` fresh per attempt, never reused (etcd-io/etcd#20418). */
  readIndex(id: bigint): void
  transferLeadership(to: MemberId): void
  hasReady(): boolean
  ready(): Ready
  /** One Ready is being persisted at a time. The leader's own match moves here, not in propose. */
  advance(persisted: { readonly through: Index; readonly term: Term }, applied: Index): void
  /** The entries through `index` may be dropped from memory: a snapshot or checkpoint covers them. */
  compact(index: Index): void
  /** The transport's word on a snapshot stream to `member`. */
  reportSnapshot(member: MemberId, outcome: 'finished' | 'failed'): void
  /** The transport lost the connection to `member`: go back to probing. */
  reportUnreachable(member: MemberId): void
  status(): CoreStatus
}

export interface CoreStatus {
  readonly id: MemberId
  readonly role: Role
  readonly leader: MemberId
  readonly term: Term
  readonly vote: MemberId
  readonly commit: Index
  readonly applied: Index
  readonly firstIndex: Index
  readonly lastIndex: Index
  readonly lastTerm: Term
  readonly membership: Membership
  /** Leader only. */
  readonly progress?: ReadonlyMap<
    MemberId,
    { readonly match: Index; readonly next: Index; readonly state: 'probe' | 'replicate' | 'snapshot' }
  >
}
