import type { RaftStatus } from '../../raft/index.ts'
import { openEmbeddedStore, type EmbeddedStore, type EmbeddedStoreOptions } from '../../storage/embedded.ts'
import { openMemoryBackend, type Logger, silentLogger } from '../../storage/index.ts'
import { SimNode } from '../simulation/env/sim-node.ts'
import { Simulation } from '../simulation/env/simulation.ts'

/** The store of `trireme up` on one simulated machine. */
export class SimStore {
  readonly simulation: Simulation
  readonly machine: SimNode
  readonly #options: Partial<EmbeddedStoreOptions>

  constructor(seed: number, options: Partial<EmbeddedStoreOptions> = {}, log: Logger = silentLogger) {
    this.simulation = new Simulation(seed)
    this.machine = new SimNode(this.simulation, 'n1', { log })
    this.#options = options
  }

  /** A process of its own, whatever was before. */
  open(): Promise<EmbeddedStore> {
    const env = this.machine.boot()
    const own = this.machine.bootCount
    return this.simulation.finish(
      openEmbeddedStore({
        directory: 'data',
        env,
        compaction: { intervalMs: 0 },
        openBackend: openMemoryBackend,
        processes: { ownPid: own, startOf: (pid) => Promise.resolve(pid === own ? 'now' : undefined) },
        ...this.#options,
      }),
    )
  }

  /** A call's end, within `patienceMs` of simulated time. */
  call<T>(run: (options: { readonly signal: AbortSignal }) => Promise<T>, patienceMs = 5_000): Promise<T> {
    const abort = new AbortController()
    const timer = this.simulation.after(patienceMs, () => abort.abort())
    const result = run({ signal: abort.signal }).finally(() => timer.cancel())
    return this.simulation.finish(result)
  }

  put(store: EmbeddedStore, key: string, value: string, lease = 0n): Promise<number> {
    const op = { type: 'put' as const, key: Buffer.from(key), value: Buffer.from(value), lease }
    return this.call(
      async (options) => (await store.txn({ compare: [], success: [op], failure: [] }, options)).revision,
    )
  }

  async keys(store: EmbeddedStore): Promise<string[]> {
    const all = { key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0) }
    const { kvs } = await this.call((options) => store.range(all, options))
    return kvs.map((kv) => Buffer.from(kv.key).toString())
  }

  run(milliseconds: number): Promise<void> {
    return this.simulation.run(this.simulation.now + milliseconds)
  }
}

export function leaderOf(store: EmbeddedStore): {
  readonly id: bigint
  readonly name: string
  readonly raft: RaftStatus
} {
  for (const { id, name, raft } of store.replicas()) if (raft?.role === 'leader') return { id, name, raft }
  throw new Error('nobody leads')
}
