import { inspect } from 'node:util'
import {
  createRaftNode,
  type Env,
  type Logger,
  type MemberId,
  type RaftNode,
  type RaftStatus,
} from '../../raft/index.ts'
import { closeReplica, createReplica, openReplica, type ReplicaContext } from '../../storage/embedded-replica.ts'
import { newManifest } from '../../storage/embedded-open.ts'
import { openEmbeddedStore, openMemoryBackend, type EmbeddedStore, type Store } from '../../storage/index.ts'
import type { StateHash } from '../../storage/mvcc/state-hash.ts'
import type { ReplicaStateMachine } from '../../storage/replica-state-machine.ts'
import { ReplicaStore } from '../../storage/replica-store.ts'
import { isInjected, SimNetwork, SimNode, type Simulation } from './env/index.ts'
import type { Journal } from './journal.ts'
import type { Parameters } from './parameters.ts'

/** A process that can lose its power, and what clients may call of it. */
export interface SimProcess {
  readonly machine: SimNode
  readonly store: Store | undefined
  /** Counts starts: a client's watch belongs to one of them. */
  readonly life: number
  start(): Promise<void>
  /** While it does not run: the directory of one of its replicas is gone, if it is one of several. */
  loseReplica(number: number): void
  /** Ends in good order; a crash may come meanwhile, then it never resolves. */
  stop(): Promise<void>
  /** Power failure; or only the process is killed, and what it wrote stays in the page cache for now. */
  crash(how: 'power' | 'kill'): void
  /** What each of its replicas has applied, while it runs. */
  applied(): readonly number[]
  hashes(): Promise<readonly StateHash[]>
  /** Called when it ends by itself, its disk having failed. */
  onBroken: () => void
  /** Ends or starts a single replica of the process, if it is one of several. */
  toggleReplica(number: number): Promise<void>
  /** The term in which one of its replicas believes that it leads; 0 = none does. */
  readonly leadingTerm: number
  /** Looks at roles. */
  look(): void
  /** Roles and positions, for the report of a failure. */
  describe(): string
}

export interface SimCluster {
  readonly processes: readonly SimProcess[]
  readonly network: SimNetwork
}

export function createCluster(simulation: Simulation, parameters: Parameters, journal: Journal): SimCluster {
  const network = new SimNetwork(simulation)
  const together = parameters.layout === 'together'
  const ids = together ? [0n] : Array.from({ length: parameters.replicas }, (_, i) => BigInt(i + 1))
  const processes = ids.map((id) => {
    const options = { drift: 1 + (Number(id) - 1) / 50, log: alarmLog(simulation, journal, id) }
    const machine = new SimNode(simulation, `n${id}`, options)
    machine.disk.latencyMsMax = parameters.diskLatencyMsMax
    return together
      ? new WholeProcess(machine, parameters, journal)
      : new ReplicaProcess(machine, network, id, parameters, journal)
  })
  return { processes, network }
}

/** Nothing but an injected disk error may be logged as an error. SIM_LOG=1 prints what is logged. */
function alarmLog(simulation: Simulation, journal: Journal, id: MemberId): Logger {
  const print = (fields: object, message: string): void => {
    if (process.env['SIM_LOG'] === undefined) return
    process.stderr.write(
      `${simulation.now.toFixed(1)} ${id}: ${message} ${inspect(fields, { breakLength: Infinity })}\n`,
    )
  }
  const log: Logger = {
    debug: print,
    info: print,
    warn: print,
    error: (fields, message) => {
      print(fields, message)
      if ('error' in fields && isInjected(fields.error)) return
      const error = 'error' in fields && fields.error instanceof Error ? (fields.error.stack ?? '') : ''
      journal.fail(`process ${id} logs: ${message} ${error}`)
    },
    child: () => log,
  }
  return log
}

/** `trireme up`: all replicas on one disk, joined by the in-process transport, behind one facade. */
class WholeProcess implements SimProcess {
  readonly machine: SimNode
  readonly #parameters: Parameters
  readonly #journal: Journal
  store: EmbeddedStore | undefined
  onBroken: () => void = () => undefined
  life = 0
  /** The number of a replica whose directory was taken away; another one goes only once a start has made it anew. */
  #lost: number | undefined

  constructor(machine: SimNode, parameters: Parameters, journal: Journal) {
    this.machine = machine
    this.#parameters = parameters
    this.#journal = journal
  }

