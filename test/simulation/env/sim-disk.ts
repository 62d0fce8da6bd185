import { DiskError } from '../../../raft/env.ts'
import type { Disk, DiskFile } from '../../../raft/env.ts'
import type { SeededRandom } from './random.ts'
import { SimFile } from './sim-file.ts'
import type { Simulation } from './simulation.ts'

type DiskOperation = 'open' | 'read' | 'write' | 'sync' | 'truncate' | 'directory'

/** A change of names, durable once every directory it touches has been synced after it. */
interface NameChange {
  readonly unsynced: Set<string>
  readonly apply: (names: Map<string, SimFile>) => void
}

type Call = <T>(
  operation: DiskOperation,
  path: string,
  work: () => T,
  late?: () => void,
  failing?: () => void,
) => Promise<T>

export interface DiskFault {
  readonly operation: DiskOperation
  readonly code: string
  readonly path?: RegExp
  /** How often; default for ever. */
  times?: number
  /** So many calls that match go well before. */
  after?: number
}

/** True if one of a disk's `faults` is behind the error. */
export function isInjected(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof DiskError && cause.message.startsWith('injected ')) return true
  }
  return false
}

/**
 * A disk whose crash is worse than a real one's: of what was not synced each 512-byte sector, file size and change of
 * names survives or not by its own toss. Names written to a directory last only after syncDirectory.
 * Directories themselves are durable at once, and hold nothing but the names in their files' paths.
 */
export class SimDisk {
  readonly #simulation: Simulation
  readonly #random: SeededRandom
  readonly #name: string
  #names = new Map<string, SimFile>()
  #durableNames = new Map<string, SimFile>()
  readonly #directories = new Set<string>(['/', '.'])
  #changes: NameChange[] = []
  #boot = 0
  readonly faults: DiskFault[] = []
  /** Bytes that files may hold together; growing beyond it is ENOSPC, writing inside a file is not. */
  capacityBytes = Number.POSITIVE_INFINITY
  /** Longest time of one call; each takes a random part of it. */
  latencyMsMax = 1
  /** Calls that change something, over all boots: the crash points of a sweep. */
  changeCount = 0
  /** When changeCount gets here, the change takes place (unsynced) and instead of an answer `onCrashPoint` is called. */
  crashAtChange = Number.POSITIVE_INFINITY
  onCrashPoint: () => void = () => undefined

  constructor(simulation: Simulation, random: SeededRandom, name: string) {
    this.#simulation = simulation
    this.#random = random
    this.#name = name
  }

