import type { Env, Revision } from '../../storage/index.ts'
import { sliceMs } from '../limits.ts'
import type { CacheEvent, EventWindow } from './event-window.ts'

/** One watch as its resource's fan-out sees it. Callbacks are synchronous and do not throw. */
export interface EventReader {
  /** "" = every namespace. */
  readonly namespace: string
  /** "" = every name. */
  readonly name: string
  /**
   * Takes the event, if its selectors let it. false: full now (it did take this one); resume() when there is room.
   * After detach() or onEnd both take and flush may still be called once and do nothing.
   */
  take(event: CacheEvent): boolean
  /** Behind the last take of a turn. */
  flush(): void
  /** Last call. expired: the window moved past it. */
  onEnd(reason: 'expired' | 'closed'): void
}

export interface Attachment {
  /** There is room again. */
  resume(): void
  detach(): void
  /** Everything at or below has been handed over; undefined while it is behind. */
  settledRevision(): Revision | undefined
}

interface Entry {
  readonly reader: EventReader
  readonly bucket: string
  /**
   * Last sequence handed over. Of a live entry it may lag behind `dispatched`: a round that touched none of its
   * objects passed it by.
   */
  cursor: number
  /** live: takes part in rounds. behind: reads on by itself. full: waits for resume(). */
  state: 'live' | 'behind' | 'full' | 'ended'
}

/**
 * Hands the events of one resource to its watchers. New events are gathered until the event loop's next turn, then one
 * round gives them to the live watchers of the namespaces and names they touch, in slices. A watcher without room
 * leaves the round and holds nothing: its queue is the window, from which it reads on when it has drained.
 */
export class FanOut {
  readonly #env: Pick<Env, 'clock' | 'scheduler'>
  readonly #window: EventWindow
  readonly #current: () => Revision
  /** Live entries by what they watch: "" all, "ns" a namespace, "ns/name" one object. */
  readonly #live = new Map<string, Set<Entry>>()
  readonly #entries = new Set<Entry>()
  /** Sequence through which live watchers have everything, but for those a round under way has still to visit. */
  #dispatched: number
  #roundPlanned = false

  /** @param current - The cache's revision. */
  constructor(env: Pick<Env, 'clock' | 'scheduler'>, window: EventWindow, current: () => Revision) {
    this.#env = env
    this.#window = window
    this.#current = current
    this.#dispatched = window.lastSequence
  }

  get watcherCount(): number {
    return this.#entries.size
  }

  /** Events behind sequence `after` follow, at first from the window. */
  attach(reader: EventReader, after: number): Attachment {
    const bucket = reader.name === '' ? reader.namespace : `${reader.namespace}/${reader.name}`
    const entry: Entry = { reader, bucket, cursor: after, state: 'behind' }
    this.#entries.add(entry)
    this.#readOn(entry)
    return {
      resume: () => {
        if (entry.state !== 'full') return
        entry.state = 'behind'
        this.#readOn(entry)
      },
      detach: () => this.#remove(entry),
      settledRevision: () => this.#settled(entry),
    }
  }

