import { Buffer } from 'node:buffer'
import type { Disk, DiskFile, Logger } from '../env.ts'

const zeros = Buffer.alloc(1024 * 1024)
const suffix = '.tmp'

/** Makes zero-filled segment files, one ahead of need. */
export class SegmentFiles {
  readonly #disk: Disk
  readonly #directory: string
  readonly #log: Logger
  #made = 0
  #prepared: Promise<Prepared | undefined> | undefined

  constructor(disk: Disk, directory: string, log: Logger) {
    this.#disk = disk
    this.#directory = directory
    this.#log = log
  }

  /** Removes what an earlier process left unfinished. */
  async clean(): Promise<void> {
    for (const name of await this.#disk.list(this.#directory)) {
      if (name.endsWith(suffix)) await this.#disk.remove(`${this.#directory}/${name}`)
    }
  }

  /** Starts on the next file if none is there or on its way. A failure shows when the file is needed. */
  prepare(bytes: number): void {
    this.#prepared ??= this.#make(bytes).catch((error: unknown) => {
      this.#log.warn({ error }, 'cannot prepare the next log segment')
      return undefined
    })
  }

  /** Waits for a file being prepared, whatever becomes of it: close() leaves nothing running. */
  async settle(): Promise<void> {
    await this.#prepared
  }

  /**
   * A zero-filled file of at least `bytes`; the caller writes its first batch and renames it.
   * @throws DiskError when there is no space for it.
   */
  async take(bytes: number): Promise<Prepared> {
    const prepared = await this.#prepared
    this.#prepared = undefined
    if (prepared && prepared.bytes >= bytes) return prepared
    if (prepared) await this.#disk.remove(prepared.path)
    return this.#make(bytes)
  }

  async #make(bytes: number): Promise<Prepared> {
    const path = `${this.#directory}/${++this.#made}${suffix}`
    const file = await this.#disk.open(path, 'create')
    try {
      await zeroFill(file, 0, bytes)
    } catch (error) {
      await file.close()
      await this.#disk.remove(path)
      throw error
    }
    await file.close()
    return { path, bytes }
  }
}

export interface Prepared {
  readonly path: string
  readonly bytes: number
}

/** Synced piece by piece: one sync of 16 MiB would hold up everybody else's on the same disk. */
export async function zeroFill(file: DiskFile, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += zeros.length) {
    await file.write([zeros.subarray(0, Math.min(zeros.length, to - at))], at)
    await file.sync()
  }
}
