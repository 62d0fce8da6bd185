import type { Clock } from '../../raft/index.ts'
import { StorageError } from '../errors.ts'
import { leaseExpiryBatchMax, leaseRevokeRetryMs, leaseStallMs } from '../limits.ts'
import type { Key, LeaseId } from '../store.ts'
import type { LeaseListener } from './engine.ts'

/** The replicated side of leases, as far as the clock looks at it: MvccEngine. */
export interface LeaseView {
  leases(): readonly { readonly id: LeaseId; readonly ttlSeconds: number }[]
  hasLease(id: LeaseId): boolean
  grantedTtlSeconds(id: LeaseId): number | undefined
  leaseKeys(id: LeaseId): readonly Key[]
  onLeaseChange(listener: LeaseListener): () => void
}

interface Deadline {
  readonly ttlMs: number
  expiresMs: number
  /** Handed out by expired(); a lease on its way out is not renewed any more. undefined = not yet. */
  handedOutMs: number | undefined
}

/**
 * When leases end. Lives on the leader only, outside the replicated state: expiry becomes state when a revocation that
 * the leader proposed is applied.
 *
 * A process that stood still may have lost leadership without knowing, while the new leader kept leases alive
 * (etcd-io/etcd#15247). So expiry starts frozen, and freezes again when calls of expired() are further apart than
 * leaseStallMs; reconfirmed() thaws it, to be called after a quorum round trip begun after `frozen` was seen. The time
 * it stood still counts for nobody's lease.
 */
export class LeaseClock {
  readonly #clock: Clock
  readonly #view: LeaseView
  readonly #deadlines = new Map<LeaseId, Deadline>()
  readonly #unsubscribe: () => void
  #leading = false
  #frozen = true
  #lookedMs = 0

  constructor(options: { readonly clock: Clock; readonly leases: LeaseView }) {
    this.#clock = options.clock
    this.#view = options.leases
    this.#unsubscribe = options.leases.onLeaseChange({
      granted: (id, ttlSeconds) => {
        if (this.#leading) this.#start(id, ttlSeconds)
      },
      revoked: (id) => void this.#deadlines.delete(id),
    })
  }

  get leading(): boolean {
    return this.#leading
  }

  /** True while expired() hands out nothing until reconfirmed(). */
  get frozen(): boolean {
    return this.#frozen
  }

  /** This replica leads: every lease gets its full time again, since nobody knows what the leader before had renewed. */
  promote(): void {
    this.#leading = true
    this.#frozen = true
    this.#lookedMs = this.#clock.monotonicMs()
    this.#deadlines.clear()
    for (const { id, ttlSeconds } of this.#view.leases()) this.#start(id, ttlSeconds)
  }

  demote(): void {
    this.#leading = false
    this.#deadlines.clear()
  }

  /** Leadership was confirmed by a quorum in a round trip begun after the clock froze. */
  reconfirmed(): void {
    if (!this.#leading) return
    this.#noticeStall()
    this.#frozen = false
  }

  /**
   * Leases whose revocation is to be proposed now, at most leaseExpiryBatchMax, the longest expired first. Call it every
   * leaseExpiryPeriodMs. One that is still there after leaseRevokeRetryMs is handed out again.
   */
  expired(): LeaseId[] {
    if (!this.#leading) return []
    this.#noticeStall()
    if (this.#frozen) return []
    const now = this.#clock.monotonicMs()
    const due = [...this.#deadlines]
      .filter(([, lease]) => lease.expiresMs <= now)
      .filter(([, lease]) => lease.handedOutMs === undefined || lease.handedOutMs + leaseRevokeRetryMs <= now)
      .sort(([, a], [, b]) => a.expiresMs - b.expiresMs)
      .slice(0, leaseExpiryBatchMax)
    for (const [, lease] of due) lease.handedOutMs = now
    return due.map(([id]) => id)
  }

  /**
   * Renews, waits for `confirm` (a quorum round trip that shows this replica led when it renewed), then looks again:
   * the lease may have been revoked meanwhile, and success must not be answered for it (etcd-io/etcd PR#20615).
   *
   * @returns the time to live in seconds.
   * @throws StorageError ERR_LEASE_NOT_FOUND when it is gone or has expired; ERR_NO_LEADER when this is not the leader.
   */
  async keepAlive(id: LeaseId, confirm: () => Promise<void>): Promise<number> {
    if (!this.#leading) throw new StorageError('ERR_NO_LEADER', 'leases are renewed by the leader')
    const lease = this.#deadlines.get(id)
    const now = this.#clock.monotonicMs()
    if (lease === undefined || lease.handedOutMs !== undefined || (!this.#stalled() && lease.expiresMs <= now)) {
      throw notFound(id)
    }
    lease.expiresMs = now + lease.ttlMs
    await confirm()
    if (!this.#leading) throw new StorageError('ERR_NO_LEADER', 'leadership was lost while a lease was renewed')
    if (!this.#view.hasLease(id) || this.#deadlines.get(id)?.handedOutMs !== undefined) throw notFound(id)
    return lease.ttlMs / 1000
  }

  /** What LeaseTimeToLive answers; 0 seconds when this replica does not lead. @throws StorageError ERR_LEASE_NOT_FOUND */
  timeToLive(
    id: LeaseId,
    withKeys: boolean,
  ): { readonly ttlSeconds: number; readonly grantedTtlSeconds: number; readonly keys: readonly Key[] } {
    const grantedTtlSeconds = this.#view.grantedTtlSeconds(id)
    if (grantedTtlSeconds === undefined) throw new StorageError('ERR_LEASE_NOT_FOUND', `lease ${id} does not exist`)
    const ttlSeconds = this.remainingSeconds(id) ?? 0
    return { ttlSeconds, grantedTtlSeconds, keys: withKeys ? this.#view.leaseKeys(id) : [] }
  }

  /** Whole seconds left, rounded down, never below 0; undefined when there is no such lease or this is not the leader. */
  remainingSeconds(id: LeaseId): number | undefined {
    const lease = this.#deadlines.get(id)
    if (lease === undefined) return undefined
    return Math.max(0, Math.floor((lease.expiresMs - this.#clock.monotonicMs()) / 1000))
  }

  close(): void {
    this.demote()
    this.#unsubscribe()
  }

  #start(id: LeaseId, ttlSeconds: number): void {
    const ttlMs = ttlSeconds * 1000
    this.#deadlines.set(id, { ttlMs, expiresMs: this.#clock.monotonicMs() + ttlMs, handedOutMs: undefined })
  }

  #stalled(): boolean {
    return this.#frozen || this.#clock.monotonicMs() - this.#lookedMs > leaseStallMs
  }

  /** Freezes after a stall, and gives the time back to every lease that had not expired before it. */
  #noticeStall(): void {
    const now = this.#clock.monotonicMs()
    const stoodStillMs = now - this.#lookedMs
    if (stoodStillMs > leaseStallMs) {
      this.#frozen = true
      for (const lease of this.#deadlines.values()) {
        if (lease.expiresMs > this.#lookedMs)
          lease.expiresMs = Math.min(lease.expiresMs + stoodStillMs, now + lease.ttlMs)
      }
    }
    this.#lookedMs = now
  }
}

function notFound(id: LeaseId): StorageError {
  return new StorageError('ERR_LEASE_NOT_FOUND', `lease ${id} does not exist`)
}