  get usedBytes(): number {
    let bytes = 0
    for (const file of this.#names.values()) bytes += file.size
    return bytes
  }

  /** Tests: look at or damage a file. */
  file(path: string): SimFile | undefined {
    return this.#names.get(path)
  }

  paths(): string[] {
    return [...this.#names.keys()].sort()
  }

  /** As if a person or a bad medium had taken a whole tree, for good. No process runs on the disk meanwhile. */
  lose(path: string): void {
    const lost = (name: string): boolean => name === path || name.startsWith(`${path}/`)
    for (const change of this.#changes) change.apply(this.#durableNames)
    this.#changes = []
    for (const names of [this.#names, this.#durableNames]) {
      for (const name of names.keys()) if (lost(name)) names.delete(name)
    }
    for (const directory of this.#directories) if (lost(directory)) this.#directories.delete(directory)
  }

  /** Calls under way never return; nothing is lost. */
  detach(): void {
    this.#boot++
  }

  crash(): void {
    this.detach()
    const chance = () => this.#random.chance(0.5)
    for (const change of this.#changes) if (chance()) change.apply(this.#durableNames)
    this.#changes = []
    this.#names = new Map(this.#durableNames)
    for (const path of this.paths()) this.#names.get(path)?.crash(chance)
  }

  boot(): Disk {
    const boot = ++this.#boot
    /** Does it now, answers later, unless the machine has crashed by then. */
    const call: Call = <T>(
      operation: DiskOperation,
      path: string,
      work: () => T,
      late?: () => void,
      failing?: () => void,
    ): Promise<T> =>
      new Promise((resolve, reject) => {
        if (this.#boot !== boot) return
        const fault = this.#fault(operation, path)
        const changes = operation !== 'open' && operation !== 'read'
        let answer: () => void
        try {
          if (fault) {
            failing?.()
            throw new DiskError(fault.code, path, { message: `injected ${fault.code}: ${path}` })
          }
          const value = work()
          answer = () => {
            late?.()
            resolve(value)
          }
        } catch (error) {
          answer = () => reject(error)
        }
        if (changes && ++this.changeCount === this.crashAtChange) {
          this.#simulation.after(0, () => this.onCrashPoint())
          return
        }
        this.#simulation.trace(`${this.#name} ${operation} ${path}`)
        this.#simulation.after(this.#random.float() * this.latencyMsMax, () => {
          if (this.#boot === boot) answer()
        })
      })
    return {
      open: (path, mode) =>
        call(mode === 'create' ? 'directory' : 'open', path, () => {
          if (mode === 'create') this.#create(path)
          return this.#handle(path, this.#find(path), mode === 'durable', call)
        }),
      readFile: (path) => call('read', path, () => this.#find(path).contents()),
      list: (path) => call('read', path, () => this.#list(path)),
      makeDirectory: (path) =>
        call('directory', path, () => {
          const parts = path.split('/')
          for (let i = 1; i <= parts.length; i++) this.#directories.add(parts.slice(0, i).join('/') || '/')
        }),
      rename: (from, to) =>
        call('directory', from, () => {
          if (!this.#directories.has(from)) this.#find(from)
          this.#rename(from, to)
        }),
      remove: (path) =>
        call('directory', path, () => {
          this.#remove([path], path)
        }),
      removeTree: (path) => call('directory', path, () => this.#removeTree(path)),
      syncDirectory: (path) => {
        let begun: readonly NameChange[] = []
        return call(
          'sync',
          path,
          () => {
            begun = this.#changes.slice()
          },
          () => this.#syncDirectory(path, begun),
        )
      },
      exists: (path) => call('read', path, () => this.#names.has(path) || this.#directories.has(path)),
    }
  }

  #fault(operation: DiskOperation, path: string): DiskFault | undefined {
    const fault = this.faults.find(
      (it) => it.operation === operation && it.times !== 0 && (it.path?.test(path) ?? true),
    )
    if (fault?.after !== undefined && fault.after > 0) {
      fault.after--
      return undefined
    }
    if (fault?.times !== undefined) fault.times--
    return fault
  }

  #find(path: string): SimFile {
    const file = this.#names.get(path)
    if (!file) throw new DiskError('ENOENT', path)
    return file
  }

  #create(path: string): void {
    if (this.#names.has(path)) throw new DiskError('EEXIST', path)
    if (!this.#directories.has(parentOf(path))) throw new DiskError('ENOENT', path)
    const file = new SimFile()
    this.#change([path], (names) => names.set(path, file))
  }

  #change(paths: readonly string[], apply: (names: Map<string, SimFile>) => void): void {
    apply(this.#names)
    this.#changes.push({ unsynced: new Set(paths.map(parentOf)), apply })
  }

  /**
   * A directory moves with everything in it. What moves is the file, not whatever has its name when this becomes durable:
   * changes of one directory may be lost one by one, an older file under the same name included.
   */
  #rename(from: string, to: string): void {
    const inside = [...this.#directories].filter((it) => it === from || it.startsWith(`${from}/`))
    for (const directory of inside) {
      this.#directories.delete(directory)
      this.#directories.add(to + directory.slice(from.length))
    }
    const moves = this.paths()
      .filter((path) => path === from || path.startsWith(`${from}/`))
      .map((path) => ({ path, file: this.#find(path) }))
    this.#change([from, to], (names) => {
      for (const { path, file } of moves) {
        if (names.get(path) === file) names.delete(path)
        names.set(to + path.slice(from.length), file)
      }
    })
  }

  #removeTree(path: string): void {
    this.#remove(
      this.paths().filter((it) => it === path || it.startsWith(`${path}/`)),
      path,
    )
    for (const directory of this.#directories) {
      if (directory === path || directory.startsWith(`${path}/`)) this.#directories.delete(directory)
    }
  }

  /** `top` is the entry that goes. A new file that has the name by the time this becomes durable is another one. */
  #remove(paths: readonly string[], top: string): void {
    const gone = paths.map((path) => ({ path, file: this.#find(path) }))
    this.#change([top], (names) => {
      for (const { path, file } of gone) if (names.get(path) === file) names.delete(path)
    })
  }

  #list(path: string): string[] {
    if (!this.#directories.has(path)) throw new DiskError('ENOENT', path)
    const inside = [...this.#names.keys(), ...this.#directories].filter((it) => it.startsWith(`${path}/`))
    return [...new Set(inside.map((it) => it.slice(path.length + 1).split('/')[0] ?? ''))].sort()
  }

  #syncDirectory(path: string, begun: readonly NameChange[]): void {
    for (const change of begun) change.unsynced.delete(path)
    // In order, so that what was done later to a name stays later.
    this.#changes = this.#changes.filter((change) => {
      if (change.unsynced.size > 0) return true
      change.apply(this.#durableNames)
      return false
    })
  }

  #handle(path: string, file: SimFile, durable: boolean, call: Call): DiskFile {
    const sync = async (): Promise<void> => {
      let done = () => {}
      await call(
        'sync',
        path,
        () => {
          done = file.beginSync()
        },
        () => done(),
        () => file.failSync(),
      )
    }
    return {
      read: (buffer, position) => call('read', path, () => file.read(buffer, position)),
      write: async (chunks, position) => {
        const bytes = Buffer.concat(chunks)
        const work = () => {
          const growth = Math.max(0, position + bytes.length - file.size)
          if (growth > 0 && this.usedBytes + growth > this.capacityBytes) throw new DiskError('ENOSPC', path)
          file.write(bytes, position)
        }
        // A write that fails has written some of it.
        const failing = () => {
          const written = this.#random.between(0, bytes.length)
          if (written > 0) file.write(bytes.subarray(0, written), position)
        }
        await call('write', path, work, undefined, failing)
        if (durable) await sync()
      },
      sync,
      truncate: (size) => call('truncate', path, () => file.truncate(size)),
      size: () => call('read', path, () => file.size),
      close: () => call('read', path, () => undefined),
    }
  }
}

function parentOf(path: string): string {
  const at = path.lastIndexOf('/')
  return at === -1 ? '.' : path.slice(0, at) || '/'
}
