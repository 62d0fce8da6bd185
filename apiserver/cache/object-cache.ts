import type {
  Env,
  KeyValue,
  Logger,
  Revision,
  StorageError,
  Store,
  Timer,
  WatchBatch,
  Watcher,
} from '../../storage/index.ts'
import { makeCachedObject } from '../encoding/stored-object.ts'
import { ApiError } from '../errors.ts'
import { cacheLoadPageItems, cacheRetryMs, progressIdleMs } from '../limits.ts'
import type { CachedObject, ObjectCache, ResourceRegistry } from '../types.ts'
import { type CacheEvent, type WindowLimits, windowLimits } from './event-window.ts'
import type { Attachment, EventReader } from './fan-out.ts'
import { readHistory } from './history-replay.ts'
import { keyBytes, keyText, prefixEnd, registryPrefix } from '../store-keys.ts'
import { ResourceCache } from './resource-cache.ts'
import { RetainedRoots } from './retained-roots.ts'
import { RevisionWaiters } from './revision-waiters.ts'
import { SortedObjects } from './sorted-objects.ts'

/** Objects under one prefix as of one revision; never changes. */
export interface CacheSnapshot {
  readonly revision: Revision
  /** Where a watch that goes on from here starts (`attach`). */
  readonly sequence: number
  /** All under the prefix asked for, or those at or behind `from`. */
  range(from?: string): readonly CachedObject[]
}

/** What the read handlers need beyond ObjectCache. */
export interface WatchCache extends ObjectCache {
  /** Resolves when the first load is in; rejects only when the cache is closed before. */
  readonly ready: Promise<void>
  snapshot(prefix: string): CacheSnapshot
  /** Keeps what `prefix` looks like now for later pages at this revision. */
  retain(prefix: string): void
  /** The objects at a revision the cache still knows; undefined: ask the store. */
  listAt(prefix: string, revision: Revision): CacheSnapshot | undefined
  /** Sequence behind which the events above `revision` lie; undefined when the window starts later. */
  sequenceAt(prefix: string, revision: Revision): number | undefined
  /** Gives the reader every event of the prefix's resource behind `after`, in order. */
  attach(prefix: string, reader: EventReader, after: number): Attachment
  /**
   * Events above `after` from the store's history, oldest first, in bounded pieces; ends at a revision from which
   * sequenceAt() answers. Throws StorageError ERR_COMPACTED.
   */
  replay(
    prefix: string,
    after: Revision,
    signal: AbortSignal,
  ): AsyncIterable<{ readonly events: readonly CacheEvent[]; readonly reached: Revision }>
  /** Watchers end cleanly, waits fail, the store's watch is cancelled. */
  close(): void
}

export interface ObjectCacheOptions {
  readonly store: Store
  readonly registry: ResourceRegistry
  readonly env: Env
  readonly log: Logger
  /** Of every resource's history; tests make it small. */
  readonly limits?: WindowLimits
}

/** Loads everything under /registry/ at one revision, then follows it with one store watch until closed. */
export function createObjectCache(options: ObjectCacheOptions): WatchCache {
  return new StoreFedCache(options)
}

class StoreFedCache implements WatchCache {
  readonly ready: Promise<void>
  readonly #store: Store
  readonly #registry: ResourceRegistry
  readonly #env: Env
  readonly #log: Logger
  readonly #limits: WindowLimits
  /** By prefix, "/registry/pods/". */
  readonly #resources = new Map<string, ResourceCache>()
  readonly #roots = new RetainedRoots()
  readonly #waiters: RevisionWaiters
  readonly #abort = new AbortController()
  readonly #housekeeping: Timer
  #watcher: Watcher | undefined
  #revision: Revision = 0
  /** Start of the current load: what the windows of resources first seen later begin with. */
  #loadedRevision: Revision = 0

