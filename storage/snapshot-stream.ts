import { crc32 } from 'node:zlib'
import type { BackendView } from './backend.ts'
import { ByteReader, ByteWriter } from './backend/bytes.ts'
import type { Row } from './backend/media.ts'
import { decodeRowKey, encodeRowKey } from './backend/row-key.ts'
import { sealBytes, unsealBytes, type SealedFormat } from './backend/sealed-file.ts'
import { encodeCheckpoint, readCheckpointPayload, type Checkpoint } from './checkpoint.ts'
import { StorageError } from './errors.ts'

// Snapshot stream: sealed state record (magic TRSN) preceded by its length u32, then blocks
//   type u8 | length u32 | crc u32 of payload | payload[length]
// type 1: rows, { key length u32 | value length u32 | row key | value }*; type 2, last: number of rows u64.
const format: SealedFormat = { magic: 'TRSN', version: 1 }
const rowsBlock = 1
const endBlock = 2
const blockHeadBytes = 1 + 4 + 4
/** A block is cut once it holds this much; a larger row travels alone. */
const blockBytes = 256 * 1024
/** No honest block or state record is larger: raft's entryBytesMax twice, and room for a million leases. */
const blockBytesMax = 32 * 1024 * 1024

/** The bytes of a view, in chunks of some 256 KiB. The caller closes the view afterwards. */
export async function* encodeSnapshot(view: BackendView): AsyncIterable<Uint8Array> {
  const head = sealBytes(format, encodeCheckpoint(view.state))
  yield new ByteWriter(4 + head.length).u32(head.length).bytes(head).finish()
  let block = new ByteWriter(blockBytes + blockBytes / 4)
  let count = 0
  for await (const rows of view.rows()) {
    for (const { head, value } of rows) {
      const key = encodeRowKey(head)
      block.u32(key.length).u32(value.length).bytes(key).bytes(value)
      count++
      if (block.length < blockBytes) continue
      yield* frame(rowsBlock, block.finish())
      block = new ByteWriter(blockBytes + blockBytes / 4)
    }
  }
  if (block.length > 0) yield* frame(rowsBlock, block.finish())
  yield* frame(endBlock, new ByteWriter(8).u64(count).finish())
}

function* frame(type: number, payload: Buffer): Iterable<Uint8Array> {
  yield new ByteWriter(blockHeadBytes).u8(type).u32(payload.length).u32(crc32(payload)).finish()
  yield payload
}

export interface SnapshotReader {
  readonly state: Checkpoint
  /** In order. Ends only after the whole stream was there and whole, else throws ERR_CORRUPT. */
  readonly rows: AsyncIterable<readonly Row[]>
}

/** `chunks` may be cut anywhere. @throws StorageError ERR_CORRUPT, ERR_FORMAT */
export async function decodeSnapshot(chunks: AsyncIterable<Uint8Array>): Promise<SnapshotReader> {
  const source = new ChunkReader(chunks)
  const length = (await source.take(4)).readUInt32BE(0)
  const reader = new ByteReader(unsealBytes(format, await source.take(length), 'snapshot'), 'snapshot')
  const state = readCheckpointPayload(reader)
  reader.end()
  return { state, rows: decodeBlocks(source) }
}

async function* decodeBlocks(source: ChunkReader): AsyncIterable<readonly Row[]> {
  let count = 0
  for (;;) {
    const head = await source.take(blockHeadBytes)
    const payload = await source.take(head.readUInt32BE(1))
    if (crc32(payload) !== head.readUInt32BE(5)) throw new StorageError('ERR_CORRUPT', 'snapshot: checksum mismatch')
    if (head[0] === endBlock) {
      const expected = new ByteReader(payload, 'snapshot').u64()
      if (count !== expected) throw new StorageError('ERR_CORRUPT', `snapshot: ${count} rows of ${expected}`)
      return
    }
    if (head[0] !== rowsBlock) throw new StorageError('ERR_CORRUPT', `snapshot: block type ${head[0]}`)
    const rows = decodeRows(payload)
    count += rows.length
    yield rows
  }
}

function decodeRows(payload: Buffer): readonly Row[] {
  const reader = new ByteReader(payload, 'snapshot')
  const rows: Row[] = []
  while (reader.remaining > 0) {
    const keyLength = reader.u32()
    const valueLength = reader.u32()
    rows.push({ head: decodeRowKey(reader.bytes(keyLength)), value: reader.bytes(valueLength) })
  }
  return rows
}

/** Cuts a stream of chunks into pieces of asked lengths. */
class ChunkReader {
  readonly #chunks: AsyncIterator<Uint8Array>
  #held: Uint8Array[] = []
  #heldBytes = 0

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  async take(length: number): Promise<Buffer> {
    if (length > blockBytesMax) throw new StorageError('ERR_CORRUPT', `snapshot: a piece of ${length} bytes`)
    while (this.#heldBytes < length) {
      const next = await this.#chunks.next()
      if (next.done === true) throw new StorageError('ERR_CORRUPT', 'snapshot: cut short')
      this.#held.push(next.value)
      this.#heldBytes += next.value.length
    }
    const joined = Buffer.concat(this.#held, this.#heldBytes)
    this.#held = [joined.subarray(length)]
    this.#heldBytes -= length
    return joined.subarray(0, length)
  }
}
