import type { Env, Revision, Timer } from '../../storage/index.ts'
import type { CacheEvent } from '../cache/event-window.ts'
import type { Attachment, EventReader } from '../cache/fan-out.ts'
import type { WatchCache } from '../cache/object-cache.ts'
import type { AnswerFormat } from '../encoding/negotiation.ts'
import type { EventType, ObjectEncoder } from '../encoding/object-encoder.ts'
import { apiVersionOf } from '../encoding/stored-object.ts'
import {
  bookmarkBeforeDeadlineMs,
  bookmarkJitterMs,
  bookmarkPeriodMs,
  watchBufferedBytesMax,
  watchSharedFrameBytesMin,
  watchStallMs,
  watchWriteBytes,
} from '../limits.ts'
import { ApiError } from '../errors.ts'
import { matches, type Selection } from '../selectors/selection.ts'
import { apiErrorOf, statusOf } from '../status.ts'
import type { WorkTurns } from '../work-turns.ts'
import type { ByteStream, CachedObject, RequestScope } from '../types.ts'

export interface WatchTarget {
  readonly scope: RequestScope
  readonly format: AnswerFormat
  readonly selection: Selection
  /** "" = all. */
  readonly namespace: string
  readonly bookmarks: boolean
}

/**
 * One watch from its head to its end: what it has been sent, its timers, and the bytes it still holds. Nothing is
 * queued for a client that does not read: it leaves the fan-out and reads on from the window when it has drained. One
 * that takes longer than `watchStallMs` for that is cut off.
 */
export class WatchSession implements EventReader {
  readonly namespace: string
  readonly name: string
  /** Aborts when the session ends, for what it waits on. */
  readonly signal: AbortSignal
  readonly #env: Pick<Env, 'clock' | 'random' | 'scheduler'>
  readonly #encoder: ObjectEncoder
  readonly #turns: WorkTurns
  readonly #target: WatchTarget
  readonly #stream: ByteStream
  readonly #ended = new AbortController()
  readonly #frameId: string
  readonly #timers = new Set<Timer>()
  readonly #onEnded: () => void
  #pending: Uint8Array[] = []
  #pendingBytes = 0
  #attachment: Attachment | undefined
  #full = false
  #lastRevision: Revision = 0
  #columnsSent = false

  constructor(options: {
    readonly env: Pick<Env, 'clock' | 'random' | 'scheduler'>
    readonly encoder: ObjectEncoder
    readonly turns: WorkTurns
    readonly target: WatchTarget
    readonly stream: ByteStream
    /** Once, when the stream has ended for whatever reason. */
    readonly onEnded: () => void
  }) {
    const { target } = options
    this.#env = options.env
    this.#encoder = options.encoder
    this.#turns = options.turns
    this.#target = target
    this.#stream = options.stream
    this.#onEnded = options.onEnded
    this.signal = this.#ended.signal
    this.namespace = target.namespace
    this.name = target.selection.name
    const { media, as, metaVersion, rowObject } = target.format
    const { gvk } = target.scope.served
    this.#frameId = `${apiVersionOf(gvk)} ${gvk.kind} ${media} ${as} ${metaVersion} ${rowObject} `
  }

