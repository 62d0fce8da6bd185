import assert from 'node:assert/strict'
import type { CoreEvent } from '../../../raft/core/index.ts'
import type { Entry, Index, MemberId, Membership, Message, Term } from '../../../raft/types.ts'
import { ClusterMember, emptyDisk } from './cluster-member.ts'
import type { Checkpoint, MemberOptions } from './cluster-member.ts'
import { randomSource } from './random-source.ts'

export interface LossyClusterOptions extends Partial<Omit<MemberOptions, 'random'>> {
  readonly seed: number
  readonly voters: number
  readonly learners?: number
  /** Members also come and go, one at a time. */
  readonly membershipChanges?: boolean
}

const messagesMax = 400

/**
 * Cores on a network that loses, doubles, delays and reorders, with disks that lose what was not written, all under one
 * seed. Every step is checked against the safety properties of the Raft paper, figure 3, and reads against
 * linearizability.
 */
export class LossyCluster {
  readonly members = new Map<MemberId, ClusterMember>()
  readonly random: () => number
  readonly seed: number
  network: Message[] = []
  /** Cut off from everybody else; two in the same set still talk. */
  isolated = new Set<MemberId>()
  /** Highest commit index any member has known: what some client may have been told. */
  committed: Index = 0
  readonly #chosen = new Map<Index, string>()
  readonly #leaders = new Map<Term, MemberId>()
  readonly #reads = new Map<bigint, Index>()
  readonly #membershipAt = new Map<Index, string>()
  readonly #membershipChanges: boolean
  #readId = 0n
  changes = 0
  readsConfirmed = 0
  elections = 0
  snapshots = 0

  constructor(options: LossyClusterOptions) {
    const { seed, voters, learners = 0, membershipChanges = false, ...rest } = options
    this.#membershipChanges = membershipChanges
    this.seed = seed
    this.random = randomSource(seed)
    const ids = Array.from({ length: voters + learners }, (_, i) => BigInt(i + 1))
    const membership: Membership = { voters: ids.slice(0, voters), learners: ids.slice(voters) }
    const checkpoints = new Map<string, Checkpoint>()
    const hooks = {
      onEvent: (member: ClusterMember, event: CoreEvent) => this.#onEvent(member, event),
      onApply: (member: ClusterMember, entry: Entry) => this.#onApply(member, entry),
      onRead: (_: ClusterMember, read: { id: bigint; index: Index }) => this.#onRead(read),
    }
    for (const id of ids) {
      const memberOptions: MemberOptions = {
        electionTimeoutTicks: 10,
        heartbeatTicks: 1,
        preVote: true,
        checkQuorum: true,
        ...rest,
        random: this.random,
      }
      this.members.set(id, new ClusterMember(id, emptyDisk(membership), memberOptions, { checkpoints, hooks }))
    }
  }

