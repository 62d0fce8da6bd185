import { DiskError, type Logger, type MemberId, type Scheduler, type Timer } from '../raft/index.ts'
import { replicaRevivalMs } from './limits.ts'

/** Whatever a write was refused for, and what somebody may free again. EFBIG: a limit of the process or file system. */
const spaceCodes = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/**
 * Starts replicas again that ended for want of space: it may be back. Whatever else ended one (a failed sync, damage)
 * is nothing that time heals: such a replica stays ended until somebody starts it.
 */
export class ReplicaRevival {
  readonly #scheduler: Scheduler
  readonly #log: Logger
  readonly #start: (id: MemberId) => Promise<void>
  readonly #timers = new Map<MemberId, Timer>()
  #stopped = false

  constructor(options: {
    readonly scheduler: Scheduler
    readonly log: Logger
    readonly start: (id: MemberId) => Promise<void>
  }) {
    this.#scheduler = options.scheduler
    this.#log = options.log
    this.#start = options.start
  }

  ended(replica: { readonly id: MemberId; readonly name: string }, error: unknown): void {
    if (this.#stopped || !wantsSpace(error)) return
    this.#timers.get(replica.id)?.cancel()
    const again = (): void => void this.#again(replica)
    this.#timers.set(replica.id, this.#scheduler.after(replicaRevivalMs, again))
  }

  stop(): void {
    this.#stopped = true
    for (const timer of this.#timers.values()) timer.cancel()
    this.#timers.clear()
  }

  async #again(replica: { readonly id: MemberId; readonly name: string }): Promise<void> {
    this.#timers.delete(replica.id)
    try {
      await this.#start(replica.id)
      this.#log.warn({ replica: replica.name }, 'started a replica again that had ended for want of space')
    } catch (error) {
      if (this.#stopped) return
      this.#log.error({ replica: replica.name, error }, 'a replica that ended for want of space cannot be started')
      this.ended(replica, error)
    }
  }
}

/** True when the cause is a want of disk space. */
export function wantsSpace(error: unknown): boolean {
  if (error instanceof DiskError) return spaceCodes.has(error.code)
  return error instanceof Error && error.cause !== undefined && wantsSpace(error.cause)
}
