import { Buffer } from 'node:buffer'
import { randomFillSync } from 'node:crypto'
import * as fs from 'node:fs'
import { promises as files } from 'node:fs'
import { dirname } from 'node:path'
import { performance } from 'node:perf_hooks'
import { DiskError } from './env.ts'
import type { Disk, DiskFile, Env, Logger, Timer } from './env.ts'

/** The real clock, randomness, timers and file system. One of the few files that may touch them. */
export function createNodeEnv(options: { readonly log: Logger }): Env {
  return {
    clock: { monotonicMs: () => performance.now(), wallMs: () => Date.now() },
    random: { float: () => Math.random(), bytes: pooledRandomBytes() },
    scheduler: {
      after: (delayMs, run) => timerOf(setTimeout(run, delayMs), clearTimeout),
      every: (periodMs, run) => timerOf(setInterval(run, periodMs), clearInterval),
      soon: (run) => void setImmediate(run),
    },
    disk: createNodeDisk(),
    log: options.log,
  }
}

/** Bytes drawn at a time: every request takes sixteen or two times that, and a draw costs the same for one as for all. */
const randomPoolBytes = 4096

/** Cryptographic; no byte is given out twice, or kept. */
function pooledRandomBytes(): (length: number) => Uint8Array {
  const pool = Buffer.allocUnsafeSlow(randomPoolBytes)
  let used = pool.length
  return (length) => {
    if (length > pool.length) return randomFillSync(Buffer.allocUnsafeSlow(length))
    if (used + length > pool.length) {
      randomFillSync(pool)
      used = 0
    }
    const taken = Uint8Array.from(pool.subarray(used, used + length))
    pool.fill(0, used, used + length)
    used += length
    return taken
  }
}

function timerOf(handle: NodeJS.Timeout, clear: (handle: NodeJS.Timeout) => void): Timer {
  handle.unref()
  return { cancel: () => clear(handle) }
}

/** Linux only: elsewhere O_DSYNC is missing or does not reach the platter, and write + fdatasync is used. */
const durableFlag = process.platform === 'linux' ? fs.constants.O_DSYNC : 0

export function createNodeDisk(): Disk {
  return {
    async open(path, mode) {
      const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL } = fs.constants
      const flags = {
        read: O_RDONLY,
        readWrite: O_RDWR,
        durable: O_RDWR | durableFlag,
        create: O_RDWR | O_CREAT | O_EXCL,
      }[mode]
      const descriptor = await call<number>(path, (done) => fs.open(path, flags, 0o600, done))
      return new NodeFile(path, descriptor, mode === 'durable' && durableFlag === 0)
    },
    async readFile(path) {
      // In one piece: the promise twin reads half a megabyte at a time, each through the thread pool.
      const descriptor = await call<number>(path, (done) => fs.open(path, fs.constants.O_RDONLY, done))
      const file = new NodeFile(path, descriptor, false)
      try {
        const bytes = Buffer.allocUnsafeSlow(await file.size())
        return bytes.subarray(0, await file.read(bytes, 0))
      } finally {
        await file.close()
      }
    },
    async list(path) {
      const names = await mapped(path, files.readdir(path))
      return names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    },
    async makeDirectory(path) {
      await mapped(path, makeDirectories(path))
    },
    rename: (from, to) => mapped(from, files.rename(from, to)),
    remove: (path) => mapped(path, files.unlink(path)),
    removeTree: (path) => mapped(path, files.rm(path, { recursive: true, force: true })),
    async syncDirectory(path) {
      // Windows cannot open a directory for syncing and makes renames durable by its own journal.
      if (process.platform === 'win32') return
      const descriptor = await call<number>(path, (done) => fs.open(path, fs.constants.O_RDONLY, done))
      try {
        await call<void>(path, (done) => fs.fsync(descriptor, done))
      } finally {
        await call<void>(path, (done) => fs.close(descriptor, done))
      }
    },
    async exists(path) {
      try {
        await mapped(path, files.stat(path))
        return true
      } catch (error) {
        if (error instanceof DiskError && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return false
        throw error
      }
    },
  }
}

