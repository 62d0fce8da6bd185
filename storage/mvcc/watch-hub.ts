import type { Logger, Scheduler } from '../../raft/index.ts'
import { StorageError } from '../errors.ts'
import { watchReplayEventsMax, watchReplayRevisionsMax, watchReplayRowsPerSlice } from '../limits.ts'
import type { Revision, Value, WatchBatch, Watcher, WatchEvent, WatchRequest, WatchSink } from '../store.ts'
import { keyValueOf, type Row } from './key-history.ts'
import { isEmptyRange, keyRange, rangeHolds } from './key-range.ts'
import type { RevisionLog } from './revision-log.ts'
import { WatcherIndex } from './watcher-index.ts'
import { HubWatcher, type WatcherOwner } from './watcher.ts'

/** The engine, as far as watchers look at it. */
export interface WatchSource {
  readonly revision: Revision
  readonly compactRevision: Revision
  readonly revisionLog: RevisionLog
  value(row: Row): Value
}

/**
 * Delivers changes to watchers. A live watcher gets the events of a revision synchronously from inside apply. One that
 * starts in the past replays the revision log in slices; the slice that reaches the end makes it live in the same turn,
 * so that no revision can fall between (etcd-io/etcd#20655). There is no queue here: a replaying watcher costs its
 * position, and one that compaction overtakes is ended with ERR_COMPACTED, never moved on (etcd-io/etcd#17529).
 *
 * Ends and progress that a call of the client brings about come in a later turn, so that no sink is called from inside
 * watch() or requestProgress(), nor between the events of one revision for different watchers (etcd-io/etcd#15220).
 */
export class WatchHub implements WatcherOwner {
  readonly #source: WatchSource
  readonly #scheduler: Scheduler
  readonly #log: Logger
  readonly #live = new WatcherIndex<HubWatcher>()
  /** In turn: the first is served next. */
  readonly #replaying = new Set<HubWatcher>()
  readonly #progress = new Set<HubWatcher>()
  #replayScheduled = false
  #progressScheduled = false
  #closed = false

  constructor(source: WatchSource, environment: { readonly scheduler: Scheduler; readonly log: Logger }) {
    this.#source = source
    this.#scheduler = environment.scheduler
    this.#log = environment.log
  }

  get size(): number {
    return this.#live.size + this.#replaying.size
  }

