import assert from 'node:assert'
import type { Env, Timer } from '../../raft/index.ts'
import type { BackendView, RowHead, StateRecord } from '../backend.ts'
import { readCheckpoint, writeCheckpoint, type Checkpoint } from '../checkpoint.ts'
import { StorageError } from '../errors.ts'
import type { Value } from '../store.ts'
import { flushBytesMax, flushDelayMs } from './limits.ts'
import type { Applied, Row, RowMedia, RowMediaView } from './media.ts'
import { PendingRows } from './pending-rows.ts'
import type { ReplicaBackend } from './replica-backend.ts'

/**
 * A Backend over any RowMedia: gathers commits into batches written one behind the other, serves reads of what is not
 * written yet, and keeps the CHECKPOINT file beside the rows.
 *
 * Invariant: rows at or below the checkpoint's revision, and only those, are believed after a restart. A media may have
 * lost any later batch, in any order (google/leveldb#193).
 */
export class BufferedBackend implements ReplicaBackend {
  readonly #env: Env
  readonly #directory: string
  readonly #media: RowMedia
  readonly #pending = new PendingRows()
  /** Media calls run one at a time, in this order. Never rejects. */
  #tail: Promise<unknown> = Promise.resolve()
  #timer: Timer | undefined
  /**
   * Tombstones to remove, each waiting for the next checkpoint. Batches may be lost in any order: were a tombstone gone
   * and the put under it back, a deleted key would live again. So the put's removal is made durable first.
   */
  #tombstones: RowHead[] = []
  #committed: Applied
  /** Of the newest sealed batch. */
  #written: Applied
  #checkpointed: Checkpoint | undefined
  #checkpointing = false
  #broken: Error | undefined
  #onBroken: (error: Error) => void = ignore
  #closing: Promise<void> | undefined

  private constructor(env: Env, directory: string, media: RowMedia, checkpointed: Checkpoint | undefined) {
    this.#env = env
    this.#directory = directory
    this.#media = media
    this.#checkpointed = checkpointed
    this.#committed = { index: checkpointed?.index ?? 0, term: checkpointed?.term ?? 0 }
    this.#written = this.#committed
  }

  /**
   * Rows above the checkpoint are removed: the log brings them again.
   *
   * @throws StorageError ERR_CORRUPT when the CHECKPOINT file or the rows under it are damaged, ERR_FORMAT when either
   *   is of a newer version.
   */
  static async open(options: {
    readonly env: Env
    readonly directory: string
    readonly openMedia: () => Promise<RowMedia>
  }): Promise<BufferedBackend> {
    const { env, directory } = options
    // The checkpoint first: a directory of a newer format must not be touched by opening the media.
    const checkpointed = await readCheckpoint(env.disk, directory)
    const media = await options.openMedia()
    try {
      const applied = await media.applied()
      if (checkpointed !== undefined && (applied?.index ?? 0) < checkpointed.index) {
        throw new StorageError(
          'ERR_CORRUPT',
          `${directory}: rows reach index ${applied?.index ?? 0}, but the checkpoint at ${checkpointed.index} had made them durable`,
        )
      }
      await media.removeAbove(checkpointed?.revision ?? 0)
      return new BufferedBackend(env, directory, media, checkpointed)
    } catch (error) {
      await media.close()
      throw error
    }
  }

  get checkpointed(): Checkpoint | undefined {
    return this.#checkpointed
  }

  get broken(): Error | undefined {
    return this.#broken
  }

  onBroken(listener: (error: Error) => void): void {
    this.#onBroken = listener
    if (this.#broken !== undefined) listener(this.#broken)
  }

  get pendingBytes(): number {
    return this.#pending.pendingBytes
  }

  put(head: RowHead, value: Value): void {
    this.#usable()
    this.#pending.put(head, value)
  }

  remove(head: RowHead): void {
    this.#usable()
    // Physical compaction must leave what a restart at the checkpoint still reads.
    const limit = this.#checkpointed?.compactRevision ?? 0
    assert(head.main <= limit, `remove of a row at revision ${head.main}, checkpoint holds compact revision ${limit}`)
    if (head.tombstone) this.#tombstones.push(head)
    else this.#removeSoon(head)
  }

  #removeSoon(head: RowHead): void {
    this.#pending.remove(head)
    this.#writeSoon()
  }

