import type { ResourceInfo } from '../../schemas/index.ts'
import type { Env, Revision } from '../../storage/index.ts'
import type { CachedObject, Strategy } from '../types.ts'
import { EventWindow, type WindowLimits } from './event-window.ts'
import { FanOut } from './fan-out.ts'
import { SortedObjects } from './sorted-objects.ts'

/** Everything the cache knows of the objects under one store prefix. */
export class ResourceCache {
  /** "/registry/pods/". */
  readonly prefix: string
  readonly resource: ResourceInfo
  readonly strategy: Strategy
  readonly window: EventWindow
  readonly fanOut: FanOut
  #env: Pick<Env, 'clock' | 'scheduler'>
  #objects: SortedObjects
  #supersededBytes = 0

  constructor(of: {
    readonly prefix: string
    readonly resource: ResourceInfo
    readonly strategy: Strategy
    readonly env: Pick<Env, 'clock' | 'scheduler'>
    readonly startRevision: Revision
    readonly current: () => Revision
    readonly limits: WindowLimits
  }) {
    this.prefix = of.prefix
    this.resource = of.resource
    this.strategy = of.strategy
    this.#env = of.env
    this.window = new EventWindow(of.startRevision, of.limits)
    this.fanOut = new FanOut(of.env, this.window, of.current)
    this.#objects = SortedObjects.empty(of.prefix)
  }

  /** A snapshot: never changes. */
  get objects(): SortedObjects {
    return this.#objects
  }

  /** Bytes of all objects that were replaced or deleted so far. */
  get supersededBytes(): number {
    return this.#supersededBytes
  }

  /** After a load. History is unknown from here back, so watchers end and come again. */
  replace(objects: SortedObjects, revision: Revision): void {
    this.#objects = objects
    this.window.reset(revision)
    this.fanOut.endAll('closed')
  }

  put(object: CachedObject): void {
    const previous = this.#objects.get(object.key)
    this.#objects = this.#objects.with(object)
    this.#record({ revision: object.revision, object, ...(previous !== undefined && { previous }) })
  }

  delete(key: string, revision: Revision): void {
    const previous = this.#objects.get(key)
    if (previous === undefined) return
    this.#objects = this.#objects.without(key)
    this.#record({ revision, previous })
  }

  #record(change: {
    readonly revision: Revision
    readonly object?: CachedObject
    readonly previous?: CachedObject
  }): void {
    this.#supersededBytes += change.previous?.stored.length ?? 0
    this.window.push(change, this.#env.clock.monotonicMs())
    this.fanOut.onEvents()
  }
}
