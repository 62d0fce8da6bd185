import { SchemaError } from '../errors.ts'

/** Kinds of wire encoding, the low three bits of a tag. */
export const wireVarint = 0
export const wireFixed64 = 1
export const wireBytes = 2
export const wireGroupStart = 3
export const wireGroupEnd = 4
export const wireFixed32 = 5

const varintBytesMax = 10
const fieldNumberMax = 2 ** 29 - 1
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** ERR_SYNTAX in the words of Go's generated decoders. */
export function wireError(message: string, options?: { cause?: unknown }): SchemaError {
  return new SchemaError('ERR_SYNTAX', message, options)
}

/**
 * Reads the protobuf wire format from bytes nobody vouches for: each step either moves forward inside the bytes or
 * throws ERR_SYNTAX, 64-bit integers stay exact, and text is valid UTF-8. (The Reader of protobufjs rounds integers
 * beyond 2^53, replaces bad UTF-8 and follows nested groups by recursion.)
 */
export class WireReader {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number
  // The varint read last, in two halves.
  #low = 0
  #high = 0

  constructor(bytes: Uint8Array, from = 0, end = bytes.length) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#at = from
    this.#end = end
  }

  get done(): boolean {
    return this.#at >= this.#end
  }

  /** Field number and wire kind, `number << 3 | kind`. @param message - Go's name of the type, for the error. */
  tag(message: string): { readonly number: number; readonly wire: number } {
    this.#varint()
    const wire = this.#low & 7
    const number = this.#high * 2 ** 29 + (this.#low >>> 3)
    if (wire === wireGroupEnd) throw wireError(`proto: ${message}: wiretype end group for non-group`)
    if (number < 1 || number > fieldNumberMax) {
      throw wireError(`proto: ${message}: illegal tag ${number} (wire type ${wire})`)
    }
    return { number, wire }
  }

  int32(): number {
    this.#varint()
    return this.#low | 0
  }

  /** A bigint where a number would not be exact. */
  int64(): number | bigint {
    this.#varint()
    const value = (this.#high | 0) * 2 ** 32 + this.#low
    if (Number.isSafeInteger(value)) return value
    return (BigInt(this.#high | 0) << 32n) | BigInt(this.#low)
  }

  bool(): boolean {
    this.#varint()
    return this.#low !== 0 || this.#high !== 0
  }

  double(): number {
    const from = this.#take(8)
    return this.#bytes.readDoubleLE(from)
  }

  /** A view, not a copy. */
  bytes(): Buffer {
    const length = this.#length()
    const from = this.#take(length)
    return this.#bytes.subarray(from, from + length)
  }

  string(): string {
    const length = this.#length()
    const from = this.#take(length)
    const text = this.#bytes.toString('utf8', from, from + length)
    // Only text that holds the replacement character can have been bad.
    if (!text.includes('\ufffd')) return text
    try {
      return strictUtf8.decode(this.#bytes.subarray(from, from + length))
    } catch (error) {
      throw wireError('proto: invalid UTF-8 in string field', { cause: error })
    }
  }

  /** The fields of a nested message. */
  message(): WireReader {
    const length = this.#length()
    const from = this.#take(length)
    return new WireReader(this.#bytes, from, from + length)
  }

  /** Passes over the value of an unknown field, groups with all that is in them. */
  skip(wire: number): void {
    let kind = wire
    let groups = 0
    for (;;) {
      switch (kind) {
        case wireVarint:
          this.#varint()
          break
        case wireFixed64:
          this.#take(8)
          break
        case wireBytes:
          this.#take(this.#length())
          break
        case wireGroupStart:
          groups++
          break
        case wireGroupEnd:
          if (groups === 0) throw wireError('proto: unexpected end of group')
          groups--
          break
        case wireFixed32:
          this.#take(4)
          break
        default:
          throw wireError(`proto: illegal wireType ${kind}`)
      }
      if (groups === 0) return
      this.#varint()
      kind = this.#low & 7
    }
  }

  #length(): number {
    this.#varint()
    if (this.#high >= 2 ** 31) throw wireError('proto: negative length found during unmarshaling')
    return this.#high * 2 ** 32 + this.#low
  }

  #take(length: number): number {
    const from = this.#at
    if (length > this.#end - from) throw wireError('unexpected EOF')
    this.#at = from + length
    return from
  }

  #varint(): void {
    let low = 0
    let high = 0
    for (let index = 0; index < varintBytesMax; index++) {
      if (this.#at >= this.#end) throw wireError('unexpected EOF')
      const byte = this.#bytes[this.#at++]!
      const bits = byte & 0x7f
      if (index < 4) low |= bits << (7 * index)
      else if (index === 4) {
        low |= bits << 28
        high = bits >>> 4
      } else high |= bits << (7 * index - 32)
      if (byte < 0x80) {
        this.#low = low >>> 0
        this.#high = high >>> 0
        return
      }
    }
    throw wireError('proto: integer overflow')
  }
}
