import type { RowHead } from '../backend.ts'
import type { Key, KeyValue, LeaseId, Revision, Value } from '../store.ts'
import { keyBytes } from './key-range.ts'

const noValue: Value = new Uint8Array(0)

/** One change of one key, held in memory for as long as the row exists; only the value may live in the backend alone. */
export class Row implements RowHead {
  readonly main: Revision
  readonly sub: number
  readonly tombstone: boolean
  readonly createRevision: Revision
  readonly version: number
  readonly lease: LeaseId
  readonly history: KeyHistory
  /** Present while the value tail holds it; always present in a tombstone. */
  value: Value | undefined

  constructor(
    history: KeyHistory,
    head: Omit<RowHead, 'key'>,
    value: Value | undefined = head.tombstone ? noValue : undefined,
  ) {
    this.main = head.main
    this.sub = head.sub
    this.tombstone = head.tombstone
    this.createRevision = head.createRevision
    this.version = head.version
    this.lease = head.lease
    this.history = history
    this.value = value
  }

  /** One buffer per key, not per row, and never a piece of the log entry it came in. */
  get key(): Key {
    return this.history.key
  }
}

/**
 * The rows of one key, oldest first. etcd keeps generations (creation to tombstone); here a tombstone in the row list
 * is the end of one. Example: put at 2, put at 4, delete at 5, put at 7 is
 *
 *     rows: 2(v1) 4(v2) 5(tombstone) 7(v1, created 7)
 *
 * at(3) = 2, at(4) = 4, at(5) and at(6) = the tombstone 5, that is: no such key. Compacted at 4: 4 5 7. Compacted at 5:
 * 5 7, the tombstone AT the compacted revision stays. Compacted at 6: 7.
 * A key changes at most once per revision (duplicates within a transaction are refused), so `main` rises strictly.
 */
export class KeyHistory {
  readonly name: string
  #key: Key | undefined
  #rows: Row[] = []
  /** Rows before this position are gone; the array is cut when they are the larger part. */
  #first = 0

  constructor(name: string) {
    this.name = name
  }

  /** Made when first asked for: of most keys, most replicas never need it. */
  get key(): Key {
    this.#key ??= keyBytes(this.name)
    return this.#key
  }

  get size(): number {
    return this.#rows.length - this.#first
  }

  get oldest(): Row | undefined {
    return this.#rows[this.#first]
  }

  get newest(): Row | undefined {
    return this.#rows.length > this.#first ? this.#rows[this.#rows.length - 1] : undefined
  }

  append(row: Row): void {
    this.#rows.push(row)
  }

  removeOldest(): void {
    this.#first += 1
    if (this.#first >= 16 && this.#first * 2 > this.#rows.length) {
      this.#rows = this.#rows.slice(this.#first)
      this.#first = 0
    }
  }

  /** The newest row with main <= revision, tombstones included. */
  at(revision: Revision): Row | undefined {
    const position = this.#positionAt(revision)
    return position < this.#first ? undefined : this.#rows[position]
  }

  /** The row before `row`, tombstones included. */
  before(row: Row): Row | undefined {
    return this.at(row.main - 1)
  }

  /** Rows a reader at or above `compactRevision` and up to `revision` can see. */
  *visible(compactRevision: Revision, revision: Revision): Generator<Row> {
    for (let position = Math.max(this.#first, this.#positionAt(compactRevision)); ; position += 1) {
      const row = this.#rows[position]
      if (row === undefined || row.main > revision) return
      if (row.tombstone && row.main < compactRevision) continue
      yield row
    }
  }

  #positionAt(revision: Revision): number {
    let low = this.#first
    let high = this.#rows.length
    const newest = this.#rows[high - 1]
    if (newest !== undefined && newest.main <= revision) return high - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      const row = this.#rows[middle]
      if (row !== undefined && row.main <= revision) low = middle + 1
      else high = middle
    }
    return low - 1
  }
}

/** Of a tombstone: key and modRevision only, as etcd's delete events. `value` may be blank where only keys are asked for. */
export function keyValueOf(row: Row, value: Value): KeyValue {
  return {
    key: row.history.key,
    value,
    createRevision: row.createRevision,
    modRevision: row.main,
    version: row.version,
    lease: row.lease,
  }
}

export { noValue }
