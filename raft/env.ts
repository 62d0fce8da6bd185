/**
 * Everything a replica takes from the outside world. Code outside the named adapters (`raft/env-node.ts`,
 * the simulator) uses no clock, randomness, timer or file system of its own: with one seed behind an Env a
 * whole cluster replays bit for bit. `test/tidy.test.ts` enforces it.
 */
export interface Env {
  readonly clock: Clock
  readonly random: Random
  readonly scheduler: Scheduler
  readonly disk: Disk
  readonly log: Logger
}

export interface Clock {
  /** Milliseconds, fractional, never goes back; the origin is arbitrary. For intervals and deadlines. */
  monotonicMs(): number
  /** Milliseconds since 1970-01-01 UTC; may jump. Only for timestamps that people read. */
  wallMs(): number
}

export interface Random {
  /** Uniform in [0, 1). */
  float(): number
  /** `length` uniform bytes; from a cryptographic source outside simulation (uids, ids, tokens). */
  bytes(length: number): Uint8Array
}

export interface Timer {
  cancel(): void
}

export interface Scheduler {
  /** Runs once, `delayMs` >= 0 from now. A pending timer never keeps the process alive. */
  after(delayMs: number, run: () => void): Timer
  /** Runs every `periodMs`; a late run is run once, missed ones are not made up. Never keeps the process alive. */
  every(periodMs: number, run: () => void): Timer
  /** Runs in the next turn of the event loop, after I/O callbacks: the place to yield in a long loop. */
  soon(run: () => void): void
}

/** Rejects only with DiskError, whose `code` is the system's (`ENOENT`, `ENOSPC`, `EIO`, …). */
export interface Disk {
  /**
   * Opens for reading and writing; `create` makes the file and fails with EEXIST when it is there. `durable` opens an
   * existing file whose write() resolves only once the bytes are on stable storage: write and sync in one system call.
   */
  open(path: string, mode: 'read' | 'readWrite' | 'durable' | 'create'): Promise<DiskFile>
  readFile(path: string): Promise<Uint8Array>
  /** Names of the entries, in byte order. */
  list(path: string): Promise<readonly string[]>
  /** Recursive; an existing directory is fine. */
  makeDirectory(path: string): Promise<void>
  /** Replaces `to` if it exists. Durable only after syncDirectory of both parents. */
  rename(from: string, to: string): Promise<void>
  remove(path: string): Promise<void>
  /** Removes a file or a whole tree; a missing one is fine. */
  removeTree(path: string): Promise<void>
  /** fsync of the directory itself: makes creations, renames and removals inside it durable. */
  syncDirectory(path: string): Promise<void>
  exists(path: string): Promise<boolean>
}

export interface DiskFile {
  /** Fills `buffer` from `position`; returns how many bytes were there (fewer only at the end of the file). */
  read(buffer: Uint8Array, position: number): Promise<number>
  /** Writes all chunks one behind the other from `position`. Not durable before sync, unless opened `durable`. */
  write(chunks: readonly Uint8Array[], position: number): Promise<void>
  /** fdatasync. An error means: what was written since the last sync may be lost. Never retry (fsyncgate). */
  sync(): Promise<void>
  truncate(size: number): Promise<void>
  size(): Promise<number>
  close(): Promise<void>
}

export class DiskError extends Error {
  readonly code: string
  readonly path: string
  constructor(code: string, path: string, options?: { cause?: unknown; message?: string }) {
    super(options?.message ?? `${code}: ${path}`, { cause: options?.cause })
    this.name = 'DiskError'
    this.code = code
    this.path = path
  }
}

/** The part of pino's interface that this project uses. Fields first, message second; never secrets. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  child(fields: object): Logger
}

export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
}