class NodeFile implements DiskFile {
  readonly #path: string
  readonly #descriptor: number
  readonly #syncAfterWrite: boolean

  constructor(path: string, descriptor: number, syncAfterWrite: boolean) {
    this.#path = path
    this.#descriptor = descriptor
    this.#syncAfterWrite = syncAfterWrite
  }

  async read(buffer: Uint8Array, position: number): Promise<number> {
    let filled = 0
    while (filled < buffer.length) {
      const count = await call<number>(this.#path, (done) =>
        fs.read(this.#descriptor, buffer, filled, buffer.length - filled, position + filled, done),
      )
      if (count === 0) break
      filled += count
    }
    return filled
  }

  async write(chunks: readonly Uint8Array[], position: number): Promise<void> {
    let rest: readonly Uint8Array[] = chunks
    let at = position
    while (rest.length > 0) {
      const first = rest[0]
      if (first === undefined) break
      // One hop through the thread pool each; writev refuses more than IOV_MAX (1,024) chunks.
      const part = rest.slice(0, 1024)
      const count = await call<number>(this.#path, (done) =>
        part.length === 1
          ? fs.write(this.#descriptor, first, 0, first.length, at, done)
          : fs.writev(this.#descriptor, part, at, done),
      )
      at += count
      rest = behind(rest, count)
    }
    if (this.#syncAfterWrite) await this.sync()
  }

  sync(): Promise<void> {
    return call(this.#path, (done) => fs.fdatasync(this.#descriptor, done))
  }

  truncate(size: number): Promise<void> {
    return call(this.#path, (done) => fs.ftruncate(this.#descriptor, size, done))
  }

  async size(): Promise<number> {
    const stats = await call<fs.Stats>(this.#path, (done) => fs.fstat(this.#descriptor, done))
    return stats.size
  }

  close(): Promise<void> {
    return call(this.#path, (done) => fs.close(this.#descriptor, done))
  }
}

/** What is left of `chunks` after `count` bytes: a short write goes on from there. */
function behind(chunks: readonly Uint8Array[], count: number): readonly Uint8Array[] {
  let left = count
  for (let i = 0; i < chunks.length; i++) {
    const chunk = chunks[i]
    if (chunk === undefined) break
    if (left < chunk.length) return left === 0 ? chunks.slice(i) : [chunk.subarray(left), ...chunks.slice(i + 1)]
    left -= chunk.length
  }
  return []
}

type Callback<T> = (error: NodeJS.ErrnoException | null, value?: T) => void

/** The callback functions of node:fs cost a third less per call than their promise twins; the log's write path counts. */
function call<T>(path: string, start: (done: Callback<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => (error ? reject(diskError(path, error)) : resolve(value as T)))
  })
}

/** Not mkdir's own `recursive`: below /proc, where nothing can be made and nothing says so, that never ends. */
async function makeDirectories(path: string): Promise<void> {
  const make = (): Promise<'made' | 'there' | 'no parent'> =>
    files.mkdir(path, { mode: 0o700 }).then(
      () => 'made',
      async (error: unknown) => {
        const code = error instanceof Error && 'code' in error ? error.code : undefined
        if (code === 'EEXIST' && (await files.stat(path)).isDirectory()) return 'there'
        if (code === 'ENOENT' && dirname(path) !== path) return 'no parent'
        throw error
      },
    )
  if ((await make()) !== 'no parent') return
  await makeDirectories(dirname(path))
  if ((await make()) === 'no parent') {
    throw Object.assign(new Error(`ENOENT: no directory can be made at ${path}`), { code: 'ENOENT' })
  }
}

async function mapped<T>(path: string, result: Promise<T>): Promise<T> {
  try {
    return await result
  } catch (error) {
    throw diskError(path, error)
  }
}

function diskError(path: string, cause: unknown): DiskError {
  const code = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : 'EIO'
  return new DiskError(code, path, { cause })
}
