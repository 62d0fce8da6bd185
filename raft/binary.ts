import { Buffer } from 'node:buffer'

/** Thrown by ByteReader only; whoever reads turns it into an error that names what was being read. */
export class MalformedError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MalformedError'
  }
}

const high = 0x1_0000_0000

/** `value` is a safe integer >= 0: a term, an index, a length. */
export function writeUint64(buffer: Buffer, value: number, offset: number): number {
  buffer.writeUInt32BE(Math.floor(value / high), offset)
  return buffer.writeUInt32BE(value >>> 0, offset + 4)
}

export function writeId(buffer: Buffer, value: bigint, offset: number): number {
  return buffer.writeBigUInt64BE(value, offset)
}

/** A view of the same bytes with Buffer's accessors; no copy. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Reads forward and never past the end: every short or out-of-range value is a MalformedError. */
export class ByteReader {
  readonly #buffer: Buffer
  readonly #end: number
  #offset: number

  constructor(buffer: Buffer, offset = 0, end = buffer.length) {
    this.#buffer = buffer
    this.#offset = offset
    this.#end = end
  }

  get remaining(): number {
    return this.#end - this.#offset
  }

  #take(length: number): number {
    if (length > this.remaining) throw new MalformedError(`${length} bytes wanted, ${this.remaining} left`)
    const offset = this.#offset
    this.#offset += length
    return offset
  }

  uint8(): number {
    return this.#buffer.readUInt8(this.#take(1))
  }

  uint16(): number {
    return this.#buffer.readUInt16BE(this.#take(2))
  }

  uint32(): number {
    return this.#buffer.readUInt32BE(this.#take(4))
  }

  /** A number below 2^53. */
  uint64(): number {
    const offset = this.#take(8)
    const value = this.#buffer.readUInt32BE(offset) * high + this.#buffer.readUInt32BE(offset + 4)
    if (!Number.isSafeInteger(value)) throw new MalformedError(`${value} is above 2^53`)
    return value
  }

  id(): bigint {
    return this.#buffer.readBigUInt64BE(this.#take(8))
  }

  flag(): boolean {
    const value = this.uint8()
    if (value > 1) throw new MalformedError(`${value} is not a flag`)
    return value === 1
  }

  /** A view, not a copy. */
  bytes(length: number): Buffer {
    const offset = this.#take(length)
    return this.#buffer.subarray(offset, offset + length)
  }

  end(): void {
    if (this.remaining !== 0) throw new MalformedError(`${this.remaining} bytes left over`)
  }
}
