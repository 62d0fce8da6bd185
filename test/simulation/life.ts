import { Clients } from './clients.ts'
import { createCluster, type SimCluster, type SimProcess } from './cluster.ts'
import { createSimulation, type SeededRandom, type Simulation } from './env/index.ts'
import { Journal } from './journal.ts'
import { drawParameters, type Parameters } from './parameters.ts'
import { WatchClient } from './watch-client.ts'

export interface LifeOptions {
  readonly seed: number
  /** Crash points to go through. */
  readonly points: number
  /** Instead of drawing it: the n-th change on disk, counted from the first start, is the first crash point. */
  readonly firstChange?: number
  readonly parameters?: Partial<Parameters>
}

export interface LifeResult {
  readonly points: number
  readonly hash: string
  readonly parameters: Parameters
  readonly acknowledged: number
  readonly unknown: number
  readonly reads: number
  readonly watched: number
  readonly revision: number
  readonly terms: number
  /** Changes on disk of all machines. */
  readonly changes: number
  readonly marks: Journal['marks']
}

export class LifeError extends Error {
  readonly seed: number
  constructor(seed: number, failures: readonly string[], parameters: Parameters) {
    super(`seed ${seed}: ${failures.slice(0, 3).join('\n  ')}\n  ${JSON.stringify(parameters)}`)
    this.name = 'LifeError'
    this.seed = seed
  }
}

/**
 * A cluster under one seed: clients work all the time, machines lose their power at chosen changes of their disks, some
 * again while they recover; networks part, machines stall. After every crash it must come back and go on.
 *
 * @throws LifeError with what went wrong first.
 */
export async function live(options: LifeOptions): Promise<LifeResult> {
  return new Life(options).run()
}

const comesBackWithinMs = 60_000

class Life {
  readonly #options: LifeOptions
  readonly #simulation: Simulation
  readonly #random: SeededRandom
  readonly #parameters: Parameters
  readonly #journal = new Journal()
  readonly #cluster: SimCluster
  readonly #clients: Clients
  readonly #watchers: readonly WatchClient[]
  readonly #starting = new Set<SimProcess>()
  #points = 0

  constructor(options: LifeOptions) {
    const simulation = createSimulation(options.seed)
    this.#options = options
    this.#simulation = simulation
    this.#random = simulation.random.fork()
    const parameters = { ...drawParameters(this.#random), ...options.parameters }
    const journal = this.#journal
    this.#parameters = parameters
    this.#cluster = createCluster(simulation, parameters, journal)
    const { processes } = this.#cluster
    const stores = () => processes.flatMap(({ store }) => store ?? [])
    this.#clients = new Clients({ simulation, journal, parameters, stores })
    this.#watchers = Array.from(
      { length: parameters.watchers },
      () => new WatchClient({ simulation, journal, parameters, processes }),
    )
  }

  async run(): Promise<LifeResult> {
    const { processes } = this.#cluster
    for (const process of processes) {
      process.machine.disk.onCrashPoint = () => this.#crash(process)
      if (this.#options.firstChange !== undefined) process.machine.disk.crashAtChange = this.#options.firstChange
    }
    for (const process of processes) {
      process.onBroken = () => {
        process.crash('kill')
        // What the failed sync left in the page cache only must not be believed by the next start.
        if (this.#random.chance(0.5)) this.#arm(process, 12)
        this.#startLater(process)
      }
      this.#start(process)
    }
    this.#clients.start()
    for (const watcher of this.#watchers) watcher.start()
    this.#lookAround()
    await this.#until('the first start', () => this.#allRun())
    Object.assign(this.#cluster.network.weather, this.#parameters.network)
    while (this.#points < this.#options.points) await this.#crashPoint()
    await this.#comeToRest()
    return this.#result()
  }

  /** Arms one or several disks, makes some weather, and waits until everything is up again. */
  async #crashPoint(): Promise<void> {
    const random = this.#random
    const { processes } = this.#cluster
    const before = this.#points
    const all = random.chance(0.25)
    const span = random.chance(0.3) ? 12 : 150
    const chosen = processes[random.between(0, processes.length - 1)]
    if (processes.length > 1 && random.chance(0.15)) await this.#figureEight()
    if (random.chance(0.5)) this.#disturb()
    // Long enough for others to elect a leader, who must not be overlooked by the one cut off.
    if (random.chance(0.2)) await this.#run(random.float() * 5_000)
    for (const process of processes) {
      if (all || process === chosen) this.#arm(process, span)
    }
    await this.#until('a crash', () => this.#points > before || this.#stuck())
    await this.#run(random.float() * (random.chance(0.3) ? 3_000 : 200))
    this.#calm()
    await this.#until('everything runs again', () => this.#allRun())
    const index = this.#journal.model.operations.size
    await this.#until('writes go on', () => {
      this.#calmWhenNeeded()
      return this.#journal.model.operations.size > index
    })
    if (random.chance(0.15)) await this.#compareHashes()
  }

  /**
   * Raft paper, figure 8: a leader is cut off with entries that nobody else has; another is elected and cut off at once;
   * the first leads again and hands the old entries on; and is cut off while the new ones are under way. The second, with
   * the newer term in its log, may then replace what it never had: nobody may have called it committed.
   */
  async #figureEight(): Promise<void> {
    const { processes, network } = this.#cluster
    const isolate = (process: SimProcess): void => {
      network.heal()
      network.isolate(BigInt(processes.indexOf(process) + 1))
    }
    let term = Math.max(...processes.map(({ leadingTerm }) => leadingTerm))
    let leader = processes.find(({ leadingTerm }) => leadingTerm > 0 && leadingTerm === term)
    for (let turn = 0; leader && turn < 3; turn++) {
      // The last one has been heard of by some for a moment.
      if (turn === 2) await this.#run(this.#random.float() * 6 * network.weather.latencyMsMax)
      isolate(leader)
      const end = this.#simulation.now + 10_000
      let next: SimProcess | undefined
      await this.#simulation.run(() => {
        next = processes.find(({ leadingTerm }) => leadingTerm > term)
        return next !== undefined || this.#simulation.now > end || this.#journal.failures.length > 0
      })
      this.#assertFine()
      leader = next
      term = next?.leadingTerm ?? term
      if (turn === 2 && next) this.#journal.mark('figureEights')
    }
    network.heal()
  }

