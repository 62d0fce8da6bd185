import type { Logger, Timer, Watcher } from '../../storage/index.ts'
import { ApiError } from '../errors.ts'
import { deleteObject } from '../object-store/object-deletion.ts'
import { deletionState } from '../object-store/object-meta.ts'
import { keyBytes, listPrefix, namespaceKey } from '../store-keys.ts'
import { targetOf, type WriteRequest } from '../object-store/write-pipeline.ts'
import { strategyContext, type WriteServices } from '../object-store/write-services.ts'
import type { DeleteOptions } from '../object-store/write-options.ts'
import type { ApiRequest, CachedObject, RequestScope } from '../types.ts'
import { ensureObject, textsAt } from '../validation/object-fields.ts'
import { namespaceDeletionWorkers, namespacePassMs, namespaceRetryMs, watchRetryMs } from './limits.ts'

const contentFinalizer = 'kubernetes'

/** Pods go at once: no kubelet of this control plane would ever confirm their end. */
const options: DeleteOptions = {
  dryRun: false,
  gracePeriodSeconds: 0,
  orphanDependents: undefined,
  propagationPolicy: 'Background',
  preconditions: { uid: undefined, resourceVersion: undefined },
}

export interface Controller {
  /** No pass starts afterwards; resolves when the running one has ended. */
  stop(): Promise<void>
}

/**
 * Empties namespaces marked for deletion and then takes their `kubernetes` finalizer away, which removes them: what
 * kube-controller-manager's namespace controller does, so that `kubectl delete namespace` ends without one. Any number of
 * these may run at the same time: every step is a compare-and-swap that bears being done already.
 *
 * @param services - Of the write path, its cache loaded.
 */
export function startNamespaceDeletion(services: WriteServices): Controller {
  const log = services.env.log.child({ part: 'namespace-deletion' })
  return new NamespaceDeletion(services, log)
}

class NamespaceDeletion implements Controller {
  readonly #services: WriteServices
  readonly #log: Logger
  /** Names to look at: bounded by the number of namespaces. */
  readonly #waiting = new Set<string>()
  readonly #timers = new Set<Timer>()
  readonly #abort = new AbortController()
  #watcher: Watcher | undefined
  #running: Promise<void> | undefined

  constructor(services: WriteServices, log: Logger) {
    this.#services = services
    this.#log = log
    this.#watch()
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    this.#watcher?.cancel()
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
    await this.#running
  }

