import { silentLogger } from '../../../raft/env.ts'
import type { Env, Logger } from '../../../raft/env.ts'
import type { SeededRandom } from './random.ts'
import { SimDisk } from './sim-disk.ts'
import type { Simulation } from './simulation.ts'

/**
 * One machine: a disk that outlives crashes and, per boot, an Env. After crash() nothing of the old boot happens any
 * more: its timers are gone and its disk calls never return.
 */
export class SimNode {
  readonly name: string
  readonly disk: SimDisk
  /** Its clock runs this much faster than the simulation's. */
  readonly drift: number
  readonly #simulation: Simulation
  readonly #random: SeededRandom
  readonly #log: Logger
  #boot = 0
  #pausedUntil = 0

  constructor(simulation: Simulation, name: string, options: { readonly drift?: number; readonly log?: Logger } = {}) {
    this.name = name
    this.#simulation = simulation
    this.#random = simulation.random.fork()
    this.drift = options.drift ?? 1
    this.#log = options.log ?? silentLogger
    this.disk = new SimDisk(simulation, this.#random.fork(), name)
  }

  /** Counts boots; 0 = never booted. Odd and even say nothing. */
  get bootCount(): number {
    return this.#boot
  }

  boot(): Env {
    const boot = ++this.#boot
    const disk = this.disk.boot()
    const alive = () => this.#boot === boot
    const guarded = (run: () => void) => () => {
      if (!alive()) return
      // A stalled machine does late what it had to do: timers that came due run when it wakes.
      const late = this.#pausedUntil - this.#simulation.now
      if (late > 0) this.#simulation.after(late, guarded(run))
      else run()
    }
    const after = (delayMs: number, run: () => void) => this.#simulation.after(delayMs / this.drift, guarded(run))
    return {
      clock: {
        monotonicMs: () => this.#simulation.now * this.drift,
        wallMs: () => 1_700_000_000_000 + this.#simulation.now * this.drift,
      },
      random: this.#random,
      scheduler: {
        after,
        every: (periodMs, run) => {
          let timer = after(periodMs, tick)
          function tick(): void {
            // Before run(): run may cancel.
            timer = after(periodMs, tick)
            run()
          }
          return { cancel: () => timer.cancel() }
        },
        soon: (run) => void after(0, run),
      },
      disk,
      log: this.#log,
    }
  }

  /** Power failure. What was not synced is lost, torn and reordered. */
  crash(): void {
    this.#boot++
    this.disk.crash()
    this.#simulation.trace(`${this.name} crash`)
  }

  /** kill -9: the process is gone, what it wrote is still in the page cache, and may be lost by a later crash(). */
  kill(): void {
    this.#boot++
    this.disk.detach()
    this.#simulation.trace(`${this.name} kill`)
  }

  /** The machine does nothing for a while, and does not notice. */
  pause(milliseconds: number): void {
    this.#pausedUntil = this.#simulation.now + milliseconds
  }

  get paused(): boolean {
    return this.#pausedUntil > this.#simulation.now
  }

  get pausedUntil(): number {
    return this.#pausedUntil
  }
}
