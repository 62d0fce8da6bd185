import { join } from 'node:path'
import { DiskError, type Disk } from '../../raft/index.ts'
import type { RowHead } from '../backend.ts'
import { StorageError } from '../errors.ts'
import type { Revision, Value } from '../store.ts'
import { ByteReader, ByteWriter } from './bytes.ts'
import { batchFilesMax, rowSliceBytes, rowSliceRows } from './limits.ts'
import type { Applied, Row, RowBatch, RowChange, RowMedia, RowMediaView } from './media.ts'
import { decodeRowKey, encodeRowKey } from './row-key.ts'
import { sealBytes, unsealBytes, type SealedFormat } from './sealed-file.ts'

const format: SealedFormat = { magic: 'TRRB', version: 1 }
const fileName = /^(base|batch)-(\d{12})$/

/**
 * All rows in memory, and each batch in a file of its own, synced only by makeDurable. After a crash of the Disk any
 * subset of the unsynced files may be gone or torn: holes that LevelDB's log does not have. Reopening replays what is
 * whole, in order, holes or not, from the newest whole base file (all rows at its time) on.
 */
export class FileMedia implements RowMedia {
  readonly #disk: Disk
  readonly #directory: string
  readonly #rows = new Map<string, Row>()
  #applied: Applied | undefined
  #nextNumber = 1
  /** Oldest first. */
  #files: BatchFile[] = []
  /** Names of files not synced yet. */
  #unsynced: string[] = []
  /**
   * Files of an earlier life, oldest first. A sync of them may have failed then and count as done now, so the next
   * makeDurable writes all rows anew; until then what a base had replaced stays.
   */
  #inherited: string[] = []

  private constructor(disk: Disk, directory: string) {
    this.#disk = disk
    this.#directory = directory
  }

  static async open(disk: Disk, directory: string): Promise<FileMedia> {
    const media = new FileMedia(disk, directory)
    await disk.makeDirectory(directory)
    for (const name of await disk.list(directory)) {
      const number = fileName.exec(name)?.[2]
      if (number !== undefined) media.#files.push({ name, number: Number(number) })
    }
    media.#files.sort((a, b) => a.number - b.number)
    await media.#recover()
    return media
  }

  async #recover(): Promise<void> {
    this.#nextNumber = (this.#files.at(-1)?.number ?? 0) + 1
    const whole: (BatchFile & { batch: RowBatch })[] = []
    for (const file of this.#files) {
      const batch = await readBatch(this.#disk, join(this.#directory, file.name))
      if (batch !== undefined) whole.push({ ...file, batch })
    }
    // What lies before a base is in it; replaying leftovers of it could bring removed rows back.
    const kept = whole.slice(
      Math.max(
        0,
        whole.findLastIndex((file) => file.name.startsWith('base')),
      ),
    )
    for (const { batch } of kept) this.#apply(batch)
    this.#inherited = this.#files.map((file) => file.name)
    this.#files = []
  }