  async start(): Promise<void> {
    this.machine.disk.faults.length = 0
    const env = this.machine.boot()
    const own = this.machine.bootCount
    const { replicas, raft } = this.#parameters
    const store = await openEmbeddedStore({
      directory: 'data',
      env,
      replicas,
      compaction: { intervalMs: 0 },
      openBackend: openMemoryBackend,
      processes: { ownPid: own, startOf: (pid) => Promise.resolve(pid === own ? 'now' : undefined) },
      raft: { ...raft, wrap: (id, machine) => this.#journal.watch(id, machine) },
    })
    this.store = store
    this.life++
    if (this.#lost !== undefined) this.#journal.mark('rebuilt')
    this.#lost = undefined
    const damaged = (await env.disk.list('data')).find((name) => name.includes('damaged'))
    if (damaged !== undefined) this.#journal.fail(`a replica was found damaged: ${damaged}`)
  }

  loseReplica(number: number): void {
    if (this.life === 0 || this.#parameters.replicas === 1) return
    this.#lost ??= number
    this.machine.disk.lose(`data/replica-${this.#lost}`)
  }

  async stop(): Promise<void> {
    const { store } = this
    this.store = undefined
    await store?.close()
  }

  crash(how: 'power' | 'kill'): void {
    if (how === 'power') this.machine.crash()
    else this.machine.kill()
    this.store = undefined
  }

  get leadingTerm(): number {
    return Math.max(0, ...(this.store?.replicas().map(({ raft }) => ledTerm(raft)) ?? []))
  }

  applied(): readonly number[] {
    return this.store?.replicas().map(({ raft }) => raft?.applied ?? -1) ?? [-1]
  }

  async hashes(): Promise<readonly StateHash[]> {
    const { store } = this
    return store ? Promise.all(store.replicas().map(({ id }) => store.hash(id))) : []
  }

  async toggleReplica(number: number): Promise<void> {
    const { store } = this
    if (!store) return
    const gone = store.replicas().find(({ state }) => state !== 'running')
    if (gone) {
      const injected = isInjected(gone.error)
      this.#journal.check(gone.state === 'stopped' || injected, () => `${gone.name} broke: ${gone.error?.stack}`)
      if (injected) this.#journal.mark('broken')
      this.machine.disk.faults.length = 0
      return store.startReplica(gone.id)
    }
    if (this.#parameters.replicas === 1) return
    const chosen = store.replicas()[number % this.#parameters.replicas]
    if (chosen) await store.killReplica(chosen.id)
  }

  look(): void {
    for (const { id, raft } of this.store?.replicas() ?? []) if (raft) this.#journal.sawStatus(id, raft)
  }

  describe(): string {
    return (this.store?.replicas() ?? []).map(({ state, raft }) => `${state} ${describeStatus(raft)}`).join('\n  ')
  }
}

/** One replica on a machine of its own. */
class ReplicaProcess implements SimProcess {
  readonly machine: SimNode
  readonly #network: SimNetwork
  readonly #id: MemberId
  readonly #parameters: Parameters
  readonly #journal: Journal
  #running: { readonly node: RaftNode; readonly machine: ReplicaStateMachine; readonly store: ReplicaStore } | undefined
  /** Its node has run: from then on its directory must be whole. */
  #born = false
  onBroken: () => void = () => undefined
  life = 0

  constructor(machine: SimNode, network: SimNetwork, id: MemberId, parameters: Parameters, journal: Journal) {
    this.machine = machine
    this.#network = network
    this.#id = id
    this.#parameters = parameters
    this.#journal = journal
  }

  get store(): Store | undefined {
    return this.#running?.store
  }

  async start(): Promise<void> {
    this.machine.disk.faults.length = 0
    const env = this.machine.boot()
    const { raft, replicas } = this.#parameters
    const manifest = newManifest(replicas, 7n)
    const member = manifest.members[Number(this.#id) - 1]
    if (!member) throw new Error(`no member ${this.#id}`)
    const context: ReplicaContext = { env, directory: 'data', manifest, openBackend: openMemoryBackend, segments: raft }
    const opened = this.#born ? await openReplica(context, member) : await this.#create(context, env, member)
    if (!opened) throw new Error(`the directory of replica ${this.#id} is gone`)
    try {
      const node = await createRaftNode({
        ...raft,
        id: this.#id,
        env,
        wal: opened.wal,
        stateMachine: this.#journal.watch(this.#id, opened.machine),
        transport: this.#network.transport(this.#id, this.machine),
      })
      this.#born = true
      node.onStatusChange((status) => this.#journal.sawStatus(this.#id, status))
      const { machine } = opened
      this.#running = { node, machine, store: new ReplicaStore({ env, node, machine }) }
      this.life++
      const boot = this.machine.bootCount
      void node.ended.then((error) => {
        if (error === undefined || this.machine.bootCount !== boot) return
        this.#journal.check(isInjected(error), () => `replica ${this.#id} broke: ${error.stack}`)
        this.#journal.mark('broken')
        this.onBroken()
      })
    } catch (error) {
      await closeReplica(opened)
      throw error
    }
  }

  async #create(context: ReplicaContext, env: Env, member: { readonly id: MemberId; readonly name: string }) {
    await env.disk.removeTree(`data/${member.name}`)
    const opened = await createReplica(context, member)
    await env.disk.syncDirectory('data')
    return opened
  }

  loseReplica(): void {}

  async stop(): Promise<void> {
    const running = this.#running
    this.#running = undefined
    await running?.store.close()
    await running?.node.stop({ checkpoint: true })
    await running?.machine.close()
  }

  crash(how: 'power' | 'kill'): void {
    if (how === 'power') this.machine.crash()
    else this.machine.kill()
    this.#running = undefined
  }

  get leadingTerm(): number {
    return ledTerm(this.#running?.node.status())
  }

  applied(): readonly number[] {
    return [this.#running?.machine.appliedIndex ?? -1]
  }

  async hashes(): Promise<readonly StateHash[]> {
    return this.#running ? [await this.#running.machine.engine.hash()] : []
  }

  async toggleReplica(): Promise<void> {}

  look(): void {
    if (this.#running) this.#journal.sawStatus(this.#id, this.#running.node.status())
  }

  describe(): string {
    return describeStatus(this.#running?.node.status())
  }
}

function ledTerm(status: RaftStatus | undefined): number {
  return status?.role === 'leader' ? status.term : 0
}

function describeStatus(status: RaftStatus | undefined): string {
  const plain = { ...status, progress: [...(status?.progress ?? [])] }
  return JSON.stringify(plain, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
}
