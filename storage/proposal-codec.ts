import { StorageError } from './errors.ts'
import { requestBytesMax, txnOpsMax } from './limits.ts'
import type { Compare, CompareOperator, LeaseId, Op, RangeRequest, TxnRequest } from './store.ts'

/*
 * The inside of a proposal. Layout: FORMATS.md, section Proposal. Numbers are LEB128 varints below 2^53; a negative
 * number (etcd takes negative revisions as 0) is written as 0 where the store treats it so.
 */

const operators: readonly CompareOperator[] = ['=', '!=', '<', '>']
const targets: readonly Compare['target'][] = ['mod', 'create', 'version', 'value', 'lease']

const opKinds = { range: 1, put: 2, delete: 3, txn: 4 } as const

const flagRangeEnd = 1
const flagPrevKv = 2
const flagLease = 4
const flagKeysOnly = 8
const flagCountOnly = 16
const flagRevision = 32
const flagLimit = 64

/** A nested transaction costs its parent at least one operation, so valid ones are never deeper. */
const depthMax = txnOpsMax + 1

export class ProposalWriter {
  #buffer = Buffer.allocUnsafe(512)
  #length = 0

  byte(value: number): void {
    this.#reserve(1)
    this.#buffer[this.#length++] = value
  }

  number(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new StorageError('ERR_CORRUPT', `cannot encode ${value} as a number of a proposal`)
    }
    this.#reserve(8)
    let rest = value
    while (rest >= 0x80) {
      this.#buffer[this.#length++] = (rest % 0x80) | 0x80
      rest = rest < 0x80000000 ? rest >>> 7 : Math.floor(rest / 0x80)
    }
    this.#buffer[this.#length++] = rest
  }

  int64(value: bigint): void {
    this.#reserve(8)
    this.#length = this.#buffer.writeBigInt64LE(BigInt.asIntN(64, value), this.#length)
  }

  bytes(value: Uint8Array): void {
    this.number(value.length)
    this.#reserve(value.length)
    this.#buffer.set(value, this.#length)
    this.#length += value.length
  }

  txn(request: TxnRequest, depth = 0): void {
    if (depth > depthMax) throw new StorageError('ERR_TOO_MANY_OPS', 'a transaction is nested too deep')
    this.number(request.compare.length)
    for (const compare of request.compare) this.#compare(compare)
    for (const branch of [request.success, request.failure]) {
      this.number(branch.length)
      for (const op of branch) this.#op(op, depth)
    }
  }

  finish(): Uint8Array {
    return this.#buffer.subarray(0, this.#length)
  }

  #compare(compare: Compare): void {
    const rangeEnd = presentRangeEnd(compare)
    this.byte(targets.indexOf(compare.target))
    this.byte(operators.indexOf(compare.op))
    this.byte(rangeEnd === undefined ? 0 : flagRangeEnd)
    this.bytes(compare.key)
    if (rangeEnd !== undefined) this.bytes(rangeEnd)
    switch (compare.target) {
      case 'value':
        return this.bytes(compare.is)
      case 'lease':
        return this.int64(compare.is)
      case 'mod':
      case 'create':
      case 'version':
        return this.int64(BigInt(compare.is))
    }
  }

  #op(op: Op, depth: number): void {
    this.byte(opKinds[op.type])
    switch (op.type) {
      case 'range':
        return this.#range(op)
      case 'put': {
        const lease = op.lease ?? 0n
        this.byte((op.prevKv === true ? flagPrevKv : 0) | (lease === 0n ? 0 : flagLease))
        this.bytes(op.key)
        if (lease !== 0n) this.int64(lease)
        return this.bytes(op.value)
      }
      case 'delete': {
        const rangeEnd = presentRangeEnd(op)
        this.byte((op.prevKv === true ? flagPrevKv : 0) | (rangeEnd === undefined ? 0 : flagRangeEnd))
        this.bytes(op.key)
        if (rangeEnd !== undefined) this.bytes(rangeEnd)
        return
      }
      case 'txn':
        return this.txn(op, depth + 1)
    }
  }

  #range(op: RangeRequest): void {
    const rangeEnd = presentRangeEnd(op)
    const revision = Math.max(0, op.revision ?? 0)
    const limit = Math.max(0, op.limit ?? 0)
    this.byte(
      (rangeEnd === undefined ? 0 : flagRangeEnd) |
        (op.keysOnly === true ? flagKeysOnly : 0) |
        (op.countOnly === true ? flagCountOnly : 0) |
        (revision === 0 ? 0 : flagRevision) |
        (limit === 0 ? 0 : flagLimit),
    )
    this.bytes(op.key)
    if (rangeEnd !== undefined) this.bytes(rangeEnd)
    if (revision !== 0) this.number(revision)
    if (limit !== 0) this.number(limit)
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(needed, Math.min(this.#buffer.length * 2, needed + requestBytesMax)))
    grown.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = grown
  }
}

