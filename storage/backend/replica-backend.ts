import type { Env } from '../../raft/index.ts'
import type { Backend } from '../backend.ts'

/** What a replica's owner needs beyond what the MVCC engine does. */
export interface ReplicaBackend extends Backend {
  /** Resolves once everything committed so far has been written (not durably): how a bulk loader bounds memory. */
  flush(): Promise<void>
  /** Bytes committed and not yet written. */
  readonly pendingBytes: number
  /** Told once when it breaks, in a turn of its own: a replica that nobody writes to must not go on as if it were whole. */
  onBroken(listener: (error: Error) => void): void
}

/** Opens the rows of one state directory, creating what is missing inside it. The directory itself exists. */
export type OpenBackend = (options: { readonly directory: string; readonly env: Env }) => Promise<ReplicaBackend>
