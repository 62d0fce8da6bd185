import { StorageError, type StorageErrorCode } from '../errors.ts'
import type { LeaseId, Revision } from '../store.ts'
import type { Row } from './key-history.ts'

/** What apply() found, the same on every replica. Rows instead of values: bytes are fetched only where a client waits. */
export type ApplyOutcome =
  | { readonly type: 'txn'; readonly txn: TxnOutcome }
  | { readonly type: 'compact'; readonly revision: Revision; readonly compactRevision: Revision }
  | { readonly type: 'leaseGrant'; readonly revision: Revision; readonly id: LeaseId; readonly ttlSeconds: number }
  | { readonly type: 'leaseRevoke'; readonly revision: Revision; readonly keyCount: number }
  | Refusal

/** Nothing was changed. */
export interface Refusal {
  readonly type: 'refused'
  readonly code: StorageErrorCode
  readonly message: string
  readonly compactRevision?: Revision
  readonly currentRevision?: Revision
}

export interface TxnOutcome {
  readonly revision: Revision
  readonly succeeded: boolean
  readonly responses: readonly OpOutcome[]
}

export interface OpOutcome {
  readonly rows: readonly Row[]
  readonly keysOnly: boolean
  readonly count: number
  readonly more: boolean
  readonly prevRows: readonly Row[]
  readonly txn?: TxnOutcome
}

/** The outcome of a proposal of that type. @throws StorageError ERR_CORRUPT when it is another's. */
export function outcomeOf<T extends ApplyOutcome['type']>(
  type: T,
  outcome: ApplyOutcome,
): Extract<ApplyOutcome, { type: T }> {
  if (isOfType(type, outcome)) return outcome
  throw new StorageError('ERR_CORRUPT', `an outcome of type ${outcome.type} for a proposal of type ${type}`)
}

function isOfType<T extends ApplyOutcome['type']>(
  type: T,
  outcome: ApplyOutcome,
): outcome is Extract<ApplyOutcome, { type: T }> {
  return outcome.type === type
}

export function refusalError(refusal: Refusal): StorageError {
  return new StorageError(refusal.code, refusal.message, {
    ...(refusal.compactRevision === undefined ? {} : { compactRevision: refusal.compactRevision }),
    ...(refusal.currentRevision === undefined ? {} : { currentRevision: refusal.currentRevision }),
  })
}

/** etcd's rule for reads: the compacted revision itself stays readable, 0 means latest. */
export function readRefusal(
  revision: Revision | undefined,
  at: { readonly compactRevision: Revision; readonly currentRevision: Revision },
): Refusal | undefined {
  if (revision === undefined || revision <= 0) return undefined
  if (revision > at.currentRevision) {
    return {
      type: 'refused',
      code: 'ERR_FUTURE_REVISION',
      message: `revision ${revision} is above the current revision ${at.currentRevision}`,
      ...at,
    }
  }
  if (revision >= at.compactRevision) return undefined
  return {
    type: 'refused',
    code: 'ERR_COMPACTED',
    message: `revision ${revision} is compacted, history starts at ${at.compactRevision}`,
    ...at,
  }
}