  #fail(message: string): never {
    throw new Error(`${message} (replay with SEED=${this.seed})`)
  }

  #onEvent(member: ClusterMember, event: CoreEvent): void {
    if (event.type === 'snapshotRestored') this.snapshots++
    if (event.type === 'acknowledgedEntriesLost' || event.type === 'committedConflict') {
      this.#fail(`member ${member.id}: ${event.type}`)
    }
    if (event.type !== 'becameLeader') return
    this.elections++
    const other = this.#leaders.get(event.term)
    if (other !== undefined && other !== member.id) this.#fail(`term ${event.term} has two leaders`)
    this.#leaders.set(event.term, member.id)
    const { lastIndex } = member.core.status()
    if (lastIndex < this.committed) this.#fail(`leader ${member.id} lacks committed entry ${this.committed}`)
  }

  /** State machine safety: nobody ever applies another entry at the same index. Implies leader completeness. */
  #onApply(member: ClusterMember, entry: Entry): void {
    const chosen = `${entry.term} ${entry.type} ${Buffer.from(entry.data).toString('latin1')}`
    const before = this.#chosen.get(entry.index)
    if (before !== undefined && before !== chosen) this.#fail(`entry ${entry.index} was applied as two things`)
    this.#chosen.set(entry.index, chosen)
    const membership = member.membership.voters.join() + '/' + member.membership.learners.join()
    const known = this.#membershipAt.get(entry.index)
    if (known === undefined && entry.type === 'confChange') this.changes++
    if (known !== undefined && known !== membership) this.#fail(`memberships differ at ${entry.index}`)
    this.#membershipAt.set(entry.index, membership)
  }

  #onRead(read: { readonly id: bigint; readonly index: Index }): void {
    const floor = this.#reads.get(read.id)
    if (floor === undefined) return
    this.#reads.delete(read.id)
    if (read.index < 0) return
    this.readsConfirmed++
    if (read.index < floor) this.#fail(`read at ${read.index}, though ${floor} was committed before it began`)
  }

  get up(): readonly ClusterMember[] {
    return [...this.members.values()].filter((member) => member.up)
  }

  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.random() * from.length)]!
  }

  chance(probability: number): boolean {
    return this.random() < probability
  }

  /** Moves one member on: a Ready begins to be written, or is done. */
  drive(member: ClusterMember): void {
    if (member.writing !== undefined) this.#send(member.finish())
    else if (member.core.hasReady()) this.#send(member.begin())
    this.#note(member)
  }

  #note(member: ClusterMember): void {
    this.committed = Math.max(this.committed, member.core.status().commit)
  }

  #send(messages: readonly Message[]): void {
    for (const message of messages) {
      // A full network loses the oldest; that is allowed to it.
      if (this.network.length >= messagesMax) this.#lose(this.network.shift()!)
      this.network.push(message)
    }
  }

  #lose(message: Message): void {
    if (message.type === 'snapshot') this.#report(message, 'failed')
  }

  #report(message: Message & { type: 'snapshot' }, outcome: 'finished' | 'failed'): void {
    const sender = this.members.get(message.from)!
    if (sender.up) sender.core.reportSnapshot(message.to, outcome)
  }

  deliver(message: Message): void {
    const cut = this.isolated.has(message.from) !== this.isolated.has(message.to)
    const member = this.members.get(message.to)
    if (cut || member === undefined || !member.up) return this.#lose(message)
    member.core.step(message)
    if (message.type === 'snapshot') this.#report(message, 'finished')
    this.#note(member)
  }

  read(member: ClusterMember): void {
    const id = ++this.#readId
    this.#reads.set(id, this.committed)
    member.core.readIndex(id)
  }

  propose(member: ClusterMember, line: string): void {
    member.core.propose(new TextEncoder().encode(line))
  }

  /** One random step of the world; `faults` false = a network and machines that only delay. */
  step(options: { readonly faults: boolean }): void {
    const { up } = this
    const dice = this.random()
    if (dice < 0.45 && this.network.length > 0) return this.#deliverSome(options.faults)
    if (up.length > 0 && dice < 0.8) return this.drive(this.pick(up))
    if (up.length > 0 && dice < 0.87) return this.pick(up).core.tick()
    if (up.length > 0 && dice < 0.91) return this.propose(this.pick(up), `v${Math.floor(this.random() * 1e6)}`)
    if (up.length > 0 && dice < 0.94) return this.read(this.pick(up))
    if (options.faults) this.#fault(up)
  }

  #deliverSome(faults: boolean): void {
    const at = this.chance(0.6) ? 0 : Math.floor(this.random() * this.network.length)
    const message = this.network[at]!
    const copies = faults && this.chance(0.05)
    if (!copies) this.network.splice(at, 1)
    if (faults && this.chance(0.08)) this.#lose(message)
    else this.deliver(message)
  }

  #fault(up: readonly ClusterMember[]): void {
    const member = this.pick([...this.members.values()])
    const dice = this.random()
    if (dice < 0.25) {
      if (member.up && up.length > this.members.size / 2) member.crash()
      else if (!member.up) member.restart()
    } else if (dice < 0.5 && !member.up) member.restart()
    else if (dice < 0.62) {
      this.#cut()
    } else if (dice < 0.72 && member.up) this.#checkpoint(member)
    else if (dice < 0.78 && member.up) member.core.transferLeadership(this.pick([...this.members.keys()]))
    else if (dice < 0.82 && member.up) member.core.reportUnreachable(this.pick([...this.members.keys()]))
    else if (dice < 0.85 && member.up) member.core.campaign()
    else if (this.#membershipChanges && member.up) this.#change(member)
  }

  /** Nobody, a leader that does not know it yet, or any subset is cut off. */
  #cut(): void {
    const leader = this.up.find((member) => member.core.status().role === 'leader')
    const dice = this.random()
    if (dice < 0.4) this.isolated = new Set()
    else if (dice < 0.7 && leader !== undefined) this.isolated = new Set([leader.id])
    else this.isolated = new Set([...this.members.keys()].filter(() => this.chance(0.4)))
  }

  #change(at: ClusterMember): void {
    const member = this.pick([...this.members.keys()])
    at.core.proposeConfChange({ type: this.pick(['addVoter', 'addLearner', 'remove'] as const), member })
  }

  /** The membership in force where most has been applied. */
  get membership(): Membership {
    const [first] = [...this.members.values()].sort((a, b) => b.applied - a.applied)
    return first!.membership
  }

  #checkpoint(member: ClusterMember): void {
    if (member.writing === undefined) member.compact(member.applied)
  }

  /** Everything up and connected; runs rounds until all have applied the same, at most `rounds` of them. */
  heal(rounds: number): void {
    this.isolated = new Set()
    for (const member of this.members.values()) if (!member.up) member.restart()
    for (let round = 0; round < rounds; round++) {
      for (const member of this.members.values()) member.core.tick()
      this.settle()
      if (round % 20 === 19) this.propose(this.pick(this.up), `healed ${round}`)
    }
  }

  /** Delivers and drives in order until nothing moves; bounded. */
  settle(): void {
    for (let i = 0; i < 1_000; i++) {
      const messages = this.network
      this.network = []
      for (const message of messages) this.deliver(message)
      let moved = messages.length > 0
      for (const member of this.up) {
        while (member.writing !== undefined || member.core.hasReady()) {
          this.drive(member)
          moved = true
        }
      }
      if (!moved) return
    }
    this.#fail('the cluster does not come to rest')
  }

  /** Log Matching (figure 3): same index and term, same entry and same everything before it. */
  checkLogs(): void {
    const members = [...this.members.values()]
    for (const a of members) {
      for (const b of members) {
        const last = Math.min(lastOf(a), lastOf(b))
        let agree = false
        for (let index = last; index > Math.max(a.disk.checkpoint.index, b.disk.checkpoint.index); index--) {
          const left = entryOf(a, index)
          const right = entryOf(b, index)
          if (left.term === right.term) agree = true
          if (agree) assert.deepEqual(left, right, `logs of ${a.id} and ${b.id} at ${index}, SEED=${this.seed}`)
        }
      }
    }
  }

  /** All members stand at the same place and hold the same state. */
  checkConverged(): void {
    const { voters, learners } = this.membership
    const members = [...voters, ...learners].map((id) => this.members.get(id)!)
    for (const member of members) {
      assert.equal(member.applied, this.committed, `member ${member.id} applied, SEED=${this.seed}`)
      assert.deepEqual(member.lines, members[0]!.lines, `state of ${member.id}, SEED=${this.seed}`)
    }
  }
}

const lastOf = (member: ClusterMember): Index => member.disk.checkpoint.index + member.disk.entries.length

const entryOf = (member: ClusterMember, index: Index): Entry =>
  member.disk.entries[index - member.disk.checkpoint.index - 1]!