  applied(): Promise<Applied | undefined> {
    return Promise.resolve(this.#applied)
  }

  async write(batch: RowBatch): Promise<void> {
    await this.#writeFile('batch', batch)
    this.#apply(batch)
  }

  get(head: RowHead): Value | undefined {
    return this.#rows.get(rowId(head))?.value
  }

  async *heads(): AsyncIterable<readonly RowHead[]> {
    const rows = this.#sorted()
    for (let from = 0; from < rows.length; from += rowSliceRows) {
      yield rows.slice(from, from + rowSliceRows).map((row) => row.head)
    }
  }

  async removeAbove(revision: Revision): Promise<void> {
    const changes: RowChange[] = []
    for (const { head } of this.#rows.values()) if (head.main > revision) changes.push({ type: 'remove', head })
    if (changes.length > 0 && this.#applied !== undefined) await this.write({ changes, applied: this.#applied })
  }

  async makeDurable(): Promise<void> {
    if (this.#inherited.length > 0 || this.#files.length > batchFilesMax) return this.#merge()
    for (const name of this.#unsynced) await syncFile(this.#disk, join(this.#directory, name))
    await this.#disk.syncDirectory(this.#directory)
    this.#unsynced = []
  }

  view(): RowMediaView {
    const rows = this.#sorted()
    return { rows: () => slices(rows), close: () => Promise.resolve() }
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  /** One file with everything; the old ones go only once it is durable. */
  async #merge(): Promise<void> {
    const applied = this.#applied
    if (applied === undefined) return
    const old = [...this.#inherited, ...this.#files.map((file) => file.name)]
    this.#files = []
    await this.#writeFile('base', { changes: this.#sorted().map((row) => ({ type: 'put', ...row })), applied })
    for (const { name } of this.#files) await syncFile(this.#disk, join(this.#directory, name))
    await this.#disk.syncDirectory(this.#directory)
    this.#unsynced = []
    for (const name of old) {
      await this.#disk.remove(join(this.#directory, name))
      // Each removal for itself, oldest first: an older file coming back must not outlive what it was followed by.
      await this.#disk.syncDirectory(this.#directory)
    }
    this.#inherited = []
  }

  async #writeFile(kind: 'base' | 'batch', batch: RowBatch): Promise<void> {
    const number = this.#nextNumber++
    const name = `${kind}-${String(number).padStart(12, '0')}`
    const file = await this.#disk.open(join(this.#directory, name), 'create')
    try {
      await file.write([sealBytes(format, encodeBatch(batch))], 0)
    } finally {
      await file.close()
    }
    this.#files.push({ name, number })
    this.#unsynced.push(name)
  }

  #apply(batch: RowBatch): void {
    for (const change of batch.changes) {
      if (change.type === 'put') this.#rows.set(rowId(change.head), { head: change.head, value: change.value })
      else this.#rows.delete(rowId(change.head))
    }
    this.#applied = batch.applied
  }

  #sorted(): Row[] {
    return [...this.#rows.values()].sort((a, b) => a.head.main - b.head.main || a.head.sub - b.head.sub)
  }
}

interface BatchFile {
  readonly name: string
  readonly number: number
}

async function* slices(rows: readonly Row[]): AsyncIterable<readonly Row[]> {
  let slice: Row[] = []
  let bytes = 0
  for (const row of rows) {
    slice.push(row)
    bytes += row.value.length
    if (slice.length < rowSliceRows && bytes < rowSliceBytes) continue
    yield slice
    slice = []
    bytes = 0
  }
  if (slice.length > 0) yield slice
}

function rowId(head: RowHead): string {
  return `${head.main}.${head.sub}`
}

async function syncFile(disk: Disk, path: string): Promise<void> {
  const file = await disk.open(path, 'readWrite')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Undefined when torn: its makeDurable never finished. */
async function readBatch(disk: Disk, path: string): Promise<RowBatch | undefined> {
  try {
    return decodeBatch(unsealBytes(format, await disk.readFile(path), path), path)
  } catch (error) {
    if (error instanceof StorageError && error.code === 'ERR_CORRUPT') return undefined
    if (error instanceof DiskError && error.code === 'ENOENT') return undefined
    throw error
  }
}

// Batch: index u64 | term u64 | { type u8 (1 put, 2 remove) | key length u32 | row key [| value length u32 | value] }*
function encodeBatch(batch: RowBatch): Buffer {
  const writer = new ByteWriter(1024).u64(batch.applied.index).u64(batch.applied.term)
  for (const change of batch.changes) {
    const key = encodeRowKey(change.head)
    writer
      .u8(change.type === 'put' ? 1 : 2)
      .u32(key.length)
      .bytes(key)
    if (change.type === 'put') writer.u32(change.value.length).bytes(change.value)
  }
  return writer.finish()
}

function decodeBatch(bytes: Uint8Array, what: string): RowBatch {
  const reader = new ByteReader(bytes, what)
  const applied = { index: reader.u64(), term: reader.u64() }
  const changes: RowChange[] = []
  while (reader.remaining > 0) {
    const put = reader.u8() === 1
    const head = decodeRowKey(reader.bytes(reader.u32()))
    changes.push(put ? { type: 'put', head, value: reader.bytes(reader.u32()) } : { type: 'remove', head })
  }
  return { applied, changes }
}
