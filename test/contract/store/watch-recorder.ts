import type { StorageError } from '../../../storage/errors.ts'
import type { WatchBatch, WatchEvent, WatchSink } from '../../../storage/store.ts'
import { plainKv, type PlainKv } from './store-harness.ts'

export interface PlainEvent {
  readonly type: 'put' | 'delete'
  readonly kv: PlainKv
  readonly prevKv?: PlainKv
}

/** Keeps what a watch delivers, and lets a test wait for it without a clock. */
export class WatchRecorder implements WatchSink {
  readonly batches: WatchBatch[] = []
  ended = false
  reason: StorageError | undefined
  #waiting: { readonly holds: () => boolean; readonly resolve: () => void }[] = []

  onBatch(batch: WatchBatch): void {
    if (this.ended) throw new Error('a batch after the end')
    this.batches.push(batch)
    this.#wake()
  }

  onEnd(reason: StorageError | undefined): void {
    if (this.ended) throw new Error('a second end')
    this.ended = true
    this.reason = reason
    this.#wake()
  }

  get events(): PlainEvent[] {
    return this.batches.flatMap((batch) => batch.events.map(plainEvent))
  }

  /** Revisions of the batches without events. */
  get progress(): number[] {
    return this.batches.filter((batch) => batch.events.length === 0).map((batch) => batch.revision)
  }

  until(holds: () => boolean): Promise<void> {
    if (holds()) return Promise.resolve()
    return new Promise((resolve) => void this.#waiting.push({ holds, resolve }))
  }

  /** Rejects when the watch ends first. */
  async untilEvents(count: number): Promise<PlainEvent[]> {
    await this.until(() => this.ended || this.events.length >= count)
    if (this.events.length < count) throw this.reason ?? new Error('the watch ended before its events')
    return this.events
  }

  async untilEnd(): Promise<StorageError | undefined> {
    await this.until(() => this.ended)
    return this.reason
  }

  #wake(): void {
    const woken = this.#waiting.filter((waiter) => waiter.holds())
    this.#waiting = this.#waiting.filter((waiter) => !woken.includes(waiter))
    for (const waiter of woken) waiter.resolve()
  }
}

export function plainEvent(event: WatchEvent): PlainEvent {
  const plain = { type: event.type, kv: plainKv(event.kv) }
  return event.prevKv === undefined ? plain : { ...plain, prevKv: plainKv(event.prevKv) }
}
