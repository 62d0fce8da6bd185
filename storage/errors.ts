/** Codes are for programs; clients of etcd match its texts, which storage/etcdapi maps from these codes. */
export type StorageErrorCode =
  /** Read or watch below the compact revision; `compactRevision` says where history starts. */
  | 'ERR_COMPACTED'
  /** Read or compaction above the current revision. */
  | 'ERR_FUTURE_REVISION'
  | 'ERR_EMPTY_KEY'
  | 'ERR_DUPLICATE_KEY'
  | 'ERR_TOO_MANY_OPS'
  | 'ERR_TOO_LARGE'
  | 'ERR_LEASE_NOT_FOUND'
  | 'ERR_LEASE_EXISTS'
  | 'ERR_LEASE_TTL_TOO_LARGE'
  /** Refused before it was proposed; a retry is safe. */
  | 'ERR_NO_LEADER'
  | 'ERR_OVERLOADED'
  /** May or may not have been applied. */
  | 'ERR_OUTCOME_UNKNOWN'
  | 'ERR_STOPPED'
  | 'ERR_CORRUPT'
  | 'ERR_FORMAT'
  | 'ERR_ABORTED'
  /** The data directory cannot be used: in use, another replica count, no majority of replica directories left. */
  | 'ERR_DATA_DIR'

export class StorageError extends Error {
  readonly code: StorageErrorCode
  readonly compactRevision: number | undefined
  readonly currentRevision: number | undefined
  constructor(
    code: StorageErrorCode,
    message: string,
    options?: { cause?: unknown; compactRevision?: number; currentRevision?: number },
  ) {
    super(message, { cause: options?.cause })
    this.name = 'StorageError'
    this.code = code
    this.compactRevision = options?.compactRevision
    this.currentRevision = options?.currentRevision
  }
}
