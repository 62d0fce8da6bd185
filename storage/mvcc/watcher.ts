import type { StorageError } from '../errors.ts'
import type { Revision, Watcher, WatchSink } from '../store.ts'
import type { KeyRange } from './key-range.ts'

/** What a watcher asks of the hub that owns it. */
export interface WatcherOwner {
  progressRequested(watcher: HubWatcher): void
  cancelled(watcher: HubWatcher): void
}

/**
 * live: has everything up to the store's revision, or starts in the future. replay: behind. ended: its sink has heard
 * onEnd, or will in the next turn.
 */
export type WatcherMode = 'live' | 'replay' | 'ended'

/** One watch. It outlives the hub it was made by: a restored or another engine takes it over where it stands. */
export class HubWatcher implements Watcher {
  readonly range: KeyRange
  readonly prevKv: boolean
  readonly sink: WatchSink
  /** As asked for; 0 = from now. Nothing older than this is ever delivered, progress included. */
  readonly startRevision: Revision
  /** The first revision it may still get events of. Of a live watcher: a lower bound. */
  nextRevision: Revision
  mode: WatcherMode
  progressWanted = false
  /** undefined between two hubs. */
  owner: WatcherOwner | undefined
  #endHeard = false

  constructor(init: {
    readonly range: KeyRange
    readonly prevKv: boolean
    readonly sink: WatchSink
    readonly startRevision: Revision
    readonly nextRevision: Revision
    readonly owner?: WatcherOwner
  }) {
    this.range = init.range
    this.prevKv = init.prevKv
    this.sink = init.sink
    this.startRevision = init.startRevision
    this.nextRevision = init.nextRevision
    this.mode = 'replay'
    this.owner = init.owner
  }

  requestProgress(): void {
    if (this.mode === 'ended') return
    this.progressWanted = true
    this.owner?.progressRequested(this)
  }

  cancel(): void {
    if (this.#endHeard) return
    this.mode = 'ended'
    this.owner?.cancelled(this)
    this.end(undefined)
  }

  /** Calls onEnd, once. The hub has forgotten the watcher before. */
  end(reason: StorageError | undefined): void {
    this.mode = 'ended'
    if (this.#endHeard) return
    this.#endHeard = true
    this.owner = undefined
    this.sink.onEnd(reason)
  }
}