/** An empty range end means the key alone, as an absent one. */
function presentRangeEnd(of: { readonly rangeEnd?: Uint8Array }): Uint8Array | undefined {
  return of.rangeEnd === undefined || of.rangeEnd.length === 0 ? undefined : of.rangeEnd
}

export class ProposalReader {
  readonly #data: Buffer
  #position = 0

  constructor(data: Uint8Array) {
    this.#data = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  }

  byte(): number {
    const value = this.#data[this.#position++]
    if (value === undefined) throw cut()
    return value
  }

  number(): number {
    let value = 0
    let scale = 1
    for (;;) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) break
      scale *= 0x80
      if (scale > 2 ** 49) throw new StorageError('ERR_CORRUPT', 'a number of a proposal is longer than 8 bytes')
    }
    if (!Number.isSafeInteger(value)) throw new StorageError('ERR_CORRUPT', `number ${value} of a proposal is unsafe`)
    return value
  }

  int64(): bigint {
    if (this.#position + 8 > this.#data.length) throw cut()
    const value = this.#data.readBigInt64LE(this.#position)
    this.#position += 8
    return value
  }

  bytes(): Uint8Array {
    const length = this.number()
    const end = this.#position + length
    if (end > this.#data.length) throw cut()
    const value = this.#data.subarray(this.#position, end)
    this.#position = end
    return value
  }

  txn(depth = 0): TxnRequest {
    if (depth > depthMax) throw new StorageError('ERR_CORRUPT', 'a proposal is nested too deep')
    const compare = this.#list(() => this.#compare())
    const success = this.#list(() => this.#op(depth))
    const failure = this.#list(() => this.#op(depth))
    return { compare, success, failure }
  }

  end(): void {
    if (this.#position !== this.#data.length) {
      throw new StorageError('ERR_CORRUPT', `${this.#data.length - this.#position} bytes behind the end of a proposal`)
    }
  }

  #list<T>(read: () => T): T[] {
    const count = this.number()
    // No bound of its own: a longer list is refused by apply, alike on every replica. Every item has some bytes.
    if (count > this.#data.length - this.#position) throw cut()
    const list: T[] = []
    for (let position = 0; position < count; position += 1) list.push(read())
    return list
  }

  #compare(): Compare {
    const target = targets[this.byte()]
    const op = operators[this.byte()]
    if (target === undefined || op === undefined) throw new StorageError('ERR_CORRUPT', 'an unknown compare')
    const flags = this.byte()
    const key = this.bytes()
    const place = (flags & flagRangeEnd) === 0 ? { key, op } : { key, op, rangeEnd: this.bytes() }
    switch (target) {
      case 'value':
        return { ...place, target, is: this.bytes() }
      case 'lease':
        return { ...place, target, is: this.int64() }
      case 'mod':
      case 'create':
      case 'version':
        return { ...place, target, is: Number(this.int64()) }
    }
  }

  #op(depth: number): Op {
    const kind = this.byte()
    switch (kind) {
      case opKinds.range:
        return this.#range()
      case opKinds.put: {
        const flags = this.byte()
        const key = this.bytes()
        const lease: LeaseId = (flags & flagLease) === 0 ? 0n : this.int64()
        return { type: 'put', key, lease, value: this.bytes(), prevKv: (flags & flagPrevKv) !== 0 }
      }
      case opKinds.delete: {
        const flags = this.byte()
        const key = this.bytes()
        const prevKv = (flags & flagPrevKv) !== 0
        if ((flags & flagRangeEnd) === 0) return { type: 'delete', key, prevKv }
        return { type: 'delete', key, prevKv, rangeEnd: this.bytes() }
      }
      case opKinds.txn:
        return { type: 'txn', ...this.txn(depth + 1) }
      default:
        throw new StorageError('ERR_CORRUPT', `an operation of unknown kind ${kind}`)
    }
  }

  #range(): Op {
    const flags = this.byte()
    const key = this.bytes()
    const rangeEnd = (flags & flagRangeEnd) === 0 ? undefined : this.bytes()
    const revision = (flags & flagRevision) === 0 ? 0 : this.number()
    const limit = (flags & flagLimit) === 0 ? 0 : this.number()
    const op = {
      type: 'range' as const,
      key,
      revision,
      limit,
      keysOnly: (flags & flagKeysOnly) !== 0,
      countOnly: (flags & flagCountOnly) !== 0,
    }
    return rangeEnd === undefined ? op : { ...op, rangeEnd }
  }
}

function cut(): StorageError {
  return new StorageError('ERR_CORRUPT', 'a proposal ends in the middle of a field')
}
