import type { Env, LeaseId, Store } from '../../storage/index.ts'
import { eventLeaseEventsMax, eventLeaseReuseMs, eventTtlSeconds } from './limits.ts'

/** Events are gone after an hour. One lease serves many of them, so that a burst does not make a burst of leases. */
export interface EventLeases {
  /** A lease that lives at least eventTtlSeconds from now. */
  current(signal: AbortSignal): Promise<LeaseId>
}

export function createEventLeases(services: { readonly store: Store; readonly env: Env }): EventLeases {
  const { store, env } = services
  let shared: { readonly id: LeaseId; readonly grantedAtMs: number; events: number } | undefined
  return {
    async current(signal) {
      const nowMs = env.clock.monotonicMs()
      if (
        shared !== undefined &&
        nowMs - shared.grantedAtMs < eventLeaseReuseMs &&
        shared.events < eventLeaseEventsMax
      ) {
        shared.events += 1
        return shared.id
      }
      const ttlSeconds = eventTtlSeconds + Math.ceil(eventLeaseReuseMs / 1000)
      const { id } = await store.leaseGrant({ ttlSeconds }, { signal })
      // Two concurrent first events may each make a lease; the later one wins and both are good.
      shared = { id, grantedAtMs: nowMs, events: 1 }
      return id
    },
  }
}