  /** The window has new events. */
  onEvents(): void {
    if (this.#roundPlanned) return
    if (this.#entries.size === 0) {
      this.#dispatched = this.#window.lastSequence
      return
    }
    this.#roundPlanned = true
    this.#env.scheduler.soon(() => this.#startRound())
  }

  /** Ends every watcher: the history they read is gone. */
  endAll(reason: 'expired' | 'closed'): void {
    for (const entry of this.#entries) this.#end(entry, reason)
    this.#dispatched = this.#window.lastSequence
  }

  #settled(entry: Entry): Revision | undefined {
    if (entry.state !== 'live') return undefined
    if (this.#dispatched === this.#window.lastSequence) return this.#current()
    const pending = Math.max(this.#dispatched, entry.cursor) + 1
    if (pending > this.#window.lastSequence) return this.#current()
    if (pending < this.#window.firstSequence) return undefined
    return this.#window.at(pending).revision - 1
  }

  #startRound(): void {
    const from = this.#dispatched
    const to = this.#window.lastSequence
    const first = Math.max(from + 1, this.#window.firstSequence)
    const buckets = new Set<string>([''])
    for (let sequence = first; sequence <= to; sequence++) {
      const event = this.#window.at(sequence)
      const of = event.object ?? event.previous
      if (of === undefined) continue
      // Only in a round: frames of events that are read later one by one would stay as long as the window.
      event.frames = new Map()
      buckets.add(of.namespace)
      buckets.add(`${of.namespace}/${of.name}`)
    }
    const entries: Entry[] = []
    for (const bucket of buckets) for (const entry of this.#live.get(bucket) ?? []) entries.push(entry)
    this.#runRound(entries, 0, from, to)
  }

  #runRound(entries: readonly Entry[], start: number, from: number, to: number): void {
    const until = this.#env.clock.monotonicMs() + sliceMs
    for (let index = start; index < entries.length; index++) {
      const entry = entries[index]!
      if (entry.state === 'live') this.#deliver(entry, Math.max(entry.cursor, from), to)
      if ((index & 15) === 15 && this.#env.clock.monotonicMs() >= until) {
        this.#env.scheduler.soon(() => this.#runRound(entries, index + 1, from, to))
        return
      }
    }
    this.#dispatched = Math.max(this.#dispatched, to)
    for (let sequence = Math.max(from + 1, this.#window.firstSequence); sequence <= to; sequence++) {
      this.#window.at(sequence).frames = undefined
    }
    this.#roundPlanned = false
    if (this.#window.lastSequence > this.#dispatched) this.onEvents()
  }

  /** Gives a live entry what lies in (after, to]. */
  #deliver(entry: Entry, after: number, to: number): void {
    if (after < to && after + 1 < this.#window.firstSequence) {
      this.#end(entry, 'expired')
      return
    }
    for (let sequence = after + 1; sequence <= to; sequence++) {
      entry.cursor = sequence
      if (this.#give(entry, this.#window.at(sequence))) continue
      this.#setState(entry, 'full')
      break
    }
    entry.reader.flush()
  }

  #readOn(entry: Entry): void {
    if (entry.state !== 'behind') return
    const until = this.#env.clock.monotonicMs() + sliceMs
    while (entry.cursor < this.#window.lastSequence) {
      if (entry.cursor + 1 < this.#window.firstSequence) {
        this.#end(entry, 'expired')
        return
      }
      entry.cursor++
      if (!this.#give(entry, this.#window.at(entry.cursor))) {
        this.#setState(entry, 'full')
        entry.reader.flush()
        return
      }
      if ((entry.cursor & 15) === 0 && this.#env.clock.monotonicMs() >= until) {
        entry.reader.flush()
        this.#env.scheduler.soon(() => this.#readOn(entry))
        return
      }
    }
    this.#setState(entry, 'live')
    entry.reader.flush()
  }

  #give(entry: Entry, event: CacheEvent): boolean {
    const { namespace, name } = entry.reader
    const of = event.object ?? event.previous
    if (of === undefined) return true
    if (namespace !== '' && of.namespace !== namespace) return true
    if (name !== '' && of.name !== name) return true
    return entry.reader.take(event)
  }

  #setState(entry: Entry, state: Entry['state']): void {
    if (entry.state === 'ended' || entry.state === state) return
    if (entry.state === 'live') {
      const bucket = this.#live.get(entry.bucket)
      bucket?.delete(entry)
      if (bucket?.size === 0) this.#live.delete(entry.bucket)
    }
    entry.state = state
    if (state === 'live') {
      const bucket = this.#live.get(entry.bucket)
      if (bucket === undefined) this.#live.set(entry.bucket, new Set([entry]))
      else bucket.add(entry)
    }
  }

  #remove(entry: Entry): void {
    this.#setState(entry, 'ended')
    this.#entries.delete(entry)
  }

  #end(entry: Entry, reason: 'expired' | 'closed'): void {
    if (entry.state === 'ended') return
    this.#remove(entry)
    entry.reader.onEnd(reason)
  }
}
