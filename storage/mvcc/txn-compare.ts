import type { Compare, CompareOperator, Revision, Value } from '../store.ts'
import type { Row } from './key-history.ts'
import type { KeyIndex } from './key-index.ts'
import { keyName, keyRange } from './key-range.ts'

/** What a compare looks at: the state before the transaction. */
export interface CompareView {
  readonly index: KeyIndex
  readonly revision: Revision
  value(row: Row): Value
}

export function compareHolds(view: CompareView, compare: Compare): boolean {
  if (compare.rangeEnd === undefined || compare.rangeEnd.length === 0) {
    return rowHolds(view, compare, view.index.live(keyName(compare.key), view.revision))
  }
  const { rows } = view.index.liveRange(keyRange(compare.key, compare.rangeEnd), view.revision, 0)
  if (rows.length === 0) return rowHolds(view, compare, undefined)
  return rows.every((row) => rowHolds(view, compare, row))
}

function rowHolds(view: CompareView, compare: Compare, row: Row | undefined): boolean {
  switch (compare.target) {
    case 'value':
      // A missing value is not even unequal to another one (etcd: applyCompare).
      return row !== undefined && holds(compare.op, Buffer.compare(view.value(row), compare.is))
    case 'mod':
      return holds(compare.op, (row?.main ?? 0) - compare.is)
    case 'create':
      return holds(compare.op, (row?.createRevision ?? 0) - compare.is)
    case 'version':
      return holds(compare.op, (row?.version ?? 0) - compare.is)
    case 'lease': {
      const lease = row?.lease ?? 0n
      return holds(compare.op, lease < compare.is ? -1 : lease > compare.is ? 1 : 0)
    }
  }
}

function holds(op: CompareOperator, order: number): boolean {
  switch (op) {
    case '=':
      return order === 0
    case '!=':
      return order !== 0
    case '<':
      return order < 0
    case '>':
      return order > 0
  }
}