  /** Everything there now, and then what changes; a change seen twice costs one look. */
  #watch(): void {
    const { store, cache } = this.#services
    const prefix = namespaceKey('')
    this.#watcher = store.watch(
      { key: keyBytes(prefix), rangeEnd: keyBytes('/registry/namespaces0'), startRevision: 0, prevKv: false },
      {
        onBatch: (batch) => {
          for (const event of batch.events) {
            if (event.type === 'put') this.#look(Buffer.from(event.kv.key).toString('utf8').slice(prefix.length))
          }
        },
        onEnd: () => {
          if (!this.#abort.signal.aborted) this.#later(watchRetryMs, () => this.#watch())
        },
      },
    )
    for (const namespace of cache.list(prefix)) if (namespace.deleting) this.#look(namespace.name)
  }

  #later(delayMs: number, run: () => void): void {
    const timer = this.#services.env.scheduler.after(delayMs, () => {
      this.#timers.delete(timer)
      if (!this.#abort.signal.aborted) run()
    })
    this.#timers.add(timer)
  }

  #look(name: string): void {
    this.#waiting.add(name)
    if (this.#running !== undefined || this.#abort.signal.aborted) return
    // Not inside the store's apply, from which watch events come.
    this.#running = new Promise<void>((done) => this.#services.env.scheduler.soon(done))
      .then(() => this.#work())
      .finally(() => {
        this.#running = undefined
        const [next] = this.#waiting
        if (next !== undefined) this.#look(next)
      })
  }

  async #work(): Promise<void> {
    for (const name of this.#waiting) {
      if (this.#abort.signal.aborted) return
      this.#waiting.delete(name)
      const deadline = new AbortController()
      const stop = (): void => deadline.abort()
      const timer = this.#services.env.scheduler.after(namespacePassMs, stop)
      this.#abort.signal.addEventListener('abort', stop)
      try {
        await this.#pass(name, deadline.signal)
      } catch (error) {
        if (this.#abort.signal.aborted) return
        this.#log.warn({ error, namespace: name }, 'namespace not emptied, trying again')
        this.#later(namespaceRetryMs, () => this.#look(name))
      } finally {
        timer.cancel()
        this.#abort.signal.removeEventListener('abort', stop)
      }
    }
  }

  async #pass(name: string, signal: AbortSignal): Promise<void> {
    const { cache } = this.#services
    await cache.fresh({ signal })
    if (cache.get(namespaceKey(name))?.deleting !== true) return
    const remaining = await this.#deleteContent(name, signal)
    if (remaining > 0) {
      this.#log.debug({ namespace: name, remaining }, 'namespace still has content')
      this.#later(namespaceRetryMs, () => this.#look(name))
      return
    }
    await this.#finalize(name, signal)
  }

  /** How many objects are still there, held by finalizers. */
  async #deleteContent(name: string, signal: AbortSignal): Promise<number> {
    const scopes = this.#contentScopes()
    for (const scope of scopes) {
      const objects = this.#services.cache.list(listPrefix(scope.resource, name))
      await this.#deleteAll(scope, objects, signal)
    }
    await this.#services.cache.fresh({ signal })
    return scopes.reduce(
      (count, scope) => count + this.#services.cache.list(listPrefix(scope.resource, name)).length,
      0,
    )
  }

  /** Pods first, as controllers would otherwise make new ones; one scope per place where objects lie. */
  #contentScopes(): readonly RequestScope[] {
    const seen = new Set<string>()
    const scopes: RequestScope[] = []
    for (const { resource, strategy } of this.#services.registry.all()) {
      const prefix = resource.storagePrefix
      const served = resource.served[0]
      if (!resource.namespaced || prefix === undefined || served === undefined || seen.has(prefix)) continue
      if (!resource.verbs.includes('delete')) continue
      seen.add(prefix)
      const scope: RequestScope = { resource, served, strategy, subresource: undefined }
      if (prefix === '/registry/pods') scopes.unshift(scope)
      else scopes.push(scope)
    }
    return scopes
  }

  async #deleteAll(scope: RequestScope, objects: readonly CachedObject[], signal: AbortSignal): Promise<void> {
    const queue = objects.values()
    const worker = async (): Promise<void> => {
      for (const object of queue) {
        // Marked already: only its finalizers' owners can help now.
        if (object.deleting && scope.strategy.graceSeconds === undefined) continue
        await this.#deleteOne(scope, object, signal)
      }
    }
    await Promise.all(Array.from({ length: namespaceDeletionWorkers }, worker))
  }

  async #deleteOne(scope: RequestScope, object: CachedObject, signal: AbortSignal): Promise<void> {
    const request = ownRequest(object, scope, signal)
    const context = strategyContext(this.#services, request, { dryRun: false, subresource: '' })
    const write: WriteRequest = { scope, request, context, fieldManager: '' }
    try {
      await deleteObject(this.#services, write, targetOf(scope, object.namespace, object.name), options)
    } catch (error) {
      if (!(error instanceof ApiError) || error.reason !== 'NotFound') throw error
    }
  }

  async #finalize(name: string, signal: AbortSignal): Promise<void> {
    const scope = this.#services.registry.find('', 'v1', 'namespaces', '')
    if (scope === undefined) throw new Error('namespaces are not served')
    const target = targetOf(scope, '', name)
    const call = { operation: 'update', dryRun: false, signal }
    const outcome = await this.#services.objects.write(target, call, async (current) => {
      if (current === undefined || !current.cached.deleting) return { do: 'keep' }
      const { object } = current
      const spec = ensureObject(object, 'spec')
      const left = textsAt(spec, 'finalizers').filter((finalizer) => finalizer !== contentFinalizer)
      if (left.length === 0) delete spec['finalizers']
      else spec['finalizers'] = left
      if (left.length === 0 && deletionState(object).finalizers === 0) return { do: 'delete' }
      return { do: 'put', object }
    })
    if (outcome.did === 'deleted') this.#log.info({ namespace: name }, 'namespace deleted')
  }
}

/** Controllers write as the server itself. */
function ownRequest(object: CachedObject, scope: RequestScope, signal: AbortSignal): ApiRequest {
  const { gvk } = scope.served
  return {
    info: {
      isResourceRequest: true,
      path: object.key,
      verb: 'delete',
      apiPrefix: gvk.group === '' ? 'api' : 'apis',
      group: gvk.group,
      version: gvk.version,
      namespace: object.namespace,
      resource: scope.resource.plural,
      subresource: '',
      name: object.name,
    },
    method: 'DELETE',
    query: new URLSearchParams(),
    headers: {},
    user: { name: 'system:serviceaccount:kube-system:namespace-controller', uid: '', groups: [], extra: {} },
    signal,
    body: () => Promise.resolve(new Uint8Array()),
    warn() {},
  }
}
