import { createHash, type Hash } from 'node:crypto'
import type { Scheduler } from '../../raft/index.ts'
import { hashRowsPerSlice } from '../limits.ts'
import type { Revision, Value } from '../store.ts'
import type { Row } from './key-history.ts'
import type { KeyIndex } from './key-index.ts'

/** Two replicas with equal revision and compactRevision must have equal hashes. */
export interface StateHash {
  readonly revision: Revision
  readonly compactRevision: Revision
  /** Hex SHA-256. */
  readonly hash: string
}

export interface HashSource {
  readonly index: KeyIndex
  value(row: Row): Value
}

/**
 * Of what a reader at or above compactRevision can see, and nothing else: of each key the latest row at or below it
 * (a tombstone there only if it lies exactly at it) and all rows above, up to `revision`. Dead rows that physical
 * compaction has not reached yet do not count.
 *
 * The caller pins compactRevision until this resolves; entries applied meanwhile do not matter.
 */
export async function hashState(
  source: HashSource,
  at: { readonly revision: Revision; readonly compactRevision: Revision },
  scheduler: Scheduler,
): Promise<StateHash> {
  const hash = createHash('sha256')
  let after = ''
  for (;;) {
    const histories = source.index.historiesAfter(after, hashRowsPerSlice)
    if (histories.length === 0) break
    for (const history of histories) {
      for (const row of history.visible(at.compactRevision, at.revision)) hashRow(hash, row, source.value(row))
      after = history.name
    }
    await new Promise<void>((resolve) => scheduler.soon(resolve))
  }
  return { revision: at.revision, compactRevision: at.compactRevision, hash: hash.digest('hex') }
}

/** main, sub, createRevision, version f64 | lease i64 | tombstone u8 | key length, value length u32 | key | value */
function hashRow(hash: Hash, row: Row, value: Value): void {
  const { key } = row.history
  const numbers = Buffer.allocUnsafe(49)
  numbers.writeDoubleBE(row.main, 0)
  numbers.writeDoubleBE(row.sub, 8)
  numbers.writeDoubleBE(row.createRevision, 16)
  numbers.writeDoubleBE(row.version, 24)
  numbers.writeBigInt64BE(BigInt.asIntN(64, row.lease), 32)
  numbers.writeUInt8(row.tombstone ? 1 : 0, 40)
  numbers.writeUInt32BE(key.length, 41)
  numbers.writeUInt32BE(value.length, 45)
  hash.update(numbers).update(key).update(value)
}
