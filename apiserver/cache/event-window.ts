import type { Revision } from '../../storage/index.ts'
import { windowAgeMs, windowBytesMax, windowEventOverheadBytes, windowEventsMax, windowEventsMin } from '../limits.ts'
import type { CachedObject } from '../types.ts'

/** One change of one object. At least one of object and previous is there. */
export interface CacheEvent {
  /** Position in its resource's history, from 1, without gaps; 0 when it was read from the store's history. */
  readonly sequence: number
  readonly revision: Revision
  /** After the change; undefined when it was deleted. */
  readonly object: CachedObject | undefined
  /** Before the change; undefined when it was created. */
  readonly previous: CachedObject | undefined
  /** Bytes made of it for watchers, by format, while it is handed out; dropped behind that. */
  frames: Map<string, Uint8Array> | undefined
}

export interface WindowLimits {
  readonly eventsMin: number
  readonly eventsMax: number
  readonly ageMs: number
  readonly bytesMax: number
}

export const windowLimits: WindowLimits = {
  eventsMin: windowEventsMin,
  eventsMax: windowEventsMax,
  ageMs: windowAgeMs,
  bytesMax: windowBytesMax,
}

interface Entry {
  readonly event: CacheEvent
  readonly atMs: number
  readonly bytes: number
}

/**
 * The last events of one resource. Invariant: every event of the resource with a revision above `startRevision` and
 * at most the cache's is here, in order. Full: the oldest leave, and readers that still need them are told.
 */
export class EventWindow {
  readonly #limits: WindowLimits
  /** entries[head] is the oldest; what lies before was dropped and is cut off now and then. */
  #entries: Entry[] = []
  #head = 0
  #bytes = 0
  #nextSequence = 1
  #startRevision: Revision

  constructor(startRevision: Revision, limits: WindowLimits = windowLimits) {
    this.#startRevision = startRevision
    this.#limits = limits
  }

  /** Events above it are all here. */
  get startRevision(): Revision {
    return this.#startRevision
  }

  /** Of the oldest event; lastSequence + 1 when there is none. */
  get firstSequence(): number {
    return this.#nextSequence - (this.#entries.length - this.#head)
  }

  /** Of the newest event; 0 before the first one. */
  get lastSequence(): number {
    return this.#nextSequence - 1
  }

  get length(): number {
    return this.#entries.length - this.#head
  }

  get bytes(): number {
    return this.#bytes
  }

  push(
    change: { readonly revision: Revision; readonly object?: CachedObject; readonly previous?: CachedObject },
    atMs: number,
  ): CacheEvent {
    const event: CacheEvent = {
      sequence: this.#nextSequence++,
      revision: change.revision,
      object: change.object,
      previous: change.previous,
      frames: undefined,
    }
    const bytes = (change.previous?.stored.length ?? 0) + windowEventOverheadBytes
    this.#entries.push({ event, atMs, bytes })
    this.#bytes += bytes
    this.trim(atMs)
    return event
  }

  /** @param sequence - In [firstSequence, lastSequence]. */
  at(sequence: number): CacheEvent {
    const entry = this.#entries[this.#head + sequence - this.firstSequence]
    if (entry === undefined || sequence < this.firstSequence)
      throw new RangeError(`event ${sequence} is not in the window`)
    return entry.event
  }

  /** The newest sequence whose event is at or below `revision`; undefined when the window starts above it. */
  sequenceAt(revision: Revision): number | undefined {
    if (revision < this.#startRevision) return undefined
    let low = this.#head
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#entries[middle]!.event.revision <= revision) low = middle + 1
      else high = middle
    }
    return this.firstSequence + (low - this.#head) - 1
  }

  /** Forgets everything: history before `startRevision` is not known any more. Sequences go on. */
  reset(startRevision: Revision): void {
    this.#entries = []
    this.#head = 0
    this.#bytes = 0
    this.#startRevision = startRevision
  }

  trim(nowMs: number): void {
    while (this.length > 0) {
      const oldest = this.#entries[this.#head]!
      const young = nowMs - oldest.atMs < this.#limits.ageMs
      const keep =
        this.length <= this.#limits.eventsMax &&
        this.#bytes <= this.#limits.bytesMax &&
        (young || this.length <= this.#limits.eventsMin)
      if (keep) break
      this.#bytes -= oldest.bytes
      this.#startRevision = oldest.event.revision
      this.#head++
    }
    if (this.#head > 1024 && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head)
      this.#head = 0
    }
  }
}