  constructor(options: ObjectCacheOptions) {
    this.#store = options.store
    this.#registry = options.registry
    this.#env = options.env
    this.#log = options.log
    this.#limits = options.limits ?? windowLimits
    this.#waiters = new RevisionWaiters(
      this.#env.scheduler,
      () => this.#revision,
      () => this.#watcher?.requestProgress(),
    )
    this.#housekeeping = this.#env.scheduler.every(progressIdleMs, () => this.#keepHouse())
    this.ready = this.#start()
    // Whoever awaits it sees the failure; nobody has to.
    this.ready.catch(() => {})
  }

  get revision(): Revision {
    return this.#revision
  }

  get(key: string): CachedObject | undefined {
    return this.#find(key)?.objects.get(key)
  }

  list(prefix: string): readonly CachedObject[] {
    return this.#find(prefix)?.objects.range(prefix) ?? []
  }

  count(prefix: string): number {
    return this.#find(prefix)?.objects.size ?? 0
  }

  waitUntil(revision: Revision, options: { readonly signal: AbortSignal }): Promise<void> {
    if (this.#abort.signal.aborted) return Promise.reject(closing())
    return this.#waiters.wait(revision, options.signal)
  }

  async fresh(options: { readonly signal: AbortSignal }): Promise<Revision> {
    const revision = await this.#store.currentRevision(options)
    await this.waitUntil(revision, options)
    return revision
  }

  snapshot(prefix: string): CacheSnapshot {
    const resource = this.#find(prefix)
    return snapshotOf(prefix, this.#revision, resource?.objects, resource?.window.lastSequence ?? 0)
  }

  retain(prefix: string): void {
    const resource = this.#find(prefix)
    if (resource === undefined) return
    this.#roots.retain({
      prefix: resource.prefix,
      revision: this.#revision,
      objects: resource.objects,
      atMs: this.#env.clock.monotonicMs(),
      supersededBytes: resource.supersededBytes,
    })
    this.#trimRoots()
  }

  listAt(prefix: string, revision: Revision): CacheSnapshot | undefined {
    const resource = this.#find(prefix)
    if (resource === undefined || revision > this.#revision) return undefined
    const sequence = resource.window.sequenceAt(revision)
    if (sequence !== undefined && sequence === resource.window.lastSequence) {
      return snapshotOf(prefix, revision, resource.objects, sequence)
    }
    const root = this.#roots.find(resource.prefix, revision)
    return root === undefined ? undefined : snapshotOf(prefix, revision, root, sequence ?? 0)
  }

  sequenceAt(prefix: string, revision: Revision): number | undefined {
    return this.#find(prefix)?.window.sequenceAt(revision)
  }

  attach(prefix: string, reader: EventReader, after: number): Attachment {
    const resource = this.#find(prefix)
    if (resource === undefined) throw new Error(`no resource is stored under ${prefix}`)
    if (this.#abort.signal.aborted) {
      reader.onEnd('closed')
      return { resume() {}, detach() {}, settledRevision: () => undefined }
    }
    return resource.fanOut.attach(reader, after)
  }

  async *replay(
    prefix: string,
    after: Revision,
    signal: AbortSignal,
  ): AsyncIterable<{ readonly events: readonly CacheEvent[]; readonly reached: Revision }> {
    const resource = this.#find(prefix)
    if (resource === undefined) throw new Error(`no resource is stored under ${prefix}`)
    const both = AbortSignal.any([signal, this.#abort.signal])
    let reached = after
    while (reached < resource.window.startRevision) {
      const piece = await readHistory(
        this.#store,
        { prefix, after: reached, enough: () => resource.window.startRevision },
        both,
      )
      const events: CacheEvent[] = []
      for (const { kv, prevKv, type } of piece.events) {
        const object = type === 'put' ? this.#decode(resource, kv) : undefined
        const previous = prevKv === undefined ? undefined : this.#decode(resource, prevKv)
        if (object === undefined && previous === undefined) continue
        events.push({ sequence: 0, revision: kv.modRevision, object, previous, frames: undefined })
      }
      reached = piece.reached
      yield { events, reached }
    }
  }

  close(): void {
    if (this.#abort.signal.aborted) return
    this.#abort.abort()
    this.#housekeeping.cancel()
    this.#watcher?.cancel()
    this.#watcher = undefined
    this.#waiters.failAll(closing())
    for (const resource of this.#resources.values()) resource.fanOut.endAll('closed')
    this.#roots.clear()
  }

  async #start(): Promise<void> {
    for (;;) {
      try {
        await this.#load()
        return
      } catch (error) {
        if (this.#abort.signal.aborted) throw closing()
        this.#log.warn({ error }, 'loading the watch cache failed, trying again')
        await this.#pause()
      }
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#env.scheduler.after(cacheRetryMs, resolve)
    })
  }

  /** Reads everything at one revision and follows from there. A compaction in between starts it anew. */
  async #load(): Promise<void> {
    const signal = this.#abort.signal
    const rangeEnd = prefixEnd(registryPrefix)
    const loaded = new Map<ResourceCache, CachedObject[]>()
    let key = keyBytes(registryPrefix)
    let revision: Revision = 0
    for (;;) {
      const page = await this.#store.range({ key, rangeEnd, revision, limit: cacheLoadPageItems }, { signal })
      if (revision === 0) revision = page.revision
      for (const kv of page.kvs) {
        const resource = this.#resourceOf(keyText(kv.key))
        const object = resource && this.#decode(resource, kv)
        if (resource === undefined || object === undefined) continue
        const objects = loaded.get(resource)
        if (objects === undefined) loaded.set(resource, [object])
        else objects.push(object)
      }
      const last = page.kvs.at(-1)
      if (!page.more || last === undefined) break
      key = Buffer.concat([last.key, Buffer.of(0)])
    }
    if (signal.aborted) throw closing()
    for (const { resource } of this.#registry.all()) {
      if (resource.storagePrefix !== undefined) this.#resourceOf(`${resource.storagePrefix}/`)
    }
    this.#roots.clear()
    this.#revision = Math.max(this.#revision, revision)
    this.#loadedRevision = revision
    for (const resource of this.#resources.values()) {
      resource.replace(SortedObjects.from(resource.prefix, loaded.get(resource) ?? []), revision)
    }
    this.#follow()
    this.#waiters.onRevision()
  }

  #follow(): void {
    if (this.#abort.signal.aborted) return
    let ended = false
    const watcher = this.#store.watch(
      {
        key: keyBytes(registryPrefix),
        rangeEnd: prefixEnd(registryPrefix),
        startRevision: this.#revision + 1,
        // Previous objects come from the cache itself.
        prevKv: false,
      },
      {
        onBatch: (batch) => this.#onBatch(batch),
        onEnd: (reason) => {
          ended = true
          this.#onWatchEnd(reason)
        },
      },
    )
    if (!ended) this.#watcher = watcher
  }

  #onWatchEnd(reason: StorageError | undefined): void {
    this.#watcher = undefined
    if (this.#abort.signal.aborted) return
    if (reason?.code === 'ERR_COMPACTED') {
      this.#log.warn({ revision: this.#revision }, 'the watch cache fell behind compaction and loads anew')
      void this.#start().catch((error: unknown) => {
        if (!this.#abort.signal.aborted) this.#log.error({ error }, 'the watch cache cannot load')
      })
      return
    }
    // The replica behind it went away: the same revisions follow from another one, so nobody sees a gap.
    this.#log.warn(
      { revision: this.#revision, error: reason },
      'the watch cache lost its store watch, opening it again',
    )
    this.#env.scheduler.after(cacheRetryMs, () => this.#follow())
  }

  /** Runs inside the store's apply: must not throw or wait. */
  #onBatch(batch: WatchBatch): void {
    // A store that went back would repeat or reorder events for every client.
    if (batch.revision < this.#revision) return
    for (const { type, kv } of batch.events) {
      if (kv.modRevision <= this.#revision) continue
      const key = keyText(kv.key)
      const resource = this.#resourceOf(key)
      if (resource === undefined) continue
      const object = type === 'put' ? this.#decode(resource, kv) : undefined
      if (object === undefined) resource.delete(key, kv.modRevision)
      else resource.put(object)
    }
    this.#revision = batch.revision
    this.#waiters.onRevision()
  }

  /** undefined: no object of that resource. It is not served, so that one bad row does not take all others along. */
  #decode(resource: ResourceCache, kv: KeyValue): CachedObject | undefined {
    try {
      return makeCachedObject({
        resource: resource.resource,
        strategy: resource.strategy,
        key: keyText(kv.key),
        revision: kv.modRevision,
        stored: kv.value,
      })
    } catch (error) {
      this.#log.error({ key: keyText(kv.key), revision: kv.modRevision, error }, 'a stored object cannot be read')
      return undefined
    }
  }

  /** The longest known prefix of the key: "/registry/services/specs/" before "/registry/services/". */
  #find(key: string): ResourceCache | undefined {
    const first = key.indexOf('/', registryPrefix.length)
    if (first < 0) return undefined
    const second = key.indexOf('/', first + 1)
    const longer = second < 0 ? undefined : this.#resources.get(key.slice(0, second + 1))
    return longer ?? this.#resources.get(key.slice(0, first + 1))
  }

  #resourceOf(key: string): ResourceCache | undefined {
    const known = this.#find(key)
    if (known !== undefined) return known
    const entry = this.#registry.byKey(key)
    if (entry?.resource.storagePrefix === undefined) return undefined
    const prefix = `${entry.resource.storagePrefix}/`
    const resource = new ResourceCache({
      prefix,
      resource: entry.resource,
      strategy: entry.strategy,
      env: this.#env,
      startRevision: this.#loadedRevision,
      current: () => this.#revision,
      limits: this.#limits,
    })
    this.#resources.set(prefix, resource)
    return resource
  }

  #keepHouse(): void {
    const nowMs = this.#env.clock.monotonicMs()
    for (const resource of this.#resources.values()) resource.window.trim(nowMs)
    this.#trimRoots()
    this.#watcher?.requestProgress()
  }

  #trimRoots(): void {
    this.#roots.trim(this.#env.clock.monotonicMs(), (prefix) => this.#resources.get(prefix)?.supersededBytes ?? 0)
  }
}

function snapshotOf(
  prefix: string,
  revision: Revision,
  objects: SortedObjects | undefined,
  sequence: number,
): CacheSnapshot {
  return { revision, sequence, range: (from) => objects?.range(prefix, from) ?? [] }
}

function closing(): ApiError {
  return new ApiError(503, 'ServiceUnavailable', 'apiserver is shutting down')
}
