import type { Backend, BackendView, RowHead, StateRecord } from '../backend.ts'
import { StorageError } from '../errors.ts'
import type { Value } from '../store.ts'

interface StoredRow {
  readonly head: RowHead
  readonly value: Value
}

/** Rows in a Map, nothing on any disk: behind the memory store and in tests of the engine. */
export class VolatileBackend implements Backend {
  readonly #rows = new Map<string, StoredRow>()
  #checkpointed: Backend['checkpointed']
  #applied = { index: 0, term: 0 }
  readonly broken = undefined

  get checkpointed(): Backend['checkpointed'] {
    return this.#checkpointed
  }

  get rowCount(): number {
    return this.#rows.size
  }

  put(head: RowHead, value: Value): void {
    this.#rows.set(rowId(head), { head, value })
  }

  remove(head: RowHead): void {
    this.#rows.delete(rowId(head))
  }

  commit(applied: { readonly index: number; readonly term: number }): void {
    this.#applied = applied
  }

  value(head: RowHead): Value {
    const row = this.#rows.get(rowId(head))
    if (row === undefined) throw new StorageError('ERR_CORRUPT', `row ${rowId(head)} is gone`)
    return row.value
  }

  async *heads(): AsyncIterable<readonly RowHead[]> {
    yield this.#sorted().map((row) => row.head)
  }

  async checkpoint(state: StateRecord): Promise<{ readonly index: number; readonly term: number }> {
    this.#checkpointed = { ...state, ...this.#applied }
    return this.#applied
  }

  async openView(state: StateRecord): Promise<BackendView> {
    const rows = this.#sorted()
    const view = { ...state, ...this.#applied }
    return {
      state: view,
      async *rows() {
        yield rows
      },
      async close() {},
    }
  }

  async close(): Promise<void> {}

  #sorted(): StoredRow[] {
    return [...this.#rows.values()].sort((a, b) => a.head.main - b.head.main || a.head.sub - b.head.sub)
  }
}

function rowId(head: RowHead): string {
  return `${head.main}/${head.sub}`
}
