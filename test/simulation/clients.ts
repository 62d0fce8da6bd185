import {
  StorageError,
  type Op,
  type OpResult,
  type Store,
  type TxnRequest,
  type TxnResult,
} from '../../storage/index.ts'
import type { SeededRandom, Simulation } from './env/index.ts'
import type { Journal } from './journal.ts'
import { bytesOf, operationCompare, rowOf } from './model.ts'
import type { Parameters } from './parameters.ts'

type Answer<T> = { readonly value: T } | { readonly error: StorageError } | undefined

const abortAfterMs = 3_000
/** A process without power answers nothing: the client gives up by its own clock. */
const giveUpAfterMs = 4_000

/** Codes that promise that the write was never proposed. */
const neverProposed = new Set(['ERR_NO_LEADER', 'ERR_OVERLOADED', 'ERR_STOPPED', 'ERR_ABORTED'])

export const keyOf = (number: number): string => `k${String(number).padStart(2, '0')}`
export const allKeys = { from: 'k', to: 'l' }

/** Writers, readers and a compactor, each at a random running process, one call at a time. */
export class Clients {
  readonly #simulation: Simulation
  readonly #random: SeededRandom
  readonly #journal: Journal
  readonly #parameters: Parameters
  readonly #stores: () => readonly Store[]
  readonly #refused: { readonly operation: number; readonly code: string }[] = []
  readonly #leases: bigint[] = []
  #operation = 0
  #running = true
  acknowledged = 0
  unknown = 0
  reads = 0

  constructor(options: {
    readonly simulation: Simulation
    readonly journal: Journal
    readonly parameters: Parameters
    readonly stores: () => readonly Store[]
  }) {
    this.#simulation = options.simulation
    this.#random = options.simulation.random.fork()
    this.#journal = options.journal
    this.#parameters = options.parameters
    this.#stores = options.stores
  }

  start(): void {
    const { writers, readers } = this.#parameters
    for (let i = 0; i < writers; i++) void this.#loop(60, (store) => this.#write(store))
    for (let i = 0; i < readers; i++) void this.#loop(80, (store) => this.#read(store))
    void this.#loop(700, (store) => this.#compact(store))
    void this.#loop(900, (store) => this.#lease(store))
  }

  stop(): void {
    this.#running = false
  }

  /** At the end: what was refused before it was proposed must not have happened. */
  checkRefused(): void {
    for (const { operation, code } of this.#refused) {
      const applied = this.#journal.model.operations.has(operation)
      this.#journal.check(!applied, () => `operation ${operation} was answered ${code} and applied`)
    }
  }

  async #loop(pauseMs: number, turn: (store: Store) => Promise<void>): Promise<void> {
    while (this.#running) {
      await this.#sleep(this.#random.float() * pauseMs)
      const stores = this.#stores()
      const store = stores[this.#random.between(0, stores.length - 1)]
      if (store) await turn(store)
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#simulation.after(ms, resolve))
  }

  /** Undefined when nothing ever came back. */
  async #call<T>(run: (options: { readonly signal: AbortSignal }) => Promise<T>): Promise<Answer<T>> {
    const abort = new AbortController()
    const timer = this.#simulation.after(abortAfterMs, () => abort.abort())
    let answer: Answer<T>
    await Promise.race([
      this.#sleep(giveUpAfterMs),
      run({ signal: abort.signal }).then(
        (value) => void (answer = { value }),
        (error: unknown) => {
          if (!(error instanceof StorageError)) this.#journal.fail(`a call rejected with ${String(error)}`)
          else if (error.code === 'ERR_CORRUPT') this.#journal.fail(`a call rejected with ${error.stack}`)
          else answer = { error }
        },
      ),
    ])
    timer.cancel()
    return answer
  }

