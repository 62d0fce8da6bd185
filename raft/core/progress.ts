import type { Index, MemberId } from '../types.ts'
import { Inflights } from './inflights.ts'
import type { CoreLimits } from './limits.ts'

export type ProgressState = 'probe' | 'replicate' | 'snapshot'

/**
 * What the leader believes of one member. Invariant: 0 <= match < next.
 *
 * probe: one append at a time, to find where the logs meet. replicate: appends are sent ahead, `next` moves when
 * sending. snapshot: nothing is sent until the transport reports or the follower answers with an index we still hold.
 */
export class Progress {
  readonly member: MemberId
  voter: boolean
  match: Index = 0
  next: Index
  state: ProgressState = 'probe'
  /** probe only: an append is out and unanswered. */
  probeSent = false
  /** Highest commit index a delivered append would have told; lets a commit-only append be sent once. */
  sentCommit: Index = 0
  /** Send an append even without entries, to learn of a loss. */
  appendDue = false
  /** One heartbeat period has begun: its answer may free a stuck probe. Bounds resends to one per period. */
  recheckDue = false
  /** snapshot only: index of the snapshot under way. */
  pendingSnapshot: Index = 0
  /** Heard from since the last CheckQuorum round. */
  recentActive = false
  /** Last ReadIndex round it has answered (see reads.ts). */
  readRound = 0
  readonly inflights: Inflights

  constructor(member: MemberId, options: { voter: boolean; next: Index; limits: CoreLimits }) {
    this.member = member
    this.voter = options.voter
    this.next = options.next
    this.inflights = new Inflights(options.limits.inflightMessagesMax, options.limits.inflightBytesMax)
  }

  get paused(): boolean {
    switch (this.state) {
      case 'probe':
        return this.probeSent
      case 'replicate':
        return this.inflights.full
      case 'snapshot':
        return true
    }
  }

  becomeProbe(): void {
    // A follower that got a snapshot holds at least that much, told or not.
    const known = this.state === 'snapshot' ? Math.max(this.match, this.pendingSnapshot) : this.match
    this.#reset('probe')
    this.next = known + 1
    this.sentCommit = 0
  }

  becomeReplicate(): void {
    this.#reset('replicate')
    this.next = this.match + 1
  }

  becomeSnapshot(index: Index): void {
    this.#reset('snapshot')
    this.pendingSnapshot = index
    this.next = index + 1
  }

  #reset(state: ProgressState): void {
    this.state = state
    this.probeSent = false
    this.appendDue = false
    this.pendingSnapshot = 0
    this.inflights.reset()
  }

  /** An append ending at `lastIndex` goes out. */
  sent(lastIndex: Index, bytes: number, entries: number): void {
    this.appendDue = false
    if (this.state === 'probe') {
      this.probeSent = true
      return
    }
    if (entries === 0) return
    this.next = lastIndex + 1
    this.inflights.add(lastIndex, bytes)
  }

  /** True when `index` is news: the follower holds more than we knew. */
  accepted(index: Index): boolean {
    const news = index > this.match
    if (news) this.match = index
    if (index >= this.next) this.next = index + 1
    return news
  }

  /** False when the rejection is an old one, overtaken by later answers. */
  rejected(previousIndex: Index, matchHint: Index): boolean {
    // Old; or the follower lost what it acknowledged, and asking again at once would go on for ever: the next heartbeat
    // tells it (follower.ts).
    if (previousIndex <= this.match) return false
    if (this.state === 'replicate') {
      this.becomeProbe()
      return true
    }
    if (this.state === 'snapshot' || this.next - 1 !== previousIndex) return false
    this.next = Math.max(Math.min(previousIndex, matchHint + 1), this.match + 1)
    this.probeSent = false
    return true
  }
}
