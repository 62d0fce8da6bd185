import type { LeaseId } from '../store.ts'

interface LeaseEntry {
  readonly ttlSeconds: number
  /** Names of the attached keys. */
  readonly keys: Set<string>
}

/**
 * Leases as the replicated state knows them: which exist, how long they were granted for, which keys hang on them.
 * When one ends is not state: LeaseClock on the leader knows, and proposes its revocation.
 */
export class LeaseBook {
  readonly #leases = new Map<LeaseId, LeaseEntry>()

  has(id: LeaseId): boolean {
    return this.#leases.has(id)
  }

  ttlSeconds(id: LeaseId): number | undefined {
    return this.#leases.get(id)?.ttlSeconds
  }

  add(id: LeaseId, ttlSeconds: number): void {
    this.#leases.set(id, { ttlSeconds, keys: new Set() })
  }

  remove(id: LeaseId): void {
    this.#leases.delete(id)
  }

  /** In byte order: the order in which a revocation deletes them. */
  keys(id: LeaseId): string[] {
    return [...(this.#leases.get(id)?.keys ?? [])].sort()
  }

  /** False when there is no such lease. */
  attach(id: LeaseId, name: string): boolean {
    const lease = this.#leases.get(id)
    if (lease === undefined) return false
    lease.keys.add(name)
    return true
  }

  detach(id: LeaseId, name: string): void {
    this.#leases.get(id)?.keys.delete(name)
  }

  /** In order of id, so that equal states make equal records. */
  list(): { readonly id: LeaseId; readonly ttlSeconds: number }[] {
    return [...this.#leases]
      .map(([id, { ttlSeconds }]) => ({ id, ttlSeconds }))
      .sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
  }
}
