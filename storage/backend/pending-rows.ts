import assert from 'node:assert'
import type { RowHead } from '../backend.ts'
import type { Revision, Value } from '../store.ts'
import { changeOverheadBytes } from './limits.ts'
import type { Applied, RowBatch, RowChange } from './media.ts'

/** Changes since the last sealed batch, and the values of all rows that no media batch holds yet. */
export class PendingRows {
  #changes: RowChange[] = []
  #bytes = 0
  #uncommitted = 0
  #pendingBytes = 0
  readonly #values = new Map<Revision, RevisionValues>()

  /** Bytes not sealed yet. */
  get gatheredBytes(): number {
    return this.#bytes
  }

  /** Bytes not written yet, sealed ones included. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  /** Whether put was called since the last commit. A removal may wait for any later batch. */
  get dirty(): boolean {
    return this.#uncommitted > 0
  }

  put(head: RowHead, value: Value): void {
    let values = this.#values.get(head.main)
    if (values === undefined) {
      values = { bySub: [], count: 0 }
      this.#values.set(head.main, values)
    }
    values.bySub[head.sub] = value
    values.count++
    this.#uncommitted++
    this.#add({ type: 'put', head, value }, value.length)
  }

  remove(head: RowHead): void {
    this.#add({ type: 'remove', head }, 0)
  }

  commit(): void {
    this.#uncommitted = 0
  }

  value(head: RowHead): Value | undefined {
    return this.#values.get(head.main)?.bySub[head.sub]
  }

  /** Takes everything gathered; `applied` is of the last commit. Never called between put and commit. */
  seal(applied: Applied): SealedBatch {
    assert(!this.dirty, 'a batch would be cut between put and commit')
    const batch = { changes: this.#changes, applied, bytes: this.#bytes }
    this.#changes = []
    this.#bytes = 0
    return batch
  }

  /** The media serves the batch's rows from now on. */
  written(batch: SealedBatch): void {
    this.#pendingBytes -= batch.bytes
    for (const change of batch.changes) if (change.type === 'put') this.#drop(change.head)
  }

  #drop(head: RowHead): void {
    const values = this.#values.get(head.main)
    if (values === undefined) return
    values.bySub[head.sub] = undefined
    if (--values.count === 0) this.#values.delete(head.main)
  }

  #add(change: RowChange, valueBytes: number): void {
    const bytes = change.head.key.length + valueBytes + changeOverheadBytes
    this.#changes.push(change)
    this.#bytes += bytes
    this.#pendingBytes += bytes
  }
}

/** Values of the rows of one revision that are not written yet. Most revisions change one row. */
interface RevisionValues {
  readonly bySub: (Value | undefined)[]
  count: number
}

export type SealedBatch = RowBatch & { readonly bytes: number }