  /** Starts the clocks: the stream ends cleanly after `timeoutMs`. */
  start(timeoutMs: number): void {
    this.#stream.onClose(() => this.end())
    if (this.signal.aborted) return
    this.#after(timeoutMs, () => this.end())
    if (!this.#target.bookmarks) return
    // A watch too short for the usual place gets its bookmark half-way.
    const last = timeoutMs > bookmarkBeforeDeadlineMs ? timeoutMs - bookmarkBeforeDeadlineMs : timeoutMs / 2
    this.#after(last, () => this.#periodicBookmark())
    this.#planBookmark()
  }

  /** ADDED for everything selected; waits while the client does not read. */
  async sendInitial(objects: readonly CachedObject[]): Promise<void> {
    let slice = this.#turns.begin()
    for (const [index, object] of objects.entries()) {
      if (this.signal.aborted) return
      if (matches(this.#target.selection, object)) this.#push(this.#frame('ADDED', object, object.revision))
      if (this.#pendingBytes + this.#stream.bufferedBytes > watchBufferedBytesMax) {
        this.#turns.pass()
        await this.#drained()
        slice = await this.#turns.next()
      } else if ((index & 15) === 15 && slice.spent()) {
        slice = await this.#turns.next()
      }
    }
    this.#write()
  }

  /** Everything at or below `revision` has been sent. */
  sendInitialEnd(revision: Revision): void {
    this.#lastRevision = Math.max(this.#lastRevision, revision)
    if (this.#target.bookmarks) this.#bookmark(revision, true)
  }

  /** Events read from the store's history. */
  async sendHistory(events: readonly CacheEvent[]): Promise<void> {
    for (const event of events) {
      if (this.signal.aborted) return
      const of = event.object ?? event.previous
      const elsewhere = this.namespace !== '' && of?.namespace !== this.namespace
      if (!elsewhere && !this.take(event)) await this.#drained()
    }
    this.#write()
  }

  /** Live from here on. */
  attach(cache: WatchCache, prefix: string, after: number): void {
    if (this.signal.aborted) return
    const attachment = cache.attach(prefix, this, after)
    if (this.signal.aborted) attachment.detach()
    else this.#attachment = attachment
  }

  take(event: CacheEvent): boolean {
    const { selection } = this.#target
    const { object, previous } = event
    const is = object !== undefined && matches(selection, object)
    const was = previous !== undefined && matches(selection, previous)
    if (is) this.#push(this.#sharedFrame(event, was ? 'MODIFIED' : 'ADDED', object, object.revision))
    // What left the selection, or the store: the last known state with the revision at which it left.
    else if (was) this.#push(this.#sharedFrame(event, 'DELETED', previous, event.revision))
    this.#lastRevision = event.revision
    this.#full = this.#pendingBytes + this.#stream.bufferedBytes > watchBufferedBytesMax
    return !this.#full
  }

  flush(): void {
    this.#write()
    if (!this.#full) return
    this.#full = false
    this.#whenDrained(() => this.#env.scheduler.soon(() => this.#attachment?.resume()))
  }

  onEnd(reason: 'expired' | 'closed'): void {
    if (reason === 'expired') this.fail(tooOldError(this.#lastRevision))
    else this.end()
  }

  /** An ERROR event is all a client can still be told behind a 200. */
  fail(error: unknown): void {
    if (this.signal.aborted) return
    this.#push(this.#encoder.errorFrame(this.#target.format, { ...statusOf(apiErrorOf(error)) }))
    this.end()
  }

  /** Ends the stream cleanly, what is pending included. Idempotent. */
  end(): void {
    if (this.signal.aborted) return
    this.#write()
    this.#ended.abort()
    for (const timer of this.#timers) timer.cancel()
    this.#attachment?.detach()
    if (!this.#stream.closed) this.#stream.end()
    this.#onEnded()
  }

  #after(delayMs: number, run: () => void): Timer {
    const timer = this.#env.scheduler.after(delayMs, () => {
      this.#timers.delete(timer)
      run()
    })
    this.#timers.add(timer)
    return timer
  }

  /** Calls back when there is room again, or the stream closed: it is cut when the client takes nothing for too long. */
  #whenDrained(run: () => void): void {
    const stalled = this.#after(watchStallMs, () => this.#stream.destroy())
    this.#stream.onDrain(() => {
      stalled.cancel()
      this.#timers.delete(stalled)
      run()
    })
  }

  #planBookmark(): void {
    this.#after(bookmarkPeriodMs - this.#env.random.float() * bookmarkJitterMs, () => {
      this.#periodicBookmark()
      this.#planBookmark()
    })
  }

  /** A watcher that is behind gets none: its own events come first. */
  #periodicBookmark(): void {
    const settled = this.#attachment?.settledRevision()
    if (settled === undefined || this.#stream.bufferedBytes > watchBufferedBytesMax) return
    this.#bookmark(Math.max(settled, this.#lastRevision), false)
  }

  #bookmark(revision: Revision, initialEventsEnd: boolean): void {
    const { scope, format } = this.#target
    this.#push(this.#encoder.bookmark(scope, format, { revision, initialEventsEnd, columns: !this.#columnsSent }))
    this.#columnsSent = true
    this.#write()
  }

  /** Watchers of the same kind and format share one buffer while the event is handed out. */
  #sharedFrame(event: CacheEvent, type: EventType, object: CachedObject, at: Revision): Uint8Array {
    const { frames } = event
    if (frames === undefined || (this.#target.format.as === 'Table' && !this.#columnsSent)) {
      return this.#frame(type, object, at)
    }
    const id = this.#frameId + type
    let frame = frames.get(id)
    if (frame === undefined) {
      frame = this.#frame(type, object, at)
      frames.set(id, frame)
    }
    return frame
  }

  #frame(type: EventType, object: CachedObject, at: Revision): Uint8Array {
    const { scope, format } = this.#target
    const columns = !this.#columnsSent
    this.#columnsSent = true
    return this.#encoder.frame(scope, format, { type, object, at, columns })
  }

  #push(frame: Uint8Array): void {
    this.#pending.push(frame)
    this.#pendingBytes += frame.length
  }

  /** Small frames are gathered, which copies them; large ones stay the one buffer that all watchers share. */
  #write(): void {
    const pending = this.#pending
    if (pending.length === 0) return
    this.#pending = []
    this.#pendingBytes = 0
    if (pending.length === 1) {
      this.#stream.write(pending[0]!)
      return
    }
    let small: Uint8Array[] = []
    let smallBytes = 0
    const writeSmall = (): void => {
      if (small.length > 0) this.#stream.write(small.length === 1 ? small[0]! : Buffer.concat(small, smallBytes))
      small = []
      smallBytes = 0
    }
    for (const frame of pending) {
      const shared = frame.length >= watchSharedFrameBytesMin
      if (shared || smallBytes + frame.length > watchWriteBytes) writeSmall()
      if (shared) {
        this.#stream.write(frame)
      } else {
        small.push(frame)
        smallBytes += frame.length
      }
    }
    writeSmall()
  }

  #drained(): Promise<void> {
    this.#write()
    return new Promise((resolve) => {
      if (this.signal.aborted || this.#stream.bufferedBytes <= watchBufferedBytesMax) {
        this.#env.scheduler.soon(resolve)
        return
      }
      this.signal.addEventListener('abort', () => resolve(), { once: true })
      this.#whenDrained(resolve)
    })
  }
}

/** The text that reflectors log; they list again on reason Expired (kubernetes/apiserver storage/cacher). */
export function tooOldError(asked: Revision, oldest: Revision = asked): Error {
  return new ApiError(410, 'Expired', `too old resource version: ${asked} (${oldest})`)
}
