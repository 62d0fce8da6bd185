import test, { type TestContext } from 'node:test'
import type { Store } from '../../../storage/store.ts'
import { kvCases } from './kv-cases.ts'
import { leaseCases } from './lease-cases.ts'
import { StoreHarness } from './store-harness.ts'
import { watchCases } from './watch-cases.ts'

/** Where stores may differ from each other. */
export interface StoreCapabilities {
  /** Compaction keeps the tombstone at the compacted revision (etcd from 3.4.34 and 3.5.16). */
  readonly tombstoneAtCompactRevision: boolean
  /** A watch that asks for previous values and cannot get them ends as compacted; else they are silently missing. */
  readonly previousValueOrCompacted: boolean
  /** A watch that starts in the future gets no progress before its start (etcd-io/etcd#20221). */
  readonly noProgressBeforeStart: boolean
  /** Progress never overtakes events (etcd-io/etcd#15220, fixed in 3.4.25). */
  readonly progressBehindEvents: boolean
  /** status() tells the compact revision and the number of keys. */
  readonly fullStatus: boolean
}

export const allCapabilities: StoreCapabilities = {
  tombstoneAtCompactRevision: true,
  previousValueOrCompacted: true,
  noProgressBeforeStart: true,
  progressBehindEvents: true,
  fullStatus: true,
}

export interface StoreCase {
  readonly name: string
  /** Left out where the store lacks it. */
  readonly needs?: keyof StoreCapabilities
  run(harness: StoreHarness, capabilities: StoreCapabilities): Promise<void>
}

export interface OpenStore {
  readonly store: Store
  close(): Promise<void>
}

/** Registers the whole suite as one test: cases share a store, each has a part of the key space. */
export function runStoreContract(
  name: string,
  open: () => Promise<OpenStore>,
  capabilities: StoreCapabilities = allCapabilities,
): void {
  test(`store contract: ${name}`, (context) => storeContract(context, open, capabilities))
}

export async function storeContract(
  context: TestContext,
  open: () => Promise<OpenStore>,
  capabilities: StoreCapabilities,
  onSkipped: (name: string, why: string) => void = () => undefined,
): Promise<void> {
  const opened = await open()
  // A store's timers never keep the process alive; a case that waits for one needs it to be.
  const alive = setInterval(() => undefined, 60_000)
  try {
    const cases = [...kvCases, ...watchCases, ...leaseCases]
    for (const [position, one] of cases.entries()) {
      const { name, needs } = one
      const skip = needs !== undefined && !capabilities[needs] ? `this store does not have ${needs}` : false
      if (skip !== false) onSkipped(name, skip)
      await context.test(name, { skip }, () =>
        one.run(new StoreHarness(opened.store, `/contract/${position}/`), capabilities),
      )
    }
  } finally {
    clearInterval(alive)
    await opened.close()
  }
}
