import { crc32 } from 'node:zlib'
import type { RowHead } from '../backend.ts'
import { StorageError } from '../errors.ts'
import type { Revision } from '../store.ts'
import { asBuffer, readU64, writeU64 } from './bytes.ts'

// Row key: tag u8 = 1 | main u64 | sub u32 | flags u8 | createRevision u64 | version u64 | lease u64 | crc u32 | user key.
// Everything the key index needs lies in it, so a start reads keys only: hence a crc of its own, over all the rest.
// (main, sub) alone orders and identifies a row; what follows is the same in every copy of it, since apply is
// deterministic.
const rowTag = 1
const tombstoneFlag = 1
const crcAt = 1 + 8 + 4 + 1 + 8 + 8 + 8
const fixedBytes = crcAt + 4

/** Keys of rows are >= this … */
export const rowKeysFrom: Uint8Array = Buffer.from([rowTag])
/** … and < this. */
export const rowKeysTo: Uint8Array = Buffer.from([rowTag + 1])

export function encodeRowKey(head: RowHead): Buffer {
  const bytes = Buffer.allocUnsafe(fixedBytes + head.key.length)
  bytes[0] = rowTag
  writeU64(bytes, head.main, 1)
  bytes.writeUInt32BE(head.sub, 9)
  bytes[13] = head.tombstone ? tombstoneFlag : 0
  writeU64(bytes, head.createRevision, 14)
  writeU64(bytes, head.version, 22)
  bytes.writeBigUInt64BE(BigInt.asUintN(64, head.lease), 30)
  bytes.set(head.key, fixedBytes)
  bytes.writeUInt32BE(crcOf(bytes), crcAt)
  return bytes
}

function crcOf(bytes: Buffer): number {
  return crc32(bytes.subarray(fixedBytes), crc32(bytes.subarray(0, crcAt)))
}

/** `key` of the result shares memory with `rowKey`. @throws StorageError ERR_CORRUPT */
export function decodeRowKey(rowKey: Uint8Array): RowHead {
  const bytes = asBuffer(rowKey)
  const flags = bytes[13] ?? 0xff
  if (bytes.length < fixedBytes || bytes[0] !== rowTag || flags > tombstoneFlag) {
    throw new StorageError('ERR_CORRUPT', `row key ${bytes.subarray(0, fixedBytes).toString('hex')} is malformed`)
  }
  if (bytes.readUInt32BE(crcAt) !== crcOf(bytes)) {
    throw new StorageError(
      'ERR_CORRUPT',
      `checksum mismatch in row key ${bytes.subarray(0, fixedBytes).toString('hex')}`,
    )
  }
  return {
    main: readU64(bytes, 1, 'row key'),
    sub: bytes.readUInt32BE(9),
    tombstone: flags === tombstoneFlag,
    createRevision: readU64(bytes, 14, 'row key'),
    version: readU64(bytes, 22, 'row key'),
    lease: bytes.readBigInt64BE(30),
    key: bytes.subarray(fixedBytes),
  }
}

/** The smallest key above every row of `revision` and below. */
export function firstRowKeyAbove(revision: Revision): Buffer {
  const bytes = Buffer.alloc(9)
  bytes[0] = rowTag
  writeU64(bytes, revision + 1, 1)
  return bytes
}