  commit(applied: Applied): void {
    this.#usable()
    const { index, term } = this.#committed
    assert(applied.index >= index && applied.term >= term, `applied goes from ${index} back to ${applied.index}`)
    this.#committed = { index: applied.index, term: applied.term }
    this.#pending.commit()
    this.#writeSoon()
  }

  #writeSoon(): void {
    if (this.#pending.gatheredBytes >= flushBytesMax && !this.#pending.dirty) this.#write()
    else this.#timer ??= this.#env.scheduler.after(flushDelayMs, () => this.#write())
  }

  value(head: RowHead): Value {
    if (this.#broken !== undefined) throw this.#broken
    try {
      const value = this.#pending.value(head) ?? this.#media.get(head)
      if (value !== undefined) return value
    } catch (error) {
      throw this.#break(error)
    }
    throw this.#break(new StorageError('ERR_CORRUPT', `${this.#directory}: row ${head.main}.${head.sub} is missing`))
  }

  heads(): AsyncIterable<readonly RowHead[]> {
    return this.#heads()
  }

  async *#heads(): AsyncIterable<readonly RowHead[]> {
    await this.flush()
    yield* this.#media.heads()
  }

  async flush(): Promise<void> {
    this.#usable()
    this.#write()
    await this.#run(() => undefined)
  }

  async checkpoint(state: StateRecord): Promise<Applied> {
    this.#usable()
    assert(!this.#checkpointing, 'two checkpoints at a time')
    assert(!this.#pending.dirty, 'checkpoint between put and commit')
    const checkpoint: Checkpoint = { ...state, ...this.#committed }
    // Equal index, equal state: apply is the only mutator.
    if (this.#checkpointed?.index === checkpoint.index) return this.#committed
    this.#checkpointing = true
    const tombstones = this.#tombstones
    this.#tombstones = []
    try {
      this.#write()
      await this.#run(async () => {
        await this.#media.makeDurable()
        await writeCheckpoint(this.#env.disk, this.#directory, checkpoint)
        this.#checkpointed = checkpoint
      })
      for (const head of tombstones) this.#removeSoon(head)
      return { index: checkpoint.index, term: checkpoint.term }
    } finally {
      this.#checkpointing = false
    }
  }

  async openView(state: StateRecord): Promise<BackendView> {
    this.#usable()
    assert(!this.#pending.dirty, 'view between put and commit')
    const held = { ...state, ...this.#committed }
    this.#write()
    // In line with the batches: nothing committed later is written before the view is taken.
    const view = await this.#run(() => this.#media.view())
    return { state: held, rows: () => this.#guardRows(view), close: () => view.close() }
  }

  async *#guardRows(view: RowMediaView): AsyncIterable<readonly Row[]> {
    try {
      yield* view.rows()
    } catch (error) {
      throw this.#break(error)
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    if (this.#broken === undefined && !this.#pending.dirty) this.#write()
    this.#timer?.cancel()
    this.#timer = undefined
    await this.#tail
    await this.#media.close()
  }

  #write(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#broken !== undefined) return
    const batch = this.#pending.seal(this.#committed)
    if (batch.changes.length === 0 && this.#written === this.#committed) return
    this.#written = this.#committed
    // A failure is kept in #broken and met by the next call of the owner.
    void this.#run(async () => {
      await this.#media.write(batch)
      this.#pending.written(batch)
    }).catch((error: unknown) =>
      this.#env.log.error({ directory: this.#directory, error }, 'row batch was not written'),
    )
  }

  #run<T>(call: () => T | Promise<T>): Promise<T> {
    const result = this.#tail.then(async () => {
      if (this.#broken !== undefined) throw this.#broken
      try {
        return await call()
      } catch (error) {
        throw this.#break(error)
      }
    })
    this.#tail = result.then(ignore, ignore)
    return result
  }

  #usable(): void {
    if (this.#broken !== undefined) throw this.#broken
    if (this.#closing !== undefined) throw new StorageError('ERR_STOPPED', `${this.#directory}: backend is closed`)
  }

  /** The first error stays: what came after it is its consequence. */
  #break(error: unknown): Error {
    if (this.#broken !== undefined) return this.#broken
    const broken = error instanceof Error ? error : new StorageError('ERR_CORRUPT', String(error), { cause: error })
    this.#broken = broken
    this.#env.scheduler.soon(() => this.#onBroken(broken))
    return broken
  }
}

function ignore(): void {}
