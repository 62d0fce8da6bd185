import type { Index, MemberId, Membership, Term } from '../types.ts'
import type { ProgressState } from './progress.ts'

/** What happened inside the core, for logs and metrics. Nothing depends on somebody listening. */
export type CoreEvent =
  | { readonly type: 'becameFollower' | 'becamePreCandidate' | 'becameCandidate' | 'becameLeader'; readonly term: Term }
  | { readonly type: 'leaderElected' | 'leaderLost'; readonly leader: MemberId; readonly term: Term }
  | { readonly type: 'leaderChanged'; readonly from: MemberId; readonly to: MemberId; readonly term: Term }
  | {
      readonly type: 'voteGranted' | 'voteRejected' | 'voteIgnored'
      readonly preVote: boolean
      readonly candidate: MemberId
      readonly term: Term
    }
  | { readonly type: 'campaignRefused'; readonly reason: 'notVoter' | 'snapshotPending' | 'membershipUnapplied' }
  | { readonly type: 'quorumLost'; readonly term: Term }
  | { readonly type: 'transferStarted' | 'transferAborted'; readonly to: MemberId; readonly term: Term }
  | {
      readonly type: 'progressChanged'
      readonly member: MemberId
      readonly from: ProgressState
      readonly to: ProgressState
    }
  | { readonly type: 'snapshotRestored' | 'snapshotIgnored'; readonly index: Index; readonly term: Term }
  | { readonly type: 'membershipChanged'; readonly membership: Membership }
  | {
      readonly type: 'proposalDropped'
      readonly from: MemberId
      readonly reason: 'overloaded' | 'pending' | 'noLeader'
    }
  /** A leader's entry differs from one we know to be committed: the message was ignored. Somebody broke the protocol. */
  | { readonly type: 'committedConflict'; readonly from: MemberId; readonly index: Index }
  /**
   * The leader says we acknowledged entries that we do not hold: our disk lost them. From here on this core votes and
   * acknowledges nothing; the driver must stop the replica (etcd-io/raft#25).
   */
  | { readonly type: 'acknowledgedEntriesLost'; readonly commit: Index; readonly lastIndex: Index }

const hex = (id: MemberId): string => id.toString(16)

/** The line etcd's operators know, lower-case, ids in hexadecimal. */
export function describeEvent(event: CoreEvent): string {
  switch (event.type) {
    case 'becameFollower':
      return `became follower at term ${event.term}`
    case 'becamePreCandidate':
      return `became pre-candidate at term ${event.term}`
    case 'becameCandidate':
      return `became candidate at term ${event.term}`
    case 'becameLeader':
      return `became leader at term ${event.term}`
    case 'leaderElected':
      return `elected leader ${hex(event.leader)} at term ${event.term}`
    case 'leaderLost':
      return `lost leader ${hex(event.leader)} at term ${event.term}`
    case 'leaderChanged':
      return `changed leader from ${hex(event.from)} to ${hex(event.to)} at term ${event.term}`
    case 'voteGranted':
      return `granted ${event.preVote ? 'pre-vote' : 'vote'} to ${hex(event.candidate)} at term ${event.term}`
    case 'voteRejected':
      return `rejected ${event.preVote ? 'pre-vote' : 'vote'} of ${hex(event.candidate)} at term ${event.term}`
    case 'voteIgnored':
      return `ignored ${event.preVote ? 'pre-vote' : 'vote'} of ${hex(event.candidate)} at term ${event.term}: lease is not expired`
    case 'campaignRefused':
      return `cannot campaign: ${campaignReasons[event.reason]}`
    case 'quorumLost':
      return `stepped down to follower at term ${event.term}: quorum is not active`
    case 'transferStarted':
      return `started to transfer leadership to ${hex(event.to)} at term ${event.term}`
    case 'transferAborted':
      return `aborted transfer of leadership to ${hex(event.to)} at term ${event.term}`
    case 'progressChanged':
      return `progress of ${hex(event.member)}: ${event.from} -> ${event.to}`
    case 'snapshotRestored':
      return `restored snapshot at index ${event.index}, term ${event.term}`
    case 'snapshotIgnored':
      return `ignored snapshot at index ${event.index}, term ${event.term}`
    case 'membershipChanged':
      return `switched to membership voters=(${event.membership.voters.map(hex).join(' ')}) learners=(${event.membership.learners.map(hex).join(' ')})`
    case 'proposalDropped':
      return `dropped proposal of ${hex(event.from)}: ${event.reason}`
    case 'committedConflict':
      return `ignored an append of ${hex(event.from)} that conflicts with committed entry ${event.index}`
    case 'acknowledgedEntriesLost':
      return `log was lost: entry ${event.commit} was acknowledged, the log ends at ${event.lastIndex}; refusing to take part`
  }
}

const campaignReasons = {
  notVoter: 'not a voter',
  snapshotPending: 'a snapshot is being installed',
  membershipUnapplied: 'a committed membership change is not applied yet',
}
