import assert from 'node:assert'
import { crc32 } from 'node:zlib'
import type { Level } from 'level'
import { DiskError } from '../../raft/index.ts'
import type { RowHead } from '../backend.ts'
import { StorageError } from '../errors.ts'
import type { Revision, Value } from '../store.ts'
import { asBuffer, ByteReader, ByteWriter } from './bytes.ts'
import {
  levelBlockCacheBytes,
  levelOpenFilesMax,
  levelWriteBufferBytes,
  rowSliceBytes,
  rowSliceRows,
} from './limits.ts'
import type { Applied, Row, RowBatch, RowMedia, RowMediaView } from './media.ts'
import { decodeRowKey, encodeRowKey, firstRowKeyAbove, rowKeysFrom, rowKeysTo } from './row-key.ts'

/** On Node, Level is classic-level's database; level's own types leave out what a browser has not. */
type Database = Level<Uint8Array, Uint8Array> & {
  compactRange(start: Uint8Array, end: Uint8Array): Promise<void>
}
type Operation = { type: 'put'; key: Uint8Array; value: Uint8Array } | { type: 'del'; key: Uint8Array }

// Meta records: tag u8 = 0 | kind u8 → version u8 | fields.
const appliedKey = Buffer.from([0, 1])
const durableKey = Buffer.from([0, 2])
const metaVersion = 1
/** Above every key: compacting it moves no table, it only flushes the memtable. */
const beyondKeys = Buffer.from([0xff])
const crcBytes = 4

/**
 * LevelDB verifies no block checksum on reads, so a row's value carries its own: crc u32 | value, over row key and
 * value.
 */
export class LevelMedia implements RowMedia {
  readonly #database: Database

  private constructor(database: Database) {
    this.#database = database
  }

  static async open(location: string): Promise<LevelMedia> {
    const { Level } = await import('level')
    const database = new Level<Uint8Array, Uint8Array>(location, {
      keyEncoding: 'view',
      valueEncoding: 'view',
      cacheSize: levelBlockCacheBytes,
      writeBufferSize: levelWriteBufferBytes,
      maxOpenFiles: levelOpenFilesMax,
    })
    assert(isDatabase(database), 'level has no compactRange here')
    await mapErrors(location, () => database.open())
    return new LevelMedia(database)
  }

  async applied(): Promise<Applied | undefined> {
    const bytes = await this.#call(() => this.#database.get(appliedKey))
    if (bytes === undefined) return undefined
    const reader = new ByteReader(bytes, 'applied record')
    const version = reader.u8()
    if (version > metaVersion) {
      throw new StorageError(
        'ERR_FORMAT',
        `${this.#location}: rows written in format ${version}, known is ${metaVersion}`,
      )
    }
    return { index: reader.u64(), term: reader.u64() }
  }

  async write(batch: RowBatch): Promise<void> {
    const operations: Operation[] = []
    for (const change of batch.changes) {
      const key = encodeRowKey(change.head)
      if (change.type === 'put') operations.push({ type: 'put', key, value: protect(key, change.value) })
      else operations.push({ type: 'del', key })
    }
    const { index, term } = batch.applied
    operations.push({ type: 'put', key: appliedKey, value: metaRecord(index, term) })
    await this.#call(() => this.#database.batch(operations))
  }

  get(head: RowHead): Value | undefined {
    const key = encodeRowKey(head)
    let stored: Uint8Array | undefined
    try {
      stored = this.#database.getSync(key)
    } catch (error) {
      throw levelError(this.#location, error)
    }
    return stored && unprotect(key, stored, this.#location)
  }

  async *heads(): AsyncIterable<readonly RowHead[]> {
    const keys = this.#database.keys({
      gte: rowKeysFrom,
      lt: rowKeysTo,
      highWaterMarkBytes: rowSliceBytes,
      fillCache: false,
    })
    try {
      for (;;) {
        const slice = await this.#call(() => keys.nextv(rowSliceRows))
        if (slice.length === 0) return
        yield slice.map(decodeRowKey)
      }
    } finally {
      await keys.close()
    }
  }

  async removeAbove(revision: Revision): Promise<void> {
    await this.#call(() => this.#database.clear({ gte: firstRowKeyAbove(revision), lt: rowKeysTo }))
  }

