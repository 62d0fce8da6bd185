import { RaftError, type RaftErrorCode } from '../raft/index.ts'
import { StorageError, type StorageErrorCode } from './errors.ts'

const codes: Record<RaftErrorCode, StorageErrorCode> = {
  ERR_NO_LEADER: 'ERR_NO_LEADER',
  ERR_OVERLOADED: 'ERR_OVERLOADED',
  ERR_OUTCOME_UNKNOWN: 'ERR_OUTCOME_UNKNOWN',
  ERR_STOPPED: 'ERR_STOPPED',
  ERR_CORRUPT: 'ERR_CORRUPT',
  ERR_FORMAT: 'ERR_FORMAT',
  ERR_ABORTED: 'ERR_ABORTED',
}

/** A RaftError in the words of the store; anything else is handed back as it is. */
export function storageError(error: unknown): unknown {
  return error instanceof RaftError ? new StorageError(codes[error.code], error.message, { cause: error }) : error
}
