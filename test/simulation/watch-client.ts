import type { WatchBatch, Watcher } from '../../storage/index.ts'
import type { SeededRandom, Simulation } from './env/index.ts'
import type { SimProcess } from './cluster.ts'
import { allKeys, keyOf } from './clients.ts'
import type { Journal } from './journal.ts'
import { bytesOf, rowOf, textOf, type ModelEvent } from './model.ts'
import type { Parameters } from './parameters.ts'

/**
 * Holds one watch, for as long as the process under it lives, and goes on where it was at any other process. Every
 * batch must be the next events of the model, whole revisions, none left out, none twice, none early.
 */
export class WatchClient {
  readonly #simulation: Simulation
  readonly #random: SeededRandom
  readonly #journal: Journal
  readonly #processes: readonly SimProcess[]
  readonly #from: string
  readonly #to: string | undefined
  readonly #prevKv: boolean
  #watcher: Watcher | undefined
  #process: SimProcess | undefined
  #life = 0
  /** Everything below has been delivered; 0 = has never watched. */
  #next = 0
  #cursor = 0
  delivered = 0

  constructor(options: {
    readonly simulation: Simulation
    readonly journal: Journal
    readonly parameters: Parameters
    readonly processes: readonly SimProcess[]
  }) {
    this.#simulation = options.simulation
    this.#random = options.simulation.random.fork()
    this.#journal = options.journal
    this.#processes = options.processes
    const single = this.#random.chance(0.3)
    this.#from = single ? keyOf(this.#random.between(1, options.parameters.keys)) : allKeys.from
    this.#to = single ? undefined : allKeys.to
    this.#prevKv = this.#random.chance(0.5)
  }

  get next(): number {
    return this.#next
  }

  start(): void {
    this.#simulation.after(20 + this.#random.float() * 100, () => {
      this.#turn()
      this.start()
    })
  }

  #turn(): void {
    const process = this.#process
    if (process && (process.store === undefined || process.life !== this.#life)) this.#watcher = undefined
    if (this.#watcher === undefined) this.#open()
    else if (this.#random.chance(0.1)) this.#watcher.requestProgress()
    else if (this.#random.chance(0.01)) {
      this.#watcher.cancel()
      this.#watcher = undefined
    }
  }

  #open(): void {
    const running = this.#processes.filter(({ store }) => store !== undefined)
    const process = running[this.#random.between(0, running.length - 1)]
    if (!process?.store) return
    const now = this.#next === 0
    // Sometimes from the past, once: history that this client has not seen.
    const past = now && this.#random.chance(0.5)
    if (past) this.#next = Math.max(1, this.#journal.model.compactRevision)
    else if (now) this.#next = process.store.status().revision + 1
    this.#cursor = 0
    this.#process = process
    this.#life = process.life
    const { machine } = process
    const boot = machine.bootCount
    let ended = false
    const mine = () => !ended && machine.bootCount === boot && this.#watcher === watcher
    const request = { key: bytesOf(this.#from), ...(this.#to === undefined ? {} : { rangeEnd: bytesOf(this.#to) }) }
    const startRevision = now && !past ? 0 : this.#next
    const watcher: Watcher = process.store.watch(
      { ...request, startRevision, prevKv: this.#prevKv },
      {
        onBatch: (batch) => {
          if (mine()) this.#took(batch)
          else if (machine.bootCount === boot) this.#journal.check(!ended, () => 'a batch behind the end of a watch')
        },
        onEnd: (reason) => {
          if (!mine()) return
          ended = true
          this.#watcher = undefined
          if (reason?.code !== 'ERR_COMPACTED') return
          this.#journal.mark('compactedWatches')
          const { compactRevision } = this.#journal.model
          // With prevKv asked for, the compacted revision itself has lost its previous values.
          const limit = compactRevision + (this.#prevKv ? 1 : 0)
          this.#journal.check(this.#next < limit, () => {
            return `a watch at ${this.#next} ended as compacted, compacted is ${compactRevision}`
          })
          this.#next = Math.max(this.#next, reason.compactRevision ?? compactRevision)
        },
      },
    )
    this.#watcher = watcher
  }

  #took(batch: WatchBatch): void {
    const { model } = this.#journal
    const what = `watch of ${this.#from} at ${this.#next}`
    this.#simulation.trace(`${what}: ${batch.revision} ${batch.events.length}`)
    const possible = batch.revision <= model.revision && batch.revision >= this.#next - 1
    this.#journal.check(
      possible,
      () => `${what}: a batch of revision ${batch.revision}, the store is at ${model.revision}`,
    )
    const expected = this.#between(this.#next, batch.revision)
    const found = batch.events.map(({ type, kv, prevKv }) => ({
      type,
      revision: kv.modRevision,
      key: textOf(kv.key),
      row: type === 'put' ? rowOf(kv) : undefined,
      previous: prevKv && rowOf(prevKv),
    }))
    const wanted = expected.map(({ type, revision, key, row, previous }) => {
      return { type, revision, key, row, previous: this.#prevKv ? previous : undefined }
    })
    this.#journal.check(JSON.stringify(found) === JSON.stringify(wanted), () => {
      return `${what}: ${JSON.stringify(found)}, expected ${JSON.stringify(wanted)}`
    })
    if (found.length === 0) this.#journal.mark('progress')
    this.delivered += found.length
    this.#next = Math.max(this.#next, batch.revision + 1)
  }

  /** Of the watched keys, in order. */
  #between(first: number, last: number): ModelEvent[] {
    const { events } = this.#journal.model
    const found: ModelEvent[] = []
    while (this.#cursor < events.length && (events[this.#cursor]?.revision ?? 0) < first) this.#cursor++
    for (let i = this.#cursor; i < events.length; i++) {
      const event = events[i]
      if (!event || event.revision > last) break
      const { key } = event
      if (this.#to === undefined ? key === this.#from : key >= this.#from && key < this.#to) found.push(event)
    }
    return found
  }

  /** Nothing that happened through the model's revision is still owed. */
  caughtUp(): boolean {
    return this.#next > 0 && this.#between(this.#next, this.#journal.model.revision).length === 0
  }
}