  watch(request: WatchRequest, sink: WatchSink): Watcher {
    const watcher = createWatcher(request, sink, this.#source.revision)
    watcher.owner = this
    if (this.#closed) this.#endSoon(watcher, new StorageError('ERR_STOPPED', 'the store is closed'))
    else if (isEmptyRange(watcher.range)) {
      this.#endSoon(watcher, new StorageError('ERR_EMPTY_KEY', 'the range of the watch is empty'))
    } else this.#place(watcher)
    return watcher
  }

  /** Called by apply once the changes of `revision` are in index, log and backend. `rows` in order of sub. */
  dispatch(revision: Revision, rows: readonly Row[]): void {
    if (this.#live.size > 0) {
      const [first] = rows
      if (rows.length === 1 && first !== undefined) this.#dispatchOne(revision, first)
      else this.#dispatchAll(revision, rows)
    }
    this.#flushProgressSoon()
  }

  /** Called by apply when history below `compactRevision` has ceased to exist. */
  compacted(compactRevision: Revision): void {
    for (const watcher of Array.from(this.#replaying)) {
      if (watcher.nextRevision < compactRevision) this.#end(watcher, this.#compactedError(compactRevision))
    }
  }

  /** Hands all watchers over, each with the revision it needs next. This hub has none afterwards. */
  detach(): readonly HubWatcher[] {
    const watchers = [...this.#live, ...this.#replaying]
    for (const watcher of watchers) {
      if (watcher.mode === 'live') watcher.nextRevision = Math.max(watcher.nextRevision, this.#source.revision + 1)
      this.#forget(watcher)
      watcher.owner = undefined
    }
    return watchers
  }

  /** Takes watchers over: they replay what they lack, and get nothing twice even if this store is behind. */
  attach(watchers: readonly HubWatcher[]): void {
    for (const watcher of watchers) {
      if (watcher.mode === 'ended') continue
      watcher.owner = this
      this.#place(watcher)
      if (watcher.progressWanted) this.progressRequested(watcher)
    }
  }

  /** Ends every watcher with `reason`, undefined being the ordinary end. */
  close(reason?: StorageError): void {
    this.#closed = true
    for (const watcher of [...this.#live, ...this.#replaying]) this.#end(watcher, reason)
  }

  progressRequested(watcher: HubWatcher): void {
    this.#progress.add(watcher)
    this.#flushProgressSoon()
  }

  cancelled(watcher: HubWatcher): void {
    this.#forget(watcher)
  }

  #place(watcher: HubWatcher): void {
    if (watcher.nextRevision > this.#source.revision) {
      watcher.mode = 'live'
      this.#live.add(watcher)
    } else if (watcher.nextRevision < this.#source.compactRevision || watcher.nextRevision < 0) {
      this.#endSoon(watcher, this.#compactedError(this.#source.compactRevision))
    } else {
      watcher.mode = 'replay'
      this.#replaying.add(watcher)
      this.#replaySoon()
    }
  }

  #dispatchOne(revision: Revision, row: Row): void {
    // Gathered first: a sink may cancel or open watches.
    const matched: HubWatcher[] = []
    this.#live.forEachMatch(row.history.name, (watcher) => void matched.push(watcher))
    let plain: WatchBatch | undefined
    let withPrevious: WatchBatch | undefined
    for (const watcher of matched) {
      if (watcher.prevKv) withPrevious ??= { revision, events: [this.#event(row, true)] }
      else plain ??= { revision, events: [this.#event(row, false)] }
      const batch = watcher.prevKv ? withPrevious : plain
      if (batch !== undefined) this.#deliverLive(watcher, batch)
    }
  }

  #dispatchAll(revision: Revision, rows: readonly Row[]): void {
    const matched = new Map<HubWatcher, WatchEvent[]>()
    for (const row of rows) {
      let plain: WatchEvent | undefined
      let withPrevious: WatchEvent | undefined
      this.#live.forEachMatch(row.history.name, (watcher) => {
        const event = watcher.prevKv ? (withPrevious ??= this.#event(row, true)) : (plain ??= this.#event(row, false))
        const events = matched.get(watcher)
        if (events === undefined) matched.set(watcher, [event])
        else events.push(event)
      })
    }
    for (const [watcher, events] of matched) this.#deliverLive(watcher, { revision, events })
  }

  #deliverLive(watcher: HubWatcher, batch: WatchBatch): void {
    // Not live any more: cancelled by another sink. Next revision higher: starts in the future.
    if (watcher.mode === 'live' && watcher.nextRevision <= batch.revision) this.#deliver(watcher, batch)
  }

  #deliver(watcher: HubWatcher, batch: WatchBatch): void {
    try {
      watcher.sink.onBatch(batch)
    } catch (cause) {
      this.#log.error({ revision: batch.revision, error: String(cause) }, 'a watch sink threw, its watch ends')
      this.#end(watcher, new StorageError('ERR_STOPPED', 'the watch sink threw', { cause }))
    }
  }

  #end(watcher: HubWatcher, reason: StorageError | undefined): void {
    this.#forget(watcher)
    try {
      watcher.end(reason)
    } catch (cause) {
      this.#log.error({ error: String(cause) }, 'a watch sink threw at its end')
    }
  }

  #endSoon(watcher: HubWatcher, reason: StorageError): void {
    watcher.mode = 'ended'
    this.#scheduler.soon(() => this.#end(watcher, reason))
  }

  #forget(watcher: HubWatcher): void {
    this.#live.remove(watcher)
    this.#replaying.delete(watcher)
    this.#progress.delete(watcher)
  }

  #replaySoon(): void {
    if (this.#replayScheduled || this.#replaying.size === 0) return
    this.#replayScheduled = true
    this.#scheduler.soon(() => {
      this.#replayScheduled = false
      this.#replaySlice()
      this.#replaySoon()
      this.#flushProgressSoon()
    })
  }

