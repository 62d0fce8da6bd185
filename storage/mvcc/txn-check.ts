import type { StorageErrorCode } from '../errors.ts'
import { txnOpsMax } from '../limits.ts'
import type { Op, TxnRequest } from '../store.ts'
import { keyName, keyRange, rangeHolds, type KeyRange } from './key-range.ts'

export interface TxnFault {
  readonly code: StorageErrorCode
  readonly message: string
}

/**
 * What can be said of a transaction without looking at any state. A store asks before it proposes, apply() asks again,
 * so that no replica depends on what another one checked.
 *
 * Stricter than etcd in one point: a put and a delete of one key in sibling nested transactions are refused in either
 * order (etcd refuses one order only). It keeps the rule everything else builds on: a key changes at most once per
 * revision.
 */
export function checkTxn(request: TxnRequest): TxnFault | undefined {
  return checkShape(request, txnOpsMax) ?? checkBranch(request.success) ?? checkBranch(request.failure)
}

/** True when neither branch, at any depth, can change anything: such a transaction is a read. */
export function isReadOnlyTxn(request: TxnRequest): boolean {
  return isReadOnly(request.success) && isReadOnly(request.failure)
}

function isReadOnly(ops: readonly Op[]): boolean {
  return ops.every((op) => op.type === 'range' || (op.type === 'txn' && isReadOnlyTxn(op)))
}

function checkShape(request: TxnRequest, opsMax: number): TxnFault | undefined {
  const ops = Math.max(request.compare.length, request.success.length, request.failure.length)
  if (ops > opsMax)
    return { code: 'ERR_TOO_MANY_OPS', message: `${ops} operations in a transaction, allowed: ${opsMax}` }
  for (const compare of request.compare) {
    if (compare.key.length === 0) return { code: 'ERR_EMPTY_KEY', message: 'a compare has no key' }
  }
  for (const branch of [request.success, request.failure]) {
    for (const op of branch) {
      const fault = op.type === 'txn' ? checkShape(op, opsMax - ops) : checkKey(op)
      if (fault !== undefined) return fault
    }
  }
  return undefined
}

function checkKey(op: Exclude<Op, { type: 'txn' }>): TxnFault | undefined {
  return op.key.length === 0 ? { code: 'ERR_EMPTY_KEY', message: `a ${op.type} has no key` } : undefined
}

/** Keys a branch writes, whichever way its nested transactions decide. */
interface BranchWrites {
  readonly puts: Set<string>
  readonly deletes: KeyRange[]
}

function checkBranch(ops: readonly Op[]): TxnFault | undefined {
  if (ops.length < 2 && ops[0]?.type !== 'txn') return undefined
  const writes = branchWrites(ops)
  return 'code' in writes ? writes : undefined
}

function branchWrites(ops: readonly Op[]): BranchWrites | TxnFault {
  const writes: BranchWrites = { puts: new Set(), deletes: [] }
  for (const op of ops) {
    const part = opWrites(op)
    if ('code' in part) return part
    for (const name of part.puts) {
      if (writes.puts.has(name) || writes.deletes.some((range) => rangeHolds(range, name))) return duplicate(name)
    }
    for (const range of part.deletes) {
      for (const name of writes.puts) if (rangeHolds(range, name)) return duplicate(name)
    }
    for (const name of part.puts) writes.puts.add(name)
    writes.deletes.push(...part.deletes)
  }
  return writes
}

function opWrites(op: Op): BranchWrites | TxnFault {
  switch (op.type) {
    case 'range':
      return { puts: new Set(), deletes: [] }
    case 'put':
      return { puts: new Set([keyName(op.key)]), deletes: [] }
    case 'delete':
      return { puts: new Set(), deletes: [keyRange(op.key, op.rangeEnd)] }
    case 'txn': {
      // The two branches exclude each other: each is checked alone, and both count against the level above.
      const success = branchWrites(op.success)
      if ('code' in success) return success
      const failure = branchWrites(op.failure)
      if ('code' in failure) return failure
      return {
        puts: new Set([...success.puts, ...failure.puts]),
        deletes: [...success.deletes, ...failure.deletes],
      }
    }
  }
}

function duplicate(name: string): TxnFault {
  return { code: 'ERR_DUPLICATE_KEY', message: `key ${JSON.stringify(name)} is written twice in one transaction` }
}