  #arm(process: SimProcess, span: number): void {
    const { disk } = process.machine
    disk.crashAtChange = disk.changeCount + this.#random.between(1, span)
  }

  #crash(process: SimProcess): void {
    const random = this.#random
    this.#points++
    const how = random.chance(0.15) ? 'kill' : 'power'
    if (how === 'kill') this.#journal.mark('kills')
    if (this.#starting.has(process)) this.#journal.mark('recoveryCrashes')
    process.crash(how)
    this.#starting.delete(process)
    // A power cut often takes more than one.
    const others = random.chance(0.3) ? this.#cluster.processes.filter((other) => other !== process) : []
    for (const other of others) {
      other.crash(how)
      this.#starting.delete(other)
    }
    for (const down of [process, ...others]) {
      const { disk } = down.machine
      disk.crashAtChange = Number.POSITIVE_INFINITY
      if (this.#points < this.#options.points && random.chance(0.3)) this.#arm(down, 40)
      this.#startLater(down)
    }
  }

  #startLater(process: SimProcess): void {
    const boot = process.machine.bootCount
    this.#simulation.after(this.#random.float() * 1_500, () => {
      if (process.machine.bootCount === boot) this.#start(process)
    })
  }

  #start(process: SimProcess): void {
    if (this.#random.chance(0.08)) process.loseReplica(this.#random.between(1, this.#parameters.replicas))
    this.#starting.add(process)
    const booted = process.machine.bootCount + 1
    process.start().then(
      () => this.#starting.delete(process),
      (error: unknown) => {
        if (process.machine.bootCount !== booted) return
        this.#starting.delete(process)
        this.#journal.fail(`${process.machine.name} does not start: ${error instanceof Error ? error.stack : error}`)
      },
    )
  }

  /** A partition one or both ways, a stall, or a replica of a process stopped for a while. */
  #disturb(): void {
    const random = this.#random
    const { processes, network } = this.#cluster
    const leader = random.chance(0.5) ? processes.find(({ leadingTerm }) => leadingTerm > 0) : undefined
    const chosen = leader ?? processes[random.between(0, processes.length - 1)]
    if (!chosen) return
    const kind = random.between(0, 6)
    if (kind >= 5) this.#failDisk(chosen)
    else if (kind === 0) chosen.machine.pause(random.between(50, 4_000))
    else if (kind === 4) this.#stopInGoodOrder(chosen)
    else if (processes.length === 1) this.#toggle(chosen)
    else if (kind === 1) network.isolate(BigInt(processes.indexOf(chosen) + 1))
    else network.cut(BigInt(random.between(1, 3)), BigInt(random.between(1, 3)))
  }

  /** All at once, or one of them; some time later it starts again. */
  #stopInGoodOrder(chosen: SimProcess): void {
    const all = this.#random.chance(0.5)
    for (const process of this.#cluster.processes) {
      if (!process.store || this.#starting.has(process) || !(all || process === chosen)) continue
      const boot = process.machine.bootCount
      const pauseMs = this.#random.float() * 500
      process.stop().then(
        () => {
          this.#journal.mark('stops')
          this.#simulation.after(pauseMs, () => {
            if (process.machine.bootCount === boot) this.#start(process)
          })
        },
        (error: unknown) => this.#journal.fail(`${process.machine.name} does not stop: ${String(error)}`),
      )
    }
  }

  /** A write or sync soon to come fails, once or from then on, under one replica's directory or one kind of file. */
  #failDisk({ machine }: SimProcess): void {
    const random = this.#random
    const operation = random.chance(0.5) ? 'sync' : 'write'
    const code = random.chance(0.5) ? 'EIO' : 'ENOSPC'
    const what = ['wal', 'state', 'CURRENT', ''][random.between(0, 3)]
    const { layout, replicas } = this.#parameters
    const number = layout === 'apart' ? '' : random.between(1, replicas)
    const path = new RegExp(`replica-${number}.*${what}`)
    const times = random.chance(0.5) ? { times: 1 } : {}
    machine.disk.faults.push({ operation, code, path, after: random.between(0, 20), ...times })
  }

  #toggle(process: SimProcess): void {
    const boot = process.machine.bootCount
    const { store } = process
    process.toggleReplica(this.#random.between(0, 2)).catch((error: unknown) => {
      if (process.machine.bootCount === boot && process.store === store)
        this.#journal.fail(`a replica does not stop or start: ${String(error)}`)
    })
  }

  #calm(): void {
    this.#cluster.network.heal()
    for (const process of this.#cluster.processes) {
      process.machine.disk.faults.length = 0
      if (process.store && process.applied().includes(-1)) this.#toggle(process)
    }
  }

  #stuck(): boolean {
    // A quiet disk (a partitioned minority) may never reach its crash point.
    return this.#simulation.now - this.#since > 10_000
  }

  #since = 0

  #allRun(): boolean {
    return this.#cluster.processes.every((process) => process.store !== undefined && !this.#starting.has(process))
  }

  #lookAround(): void {
    this.#simulation.after(25, () => {
      for (const process of this.#cluster.processes) process.look()
      this.#lookAround()
    })
  }

  async #run(milliseconds: number): Promise<void> {
    const end = this.#simulation.now + milliseconds
    await this.#simulation.run(() => this.#simulation.now >= end || this.#journal.failures.length > 0)
    this.#assertFine()
  }

  async #until(what: string, holds: () => boolean): Promise<void> {
    this.#since = this.#simulation.now
    const end = this.#since + comesBackWithinMs
    await this.#simulation.run(() => holds() || this.#simulation.now > end || this.#journal.failures.length > 0)
    this.#assertFine()
    if (!holds()) {
      const found = this.#cluster.processes.map((process) => process.describe())
      this.#journal.fail([`not within ${comesBackWithinMs} ms: ${what}`, ...found].join('\n  '))
    }
    this.#assertFine()
  }

  #assertFine(): void {
    const { failures } = this.#journal
    if (failures.length > 0) throw new LifeError(this.#options.seed, failures, this.#parameters)
  }

  /** Of all replicas that run, wherever they are: equal where revision and compact revision are. */
  async #compareHashes(): Promise<void> {
    const running = this.#cluster.processes.filter(({ store }) => store !== undefined)
    const boots = running.map(({ machine }) => machine.bootCount)
    const hashing = Promise.allSettled(running.map((process) => process.hashes()))
    let done = false
    void hashing.then(() => (done = true))
    await this.#until('hashes', () => done || running.some(({ machine }, i) => machine.bootCount !== boots[i]))
    if (!done) return
    const seen = new Map<string, string>()
    for (const result of await hashing) {
      if (result.status === 'rejected') continue
      for (const { revision, compactRevision, hash } of result.value) {
        const at = `${revision}/${compactRevision}`
        const other = seen.get(at)
        this.#journal.check(other === undefined || other === hash, () => `replicas differ at ${at}`)
        seen.set(at, hash)
      }
    }
    this.#assertFine()
  }

  async #comeToRest(): Promise<void> {
    const { processes, network } = this.#cluster
    for (const { machine } of processes) machine.disk.crashAtChange = Number.POSITIVE_INFINITY
    Object.assign(network.weather, { drop: 0, duplicate: 0, latencyMsMax: 2 })
    this.#clients.stop()
    this.#calm()
    await this.#until('everything runs at the end', () => this.#allRun())
    await this.#run(5_000)
    const { model } = this.#journal
    await this.#until('all replicas have everything', () => {
      this.#calmWhenNeeded()
      return processes.every((process) => process.applied().every((index) => index >= model.lastIndex))
    })
    await this.#until('all watchers have everything', () => this.#watchers.every((watcher) => watcher.caughtUp()))
    await this.#compareHashes()
    this.#clients.checkRefused()
    this.#assertFine()
  }

  #calmedAt = 0

  #calmWhenNeeded(): void {
    if (this.#simulation.now - this.#calmedAt < 500) return
    this.#calmedAt = this.#simulation.now
    this.#calm()
  }

  #result(): LifeResult {
    const { acknowledged, unknown, reads } = this.#clients
    return {
      points: this.#points,
      hash: this.#simulation.traceHash(),
      parameters: this.#parameters,
      acknowledged,
      unknown,
      reads,
      watched: this.#watchers.reduce((sum, watcher) => sum + watcher.delivered, 0),
      revision: this.#journal.model.revision,
      terms: this.#journal.termCount,
      changes: this.#cluster.processes.reduce((sum, { machine }) => sum + machine.disk.changeCount, 0),
      marks: this.#journal.marks,
    }
  }
}
