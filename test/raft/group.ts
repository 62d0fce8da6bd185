import type { Logger } from '../../raft/env.ts'
import { silentLogger } from '../../raft/env.ts'
import { createRaftNode } from '../../raft/node.ts'
import type { RaftNodeOptions } from '../../raft/node.ts'
import type { RaftNode, SnapshotSource } from '../../raft/seams.ts'
import { createMemoryHub } from '../../raft/transport-memory.ts'
import type { MemoryHub } from '../../raft/transport-memory.ts'
import type { MemberId, Message } from '../../raft/types.ts'
import { openWal } from '../../raft/wal/index.ts'
import { SimNode } from '../simulation/env/sim-node.ts'
import { Simulation } from '../simulation/env/simulation.ts'
import { ListMachine } from './list-machine.ts'

export interface Member {
  readonly node: RaftNode
  readonly machine: ListMachine
}

/** Members over simulated machines and the in-process transport, which stays perfect unless cut. */
export class Group {
  readonly simulation: Simulation
  readonly ids: readonly MemberId[]
  readonly #hub: MemoryHub = createMemoryHub()
  readonly #machines = new Map<MemberId, SimNode>()
  readonly #members = new Map<MemberId, Member>()
  readonly #cut = new Set<MemberId>()
  readonly #options: Partial<RaftNodeOptions>
  lose: (message: Message) => boolean = () => false

  constructor(seed: number, size: number, options: Partial<RaftNodeOptions> & { readonly log?: Logger } = {}) {
    this.simulation = new Simulation(seed)
    this.ids = Array.from({ length: size }, (_, i) => BigInt(i + 1))
    this.#options = options
    const log = options.log ?? silentLogger
    for (const id of this.ids) this.#machines.set(id, new SimNode(this.simulation, `n${id}`, { log }))
    this.#hub.filter((message) => {
      return !this.#cut.has(message.from) && !this.#cut.has(message.to) && !this.lose(message)
    })
  }

  async start(): Promise<void> {
    await Promise.all(this.ids.map((id) => this.boot(id)))
  }

  machine(id: MemberId): SimNode {
    return this.#machines.get(id)!
  }

  member(id: MemberId): Member {
    return this.#members.get(id)!
  }

  running(): Member[] {
    return [...this.#members.values()]
  }

  boot(id: MemberId): Promise<Member> {
    return this.simulation.finish(this.#boot(id))
  }

  async #boot(id: MemberId): Promise<Member> {
    const env = this.machine(id).boot()
    const wal = await openWal({
      disk: env.disk,
      directory: 'data/wal',
      log: env.log,
      random: env.random,
      metadata: { clusterId: 1n, memberId: id },
      initial: {
        hardState: { term: 0, vote: 0n, commit: 0 },
        snapshot: { index: 0, term: 0, membership: { voters: this.ids, learners: [] } },
      },
      firstSegmentBytes: 8 * 1024,
      segmentBytes: 32 * 1024,
    })
    const machine = await ListMachine.open(env.disk, 'data/state')
    const transport = this.#hub.transport(id)
    const node = await createRaftNode({ ...this.#options, id, env, wal, stateMachine: machine, transport })
    const member = { node, machine }
    this.#members.set(id, member)
    return member
  }

  crash(id: MemberId): void {
    this.machine(id).crash()
    this.#hub.transport(id)
    this.#members.delete(id)
  }

  /** Delivers messages that `lose` has seen once more. */
  resend(messages: readonly Message[]): void {
    const outsider = this.#hub.transport(99n)
    for (const message of messages) outsider.send(message)
  }

  sendSnapshot(message: Message & { type: 'snapshot' }, source: SnapshotSource): Promise<void> {
    return this.#hub.transport(99n).sendSnapshot(message, source)
  }

  isolate(id: MemberId): void {
    this.#cut.add(id)
  }

  heal(): void {
    this.#cut.clear()
  }

  async leader(): Promise<Member> {
    const find = () => this.running().find(({ node }) => node.status().role === 'leader' && !this.#cut.has(node.id))
    await this.simulation.run(() => find() !== undefined)
    return find()!
  }

  propose(member: Member, text: string, signal: AbortSignal = new AbortController().signal): Promise<unknown> {
    return member.node.propose(Buffer.from(text), { signal })
  }

  /** Runs until everybody running has applied what the leader has. */
  async settle(): Promise<void> {
    const { node } = await this.leader()
    const index = node.status().lastIndex
    await this.simulation.run(() => this.running().every(({ machine }) => machine.appliedIndex >= index))
  }
}
