import { encodingCacheBytesMax } from '../limits.ts'

/** Cost of an entry beside its bytes. */
const entryOverheadBytes = 200

/** Encodings made once and shared, bounded by bytes; the least recently used leave. */
export class EncodingCache<Value extends { readonly bytes: Uint8Array }> {
  readonly #bytesMax: number
  /** Insertion order is order of use. */
  readonly #entries = new Map<string, Value>()
  #bytes = 0

  constructor(bytesMax: number = encodingCacheBytesMax) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  get(id: string, make: () => Value): Value {
    const known = this.#entries.get(id)
    if (known !== undefined) {
      this.#entries.delete(id)
      this.#entries.set(id, known)
      return known
    }
    const made = make()
    this.#entries.set(id, made)
    this.#bytes += made.bytes.length + entryOverheadBytes
    for (const [oldest, value] of this.#entries) {
      if (this.#bytes <= this.#bytesMax) break
      this.#entries.delete(oldest)
      this.#bytes -= value.bytes.length + entryOverheadBytes
    }
    return made
  }
}