  async #write(store: Store): Promise<void> {
    const operation = ++this.#operation
    const request = this.#request(operation)
    const answer = await this.#call((options) => store.txn(request, options))
    const code = answer && 'error' in answer ? answer.error.code : undefined
    this.#simulation.trace(`write ${operation} ${code ?? (answer ? 'done' : 'lost')}`)
    if (code !== undefined && neverProposed.has(code)) {
      this.#refused.push({ operation, code })
      return
    }
    if (!answer || code === 'ERR_OUTCOME_UNKNOWN') {
      this.unknown++
      return
    }
    this.acknowledged++
    const text = 'value' in answer ? resultText(answer.value) : code
    const expected = this.#journal.model.operations.get(operation)?.text
    this.#journal.check(text === expected, () => `operation ${operation} answered ${text}, the log says ${expected}`)
  }

  #request(operation: number): TxnRequest {
    const random = this.#random
    const { model } = this.#journal
    const compare = [operationCompare(operation)]
    const key = keyOf(random.between(1, this.#parameters.keys))
    const put = (name: string): Op => ({
      type: 'put',
      key: bytesOf(name),
      value: bytesOf(`${operation}`.padEnd(random.chance(0.1) ? 1500 : 8, '.')),
      prevKv: random.chance(0.3),
      lease: random.chance(0.15) ? this.#leases.at(-1) : undefined,
    })
    const kind = random.float()
    if (kind < 0.45) {
      // A compare-and-swap on what this client may have read: the newest state known, or an older one.
      const mod = model.row(key, random.chance(0.8) ? model.revision : model.revision - 3)?.mod ?? 0
      compare.push({ key: bytesOf(key), target: 'mod', op: '=', is: mod })
      return { compare, success: [put(key)], failure: [{ type: 'range', key: bytesOf(key) }] }
    }
    if (kind < 0.6) return { compare, success: [put(key)], failure: [] }
    if (kind < 0.8) {
      const success: Op[] = [{ type: 'delete', key: bytesOf(key), prevKv: true }]
      return { compare, success, failure: [] }
    }
    if (kind < 0.85) {
      const success: Op[] = [{ type: 'delete', key: bytesOf(key), rangeEnd: bytesOf(`${key}~~`) }, put(key)]
      return { compare, success: success.slice(0, 1), failure: [] }
    }
    const first = random.between(1, this.#parameters.keys)
    const success: Op[] = [put(keyOf(first)), put(keyOf(first + 1)), { type: 'delete', key: bytesOf(keyOf(first + 2)) }]
    return { compare, success, failure: [] }
  }

  /** The state of one moment between call and return, and none older than what anybody had applied at the call. */
  async #read(store: Store): Promise<void> {
    const { model } = this.#journal
    const random = this.#random
    const floor = { revision: model.revision, compactRevision: model.compactRevision }
    const key = random.chance(0.5) ? keyOf(random.between(1, this.#parameters.keys)) : undefined
    const from = key ?? allKeys.from
    const to = key === undefined ? allKeys.to : undefined
    const past = random.chance(0.3) ? Math.max(1, model.revision - random.between(0, 12)) : undefined
    const serializable = random.chance(0.2)
    const request = {
      key: bytesOf(from),
      ...(to === undefined ? {} : { rangeEnd: bytesOf(to) }),
      ...(past === undefined ? {} : { revision: past }),
      serializable,
    }
    const answer = await this.#call((options) => store.range(request, options))
    this.#simulation.trace(`read ${answer ? ('value' in answer ? answer.value.revision : answer.error.code) : 'lost'}`)
    if (!answer) return
    const what = `read of ${from} at ${past ?? 'now'}${serializable ? ', serializable' : ''}`
    if ('error' in answer) {
      const { code } = answer.error
      const { compactRevision } = model
      if (code === 'ERR_COMPACTED') {
        const right = past !== undefined && past < compactRevision
        this.#journal.check(right, () => `${what}: ERR_COMPACTED, compacted is ${compactRevision}`)
      } else if (code === 'ERR_FUTURE_REVISION') {
        this.#journal.check(serializable, () => `${what}: ERR_FUTURE_REVISION at ${floor.revision}`)
      } else {
        const known = neverProposed.has(code)
        this.#journal.check(known, () => `${what}: ${answer.error.stack}`)
      }
      return
    }
    this.reads++
    const { kvs, revision, count } = answer.value
    const fresh = serializable || revision >= floor.revision
    this.#journal.check(fresh && revision <= model.revision, () => {
      return `${what}: a stale answer of revision ${revision}, ${floor.revision} had been applied at the call`
    })
    const allowed = past === undefined || serializable || past >= floor.compactRevision
    this.#journal.check(allowed, () => `${what}: answered below compact revision ${floor.compactRevision}`)
    const expected = JSON.stringify(model.rows(from, to, past ?? revision))
    const found = JSON.stringify(kvs.map(rowOf))
    this.#journal.check(found === expected && count === kvs.length, () => `${what}: ${found}, expected ${expected}`)
  }

  async #compact(store: Store): Promise<void> {
    const { model } = this.#journal
    const revision = model.revision - this.#random.between(0, 15)
    if (revision <= model.compactRevision) return
    const physical = this.#random.chance(0.3)
    const answer = await this.#call((options) => store.compact({ revision, physical }, options))
    this.#simulation.trace(`compact ${revision}`)
    if (answer && 'value' in answer) {
      const done = model.compactRevision >= revision
      this.#journal.check(
        done,
        () => `compaction to ${revision} was acknowledged, the log says ${model.compactRevision}`,
      )
    }
  }

  async #lease(store: Store): Promise<void> {
    const answer = await this.#call((options) => store.leaseGrant({ ttlSeconds: 2 }, options))
    if (answer && 'value' in answer) this.#leases.push(answer.value.id)
    const [oldest] = this.#leases
    if (oldest === undefined || !this.#random.chance(0.3)) return
    await this.#call((options) => store.leaseRevoke(oldest, options))
    this.#leases.shift()
  }
}

/** As the model writes a result. */
function resultText(result: TxnResult): string {
  const text = (response: OpResult) => [response.kvs.map(rowOf), response.count, response.prevKvs.map(rowOf)]
  return JSON.stringify([result.revision, result.succeeded, result.responses.map(text)])
}