  #replaySlice(): void {
    let budget = { rows: watchReplayRowsPerSlice, events: watchReplayEventsMax }
    for (const watcher of Array.from(this.#replaying)) {
      if (budget.rows <= 0 || budget.events <= 0) return
      if (watcher.mode !== 'replay') continue
      // To the end of the line, so that one far behind does not hold up the others.
      this.#replaying.delete(watcher)
      this.#replaying.add(watcher)
      const used = this.#replay(watcher, budget)
      // A watcher that matched nothing still costs the look-up of its position.
      budget = { rows: budget.rows - used.rows - 8, events: budget.events - used.events }
    }
  }

  /** One batch for one watcher, ended at a revision boundary. */
  #replay(watcher: HubWatcher, budget: { rows: number; events: number }): { rows: number; events: number } {
    const { revisionLog, compactRevision } = this.#source
    const events: WatchEvent[] = []
    let rows = 0
    let revisions = 0
    let last = watcher.nextRevision - 1
    for (let position = revisionLog.positionOf(watcher.nextRevision); ; position += 1) {
      const row = revisionLog.at(position)
      if (row === undefined) {
        last = this.#source.revision
        break
      }
      if (row.main !== last) {
        if (revisions >= watchReplayRevisionsMax || events.length >= budget.events || rows >= budget.rows) break
        last = row.main
        revisions += 1
      }
      rows += 1
      if (!rangeHolds(watcher.range, row.history.name)) continue
      if (watcher.prevKv && row.main === compactRevision && (row.tombstone || row.version > 1)) {
        // The value before the compacted revision is gone. With this watch asking for it, history starts one later
        // (etcd-io/etcd#10681): a client that resumes where the error says must not end here again.
        this.#end(watcher, this.#compactedError(compactRevision + 1))
        return { rows, events: events.length }
      }
      events.push(this.#event(row, watcher.prevKv))
    }
    watcher.nextRevision = last + 1
    if (last >= this.#source.revision) {
      this.#replaying.delete(watcher)
      watcher.mode = 'live'
      this.#live.add(watcher)
    }
    if (events.length > 0) this.#deliver(watcher, { revision: last, events })
    return { rows, events: events.length }
  }

  #flushProgressSoon(): void {
    if (this.#progressScheduled || this.#progress.size === 0 || ![...this.#progress].some((w) => this.#mayProgress(w)))
      return
    this.#progressScheduled = true
    this.#scheduler.soon(() => {
      this.#progressScheduled = false
      const { revision } = this.#source
      for (const watcher of Array.from(this.#progress)) {
        if (!this.#mayProgress(watcher)) continue
        watcher.progressWanted = false
        this.#progress.delete(watcher)
        this.#deliver(watcher, { revision, events: [] })
      }
    })
  }

  /** Live, and the store has reached both what it asked for and what it has seen elsewhere (etcd-io/etcd#20221). */
  #mayProgress(watcher: HubWatcher): boolean {
    const { revision } = this.#source
    return watcher.mode === 'live' && revision >= watcher.startRevision && revision >= watcher.nextRevision - 1
  }

  #event(row: Row, withPrevious: boolean): WatchEvent {
    const type = row.tombstone ? 'delete' : 'put'
    const kv = keyValueOf(row, this.#source.value(row))
    const previous = withPrevious ? row.history.before(row) : undefined
    if (previous === undefined || previous.tombstone) return { type, kv }
    return { type, kv, prevKv: keyValueOf(previous, this.#source.value(previous)) }
  }

  #compactedError(compactRevision: Revision): StorageError {
    return new StorageError('ERR_COMPACTED', `history before revision ${compactRevision} is compacted`, {
      compactRevision,
      currentRevision: this.#source.revision,
    })
  }
}

/** Without a hub: it waits for one to attach it. `revision` is the store's, what "from now" means. */
export function createWatcher(request: WatchRequest, sink: WatchSink, revision: Revision): HubWatcher {
  const key = request.key.length === 0 ? Uint8Array.of(0) : request.key
  const { startRevision, prevKv } = request
  const nextRevision = startRevision === 0 ? revision + 1 : startRevision
  return new HubWatcher({ range: keyRange(key, request.rangeEnd), prevKv, sink, startRevision, nextRevision })
}
