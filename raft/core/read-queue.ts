import type { Index, MemberId } from '../types.ts'
import { quorumValue } from './quorum.ts'

export interface PendingRead {
  readonly from: MemberId
  readonly id: bigint
}

interface WaitingRead extends PendingRead {
  /** Commit index when the read arrived. */
  readonly index: Index
  /** Heartbeat round that must be answered by a quorum; 0 = not sent yet. */
  round: number
}

/**
 * Linearizable reads at the leader (Raft thesis, section 6.4): note the commit index, prove by one heartbeat round that
 * nobody else leads, answer with the index.
 *
 * Rounds are numbered by this queue, never reset and never taken from a requester: an answer to round 7 proves
 * leadership after round 7 was sent, so it confirms reads of rounds <= 7 and none of a later one, however often and
 * late it arrives (etcd-io/etcd#20418). Reads of one Ready share a round.
 *
 * Before the first commit of the term the commit index may be stale: reads are held back unnumbered
 * (etcd-io/etcd#7331).
 */
export class ReadQueue {
  #heldBack: PendingRead[] = []
  #waiting: WaitingRead[] = []
  #unsent = 0
  #round = 0
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get full(): boolean {
    return this.#heldBack.length + this.#waiting.length >= this.#max
  }

  /** Reads whose round has not been sent. */
  get unsent(): boolean {
    return this.#unsent > 0
  }

  holdBack(read: PendingRead): void {
    this.#heldBack.push(read)
  }

  takeHeldBack(): readonly PendingRead[] {
    const reads = this.#heldBack
    this.#heldBack = []
    return reads
  }

  add(read: PendingRead, index: Index): void {
    this.#waiting.push({ from: read.from, id: read.id, index, round: 0 })
    this.#unsent++
  }

  /** Number for the heartbeats about to leave; 0 when no read waits. Repeats the last one to make up for losses. */
  startRound(): number {
    if (this.#waiting.length === 0) return 0
    if (this.#unsent > 0) {
      this.#round++
      for (let i = this.#waiting.length - this.#unsent; i < this.#waiting.length; i++) {
        this.#waiting[i]!.round = this.#round
      }
      this.#unsent = 0
    }
    return this.#round
  }

  get lastRound(): number {
    return this.#round
  }

  /**
   * @param answered - Per voter the last round it has answered; the leader itself counts as Infinity. Sorted in place.
   * @returns The reads now proven, oldest first; they leave the queue.
   */
  confirm(answered: number[]): readonly WaitingRead[] {
    const round = quorumValue(answered)
    let count = 0
    while (count < this.#waiting.length) {
      const read = this.#waiting[count]!
      if (read.round === 0 || read.round > round) break
      count++
    }
    return count === 0 ? [] : this.#waiting.splice(0, count)
  }

  /** Not the leader any more. Returns what was waiting. */
  clear(): readonly PendingRead[] {
    const reads = this.#heldBack.length === 0 ? this.#waiting : [...this.#waiting, ...this.#heldBack]
    this.#heldBack = []
    this.#waiting = []
    this.#unsent = 0
    return reads
  }
}
