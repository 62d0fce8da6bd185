import { StorageError } from '../errors.ts'

/** 2^53 / 2^32: the high word of a u64 that still fits a number. */
const highWordMax = 0x20_0000

/** Writes big-endian fields one behind the other into a buffer that grows. */
export class ByteWriter {
  #bytes: Buffer
  #length = 0

  constructor(sizeHint = 256) {
    this.#bytes = Buffer.allocUnsafe(sizeHint)
  }

  get length(): number {
    return this.#length
  }

  u8(value: number): this {
    this.#grow(1)
    this.#length = this.#bytes.writeUInt8(value, this.#length)
    return this
  }

  u16(value: number): this {
    this.#grow(2)
    this.#length = this.#bytes.writeUInt16BE(value, this.#length)
    return this
  }

  u32(value: number): this {
    this.#grow(4)
    this.#length = this.#bytes.writeUInt32BE(value, this.#length)
    return this
  }

  /** A safe integer >= 0. */
  u64(value: number): this {
    this.#grow(8)
    this.#length = writeU64(this.#bytes, value, this.#length)
    return this
  }

  /** An id: uint64 or int64, kept bit for bit. */
  id(value: bigint): this {
    this.#grow(8)
    this.#length = this.#bytes.writeBigUInt64BE(BigInt.asUintN(64, value), this.#length)
    return this
  }

  bytes(value: Uint8Array): this {
    this.#grow(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
    return this
  }

  /** What was written so far; shares memory with the writer until that has to grow. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #grow(by: number): void {
    const wanted = this.#length + by
    if (wanted <= this.#bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(wanted, this.#bytes.length * 2))
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
  }
}

/** Reads what ByteWriter wrote. Running over the end, or a number of 2^53 and more, is ERR_CORRUPT naming `what`. */
export class ByteReader {
  readonly #bytes: Buffer
  readonly #what: string
  #position = 0

  constructor(bytes: Uint8Array, what: string) {
    this.#bytes = asBuffer(bytes)
    this.#what = what
  }

  get remaining(): number {
    return this.#bytes.length - this.#position
  }

  u8(): number {
    return this.#bytes.readUInt8(this.#take(1))
  }

  u16(): number {
    return this.#bytes.readUInt16BE(this.#take(2))
  }

  u32(): number {
    return this.#bytes.readUInt32BE(this.#take(4))
  }

  u64(): number {
    return readU64(this.#bytes, this.#take(8), this.#what)
  }

  /** uint64 */
  id(): bigint {
    return this.#bytes.readBigUInt64BE(this.#take(8))
  }

  bytes(length: number): Buffer {
    const start = this.#take(length)
    return this.#bytes.subarray(start, start + length)
  }

  /** Everything must have been read. */
  end(): void {
    if (this.remaining !== 0) throw new StorageError('ERR_CORRUPT', `${this.#what}: ${this.remaining} bytes too many`)
  }

  #take(length: number): number {
    const start = this.#position
    if (length > this.remaining) {
      throw new StorageError('ERR_CORRUPT', `${this.#what}: cut short at byte ${start} of ${this.#bytes.length}`)
    }
    this.#position = start + length
    return start
  }
}

export function writeU64(into: Buffer, value: number, at: number): number {
  const high = Math.floor(value / 0x1_0000_0000)
  into.writeUInt32BE(high, at)
  return into.writeUInt32BE(value - high * 0x1_0000_0000, at + 4)
}

export function readU64(from: Buffer, at: number, what: string): number {
  const high = from.readUInt32BE(at)
  if (high >= highWordMax) throw new StorageError('ERR_CORRUPT', `${what}: number at byte ${at} is above 2^53`)
  return high * 0x1_0000_0000 + from.readUInt32BE(at + 4)
}

/** The same memory as a Buffer. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
