import { join } from 'node:path'
import type { Disk } from '../raft/index.ts'
import { ByteReader, ByteWriter } from './backend/bytes.ts'
import { readSealedFile, writeSealedFile, type SealedFormat } from './backend/sealed-file.ts'

const format: SealedFormat = { magic: 'TRCU', version: 1 }
const stateName = /^state-(\d{6,})$/

/**
 * One replica's directory: `wal/`, state directories `state-NNNNNN/` and `CURRENT`, which names the one in force. A
 * snapshot is built in a new state directory; writing CURRENT puts it in force, whole or not at all.
 */
export class ReplicaDirectory {
  readonly path: string
  readonly #disk: Disk
  #current: number
  #newest: number

  private constructor(disk: Disk, path: string, current: number) {
    this.#disk = disk
    this.path = path
    this.#current = current
    this.#newest = current
  }

  /** A fresh directory, its first state in force. Durable, but for its own entry in the directory above. */
  static async create(disk: Disk, path: string): Promise<ReplicaDirectory> {
    await disk.makeDirectory(path)
    const directory = new ReplicaDirectory(disk, path, 1)
    await disk.makeDirectory(directory.state)
    await directory.activate(1)
    return directory
  }

  /**
   * Undefined when the replica is gone: nothing says which state is in force.
   *
   * @throws StorageError ERR_CORRUPT, ERR_FORMAT
   */
  static async open(disk: Disk, path: string): Promise<ReplicaDirectory | undefined> {
    const payload = await readSealedFile(disk, join(path, 'CURRENT'), format)
    if (payload === undefined) return undefined
    const reader = new ByteReader(payload, join(path, 'CURRENT'))
    const current = reader.u32()
    reader.end()
    return new ReplicaDirectory(disk, path, current)
  }

  get wal(): string {
    return join(this.path, 'wal')
  }

  /** The state directory in force. */
  get state(): string {
    return this.statePath(this.#current)
  }

  statePath(number: number): string {
    return join(this.path, `state-${String(number).padStart(6, '0')}`)
  }

  /** An empty directory for a state that is not in force yet. */
  async createState(): Promise<number> {
    const number = ++this.#newest
    await this.#disk.removeTree(this.statePath(number))
    await this.#disk.makeDirectory(this.statePath(number))
    return number
  }

  /** Durable when it resolves; a crash before leaves the old state in force. What lies in the new one is durable. */
  async activate(number: number): Promise<void> {
    await this.#disk.syncDirectory(this.path)
    await writeSealedFile(this.#disk, join(this.path, 'CURRENT'), format, new ByteWriter(4).u32(number).finish())
    this.#current = number
  }

  async removeState(number: number): Promise<void> {
    await this.#disk.removeTree(this.statePath(number))
  }

  /** Leftovers of a crash: states that are not in force. */
  async removeOthers(): Promise<void> {
    for (const name of await this.#disk.list(this.path)) {
      const number = stateName.exec(name)?.[1]
      if (number !== undefined && Number(number) !== this.#current) await this.removeState(Number(number))
    }
  }

  get current(): number {
    return this.#current
  }
}