  /**
   * compactRange first turns the memtable into a table file, synced together with its directory and LevelDB's manifest,
   * whatever the range. It reports no error, but a failed flush fails every later write: so one follows.
   */
  async makeDurable(): Promise<void> {
    await this.#call(() => this.#database.compactRange(beyondKeys, beyondKeys))
    await this.#call(() => this.#database.put(durableKey, Buffer.from([metaVersion])))
  }

  view(): RowMediaView {
    const snapshot = this.#database.snapshot()
    return { rows: () => this.#rows(snapshot), close: () => snapshot.close() }
  }

  async close(): Promise<void> {
    await mapErrors(this.#location, () => this.#database.close())
  }

  async *#rows(snapshot: ReturnType<Database['snapshot']>): AsyncIterable<readonly Row[]> {
    const entries = this.#database.iterator({
      gte: rowKeysFrom,
      lt: rowKeysTo,
      snapshot,
      highWaterMarkBytes: rowSliceBytes,
      fillCache: false,
    })
    try {
      for (;;) {
        const slice = await this.#call(() => entries.nextv(rowSliceRows))
        if (slice.length === 0) return
        yield slice.map(([key, value]) => ({ head: decodeRowKey(key), value: unprotect(key, value, this.#location) }))
      }
    } finally {
      await entries.close()
    }
  }

  get #location(): string {
    return this.#database.location
  }

  #call<T>(call: () => Promise<T>): Promise<T> {
    return mapErrors(this.#location, call)
  }
}

function isDatabase(database: Level<Uint8Array, Uint8Array>): database is Database {
  return 'compactRange' in database
}

function metaRecord(index: number, term: number): Buffer {
  return new ByteWriter(17).u8(metaVersion).u64(index).u64(term).finish()
}

function protect(key: Uint8Array, value: Value): Buffer {
  const stored = Buffer.allocUnsafe(crcBytes + value.length)
  stored.writeUInt32BE(crc32(value, crc32(key)), 0)
  stored.set(value, crcBytes)
  return stored
}

function unprotect(key: Uint8Array, stored: Uint8Array, location: string): Value {
  const bytes = asBuffer(stored)
  const value = bytes.subarray(crcBytes)
  if (bytes.length < crcBytes || bytes.readUInt32BE(0) !== crc32(value, crc32(key))) {
    const { main, sub } = decodeRowKey(key)
    throw new StorageError('ERR_CORRUPT', `${location}: checksum mismatch in row ${main}.${sub}`)
  }
  return value
}

async function mapErrors<T>(location: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw levelError(location, error)
  }
}

/** LevelDB's codes; the code of a failed open is in its cause. */
function levelError(location: string, error: unknown): unknown {
  const code = errorCode(error) === 'LEVEL_DATABASE_NOT_OPEN' ? errorCode(causeOf(error)) : errorCode(error)
  if (code === 'LEVEL_CORRUPTION') {
    return new StorageError('ERR_CORRUPT', `${location}: LevelDB found damage`, { cause: error })
  }
  if (code === 'LEVEL_LOCKED') {
    return new StorageError('ERR_DATA_DIR', `${location}: another process has it open`, { cause: error })
  }
  if (code === 'LEVEL_IO_ERROR') {
    const text = error instanceof Error ? `${error.message} ${messageOf(error.cause)}` : ''
    const known = systemErrors.find(([words]) => text.includes(words))
    return new DiskError(known?.[1] ?? 'EUNKNOWN', location, { cause: error, message: `${location}: ${text.trim()}` })
  }
  return error
}

/** LevelDB tells system errors by their texts only. EINVAL: a table cut short. */
const systemErrors = [
  ['Input/output error', 'EIO'],
  ['Invalid argument', 'EINVAL'],
  ['No such file or directory', 'ENOENT'],
  ['Not a directory', 'ENOTDIR'],
  ['Is a directory', 'EISDIR'],
  ['File too large', 'EFBIG'],
  ['Cannot allocate memory', 'ENOMEM'],
  ['No space left on device', 'ENOSPC'],
  ['Disk quota exceeded', 'EDQUOT'],
  ['Permission denied', 'EACCES'],
  ['Too many open files', 'EMFILE'],
  ['Read-only file system', 'EROFS'],
] as const

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : ''
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
