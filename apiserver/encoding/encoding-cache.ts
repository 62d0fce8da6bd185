import { encodingCacheBytesMax } from '../limits.ts'

/** Cost of an entry beside its bytes. */
const entryOverheadBytes = 200

interface Entry<Value> {
  readonly value: Value
  /** What it was made from; held weakly, so that an old revision does not outlive its last reader. */
  readonly source: WeakRef<Uint8Array>
}

/** Encodings made once and shared, bounded by bytes; the least recently used leave. */
export class EncodingCache<Value extends { readonly bytes: Uint8Array }> {
  readonly #bytesMax: number
  /** Insertion order is order of use. */
  readonly #entries = new Map<string, Entry<Value>>()
  #bytes = 0

  constructor(bytesMax: number = encodingCacheBytesMax) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * @param source - The very bytes that `make` encodes. An id alone does not tell: what a dry run would have written
   *   has the key and revision of what is there.
   */
  get(id: string, source: Uint8Array, make: () => Value): Value {
    const known = this.#entries.get(id)
    if (known !== undefined) {
      this.#remove(id, known)
      if (known.source.deref() === source) {
        this.#add(id, known)
        return known.value
      }
    }
    const value = make()
    this.#add(id, { value, source: new WeakRef(source) })
    for (const [oldest, entry] of this.#entries) {
      if (this.#bytes <= this.#bytesMax) break
      this.#remove(oldest, entry)
    }
    return value
  }

  #add(id: string, entry: Entry<Value>): void {
    this.#entries.set(id, entry)
    this.#bytes += entry.value.bytes.length + entryOverheadBytes
  }

  #remove(id: string, entry: Entry<Value>): void {
    this.#entries.delete(id)
    this.#bytes -= entry.value.bytes.length + entryOverheadBytes
  }
}
