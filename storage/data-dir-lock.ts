import { join } from 'node:path'
import { DiskError, type Disk, type Random } from '../raft/index.ts'
import { StorageError } from './errors.ts'

/** What the lock asks of the operating system; data-dir-node.ts is the real one. */
export interface ProcessTable {
  readonly ownPid: number
  /**
   * Tells a process from a later one with the same pid; undefined when there is no such process. Letters, digits and
   * dashes without '.'.
   */
  startOf(pid: number): Promise<string | undefined>
}

const claimName = /^LOCK\.(\d+)\.([\w-]+)\.[0-9a-f]{8}$/

/**
 * The right to a data directory: a file `LOCK.<pid>.<start of the process>.<nonce>`. A claim whose process is gone is
 * stale and removed. Who has made a claim looks again before it counts: of two who come at the same time at least one
 * sees the other and steps back, and a refused one has changed nothing.
 */
export class DataDirLock {
  readonly #disk: Disk
  readonly #path: string

  private constructor(disk: Disk, path: string) {
    this.#disk = disk
    this.#path = path
  }

  /** @throws StorageError ERR_DATA_DIR naming the process that has the directory. */
  static async acquire(options: {
    readonly disk: Disk
    readonly random: Random
    readonly processes: ProcessTable
    readonly directory: string
  }): Promise<DataDirLock> {
    const { disk, processes, directory } = options
    await assertUnused(options, undefined)
    await disk.makeDirectory(directory)
    const start = (await processes.startOf(processes.ownPid)) ?? 'unknown'
    const nonce = Buffer.from(options.random.bytes(4)).toString('hex')
    const name = `LOCK.${processes.ownPid}.${start}.${nonce}`
    const file = await disk.open(join(directory, name), 'create')
    await file.close()
    const lock = new DataDirLock(disk, join(directory, name))
    try {
      const stale = await assertUnused(options, name)
      for (const claim of stale) await disk.removeTree(join(directory, claim))
    } catch (error) {
      await lock.release()
      throw error
    }
    return lock
  }

  async release(): Promise<void> {
    await this.#disk.removeTree(this.#path)
  }
}

/** Looks without changing anything. @throws StorageError ERR_DATA_DIR */
export async function assertDataDirUnused(options: {
  readonly disk: Disk
  readonly processes: ProcessTable
  readonly directory: string
}): Promise<void> {
  await assertUnused(options, undefined)
}

/** @returns names of stale claims. */
async function assertUnused(
  options: { readonly disk: Disk; readonly processes: ProcessTable; readonly directory: string },
  own: string | undefined,
): Promise<readonly string[]> {
  const stale: string[] = []
  for (const name of await listOrNothing(options.disk, options.directory)) {
    const claim = claimName.exec(name)
    if (claim === null || name === own) continue
    const pid = Number(claim[1])
    const start = await options.processes.startOf(pid)
    if (start === undefined || start !== claim[2]) {
      stale.push(name)
      continue
    }
    throw new StorageError(
      'ERR_DATA_DIR',
      `${options.directory} is in use by process ${pid}: stop that one, or choose another directory` +
        ` (if process ${pid} is none of ours, remove ${name})`,
    )
  }
  return stale
}

async function listOrNothing(disk: Disk, directory: string): Promise<readonly string[]> {
  try {
    return await disk.list(directory)
  } catch (error) {
    if (error instanceof DiskError && error.code === 'ENOENT') return []
    throw error
  }
}
