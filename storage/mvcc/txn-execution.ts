import type { LeaseId, Op, Revision, TxnRequest } from '../store.ts'
import type { Row } from './key-history.ts'
import type { KeyIndex } from './key-index.ts'
import { keyName, keyRange } from './key-range.ts'
import { readRefusal, type OpOutcome, type Refusal, type TxnOutcome } from './outcome.ts'
import { compareHolds, type CompareView } from './txn-compare.ts'

/** Where a transaction reads and the one place it writes through. */
export interface TxnTarget extends CompareView {
  readonly index: KeyIndex
  readonly compactRevision: Revision
  hasLease(id: LeaseId): boolean
  /** Puts a row at `main`; the previous live row is at hand already. */
  put(name: string, op: Op & { type: 'put' }, previous: Row | undefined, at: { main: Revision; sub: number }): void
  remove(row: Row, at: { main: Revision; sub: number }): void
}

const written: OpOutcome = { rows: [], keysOnly: false, count: 0, more: false, prevRows: [] }

/** The branch a transaction takes, and those of the transactions nested in it: all decided before the first write. */
interface Path {
  readonly succeeded: boolean
  readonly ops: readonly Op[]
  /** One per nested transaction of `ops`, in order. */
  readonly nested: readonly Path[]
}

const noPaths: readonly Path[] = []

function takePath(target: TxnTarget, request: TxnRequest): Path {
  const succeeded = request.compare.every((compare) => compareHolds(target, compare))
  const ops = succeeded ? request.success : request.failure
  let nested: Path[] | undefined
  for (const op of ops) if (op.type === 'txn') (nested ??= []).push(takePath(target, op))
  return { succeeded, ops, nested: nested ?? noPaths }
}

function checkLeases(target: TxnTarget, path: Path): Refusal | undefined {
  for (const op of path.ops) {
    if (op.type !== 'put' || op.lease === undefined || op.lease === 0n || target.hasLease(op.lease)) continue
    return { type: 'refused', code: 'ERR_LEASE_NOT_FOUND', message: `lease ${op.lease} does not exist` }
  }
  return firstRefusal(path.nested, (nested) => checkLeases(target, nested))
}

function checkRanges(target: TxnTarget, path: Path): Refusal | undefined {
  const at = { compactRevision: target.compactRevision, currentRevision: target.revision }
  for (const op of path.ops) {
    const refusal = op.type === 'range' ? readRefusal(op.revision, at) : undefined
    if (refusal !== undefined) return refusal
  }
  return firstRefusal(path.nested, (nested) => checkRanges(target, nested))
}

function firstRefusal(paths: readonly Path[], check: (path: Path) => Refusal | undefined): Refusal | undefined {
  for (const path of paths) {
    const refusal = check(path)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

/**
 * Decides, checks, then writes, in this order and never mixed: after the first write nothing can be refused any more,
 * and nothing here depends on which replica it runs (etcd-io/etcd#18667). Nested compares see the state before the
 * whole transaction, nested reads see its earlier writes, both as in etcd.
 *
 * The request has passed checkTxn.
 * @returns the outcome and how many changes it made, all at target.revision + 1.
 */
export function executeTxn(target: TxnTarget, request: TxnRequest): { outcome: TxnOutcome; changes: number } | Refusal {
  const path = takePath(target, request)
  const refusal = checkLeases(target, path) ?? checkRanges(target, path)
  if (refusal !== undefined) return refusal
  const run: Run = { target, main: target.revision + 1, changes: 0 }
  const responses = runPath(run, path)
  const revision = run.changes > 0 ? run.main : target.revision
  return {
    outcome: { revision, succeeded: path.succeeded, responses: withRevision(responses, revision) },
    changes: run.changes,
  }
}

interface Run {
  readonly target: TxnTarget
  readonly main: Revision
  changes: number
}

function runPath(run: Run, path: Path): OpOutcome[] {
  const responses: OpOutcome[] = []
  let nested = 0
  for (const op of path.ops) {
    if (op.type === 'txn') {
      const taken = path.nested[nested++]
      if (taken === undefined) throw new Error('a nested transaction has no path')
      const txn = { revision: 0, succeeded: taken.succeeded, responses: runPath(run, taken) }
      responses.push({ ...written, txn })
    } else {
      responses.push(runOp(run, op))
    }
  }
  return responses
}

/** Nested results carry the revision of the whole, known only after the last write. */
function withRevision(responses: readonly OpOutcome[], revision: Revision): readonly OpOutcome[] {
  if (responses.every((response) => response.txn === undefined)) return responses
  return responses.map((response) =>
    response.txn === undefined
      ? response
      : { ...response, txn: { ...response.txn, revision, responses: withRevision(response.txn.responses, revision) } },
  )
}

function runOp(run: Run, op: Exclude<Op, { type: 'txn' }>): OpOutcome {
  const { target, main } = run
  switch (op.type) {
    case 'range': {
      const revision = op.revision !== undefined && op.revision > 0 ? op.revision : main
      return selectRows(target.index, op, revision)
    }
    case 'put': {
      const name = keyName(op.key)
      const previous = target.index.live(name, main)
      target.put(name, op, previous, { main, sub: run.changes++ })
      return op.prevKv === true && previous !== undefined ? { ...written, prevRows: [previous] } : written
    }
    case 'delete': {
      const { rows, count } = target.index.liveRange(keyRange(op.key, op.rangeEnd), main, 0)
      for (const row of rows) target.remove(row, { main, sub: run.changes++ })
      return { ...written, count, prevRows: op.prevKv === true ? rows : written.prevRows }
    }
  }
}

/** The rows a range asks for, as of `revision`, which has been checked. */
export function selectRows(index: KeyIndex, op: Omit<Op & { type: 'range' }, 'type'>, revision: Revision): OpOutcome {
  const limit = Math.max(0, op.limit ?? 0)
  const { rows, count } = index.liveRange(keyRange(op.key, op.rangeEnd), revision, limit, op.countOnly === true)
  return {
    rows,
    keysOnly: op.keysOnly === true,
    count,
    more: op.countOnly !== true && count > rows.length,
    prevRows: written.prevRows,
  }
}
