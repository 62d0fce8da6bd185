import { createObjectCache, type WatchCache } from '../../../apiserver/cache/object-cache.ts'
import type { WindowLimits } from '../../../apiserver/cache/event-window.ts'
import { createResponder } from '../../../apiserver/encoding/responder.ts'
import { createReadHandlers, type ReadHandlers } from '../../../apiserver/handlers/read-handlers.ts'
import { createResourceRegistry } from '../../../apiserver/registry.ts'
import type { RequestInfo, RequestScope, Strategy } from '../../../apiserver/types.ts'
import { encodeJson, resources, typeOf, type ObjectValue } from '../../../schemas/index.ts'
import { createMemoryStore, type Store } from '../../../storage/index.ts'
import { createRequest, createTestEnv, MemoryReply, type TestEnv } from '../doubles.ts'

/** The least a strategy needs to be for reading; pods select on two fields. */
export function readStrategy(plural: string): Strategy {
  const isPod = plural === 'pods'
  const text = (value: unknown): string => (typeof value === 'string' ? value : '')
  const part = (object: ObjectValue, name: string): ObjectValue => (object[name] ?? {}) as ObjectValue
  return {
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: true,
    tracksGeneration: false,
    returnsDeletedObject: false,
    applyDefaults() {},
    prepareForCreate() {},
    prepareForUpdate() {},
    validate: () => [],
    validateUpdate: () => [],
    selectableFields: (object) => ({
      'spec.nodeName': text(part(object, 'spec')['nodeName']),
      'status.phase': text(part(object, 'status')['phase']),
    }),
    fieldLabels: isPod ? ['spec.nodeName', 'status.phase'] : [],
  }
}

export interface ReadApi {
  readonly env: TestEnv
  readonly store: Store
  readonly cache: WatchCache
  readonly handlers: ReadHandlers
  scope(plural: string, group?: string, version?: string): RequestScope
  put(plural: string, object: ObjectValue): Promise<number>
  remove(plural: string, namespace: string, name: string): Promise<number>
  compact(revision: number): Promise<void>
  /** Starts a request; `done` settles with the handler. */
  ask(verb: 'get' | 'list' | 'watch', plural: string, options?: AskOptions): { reply: MemoryReply; done: Promise<void> }
  close(): Promise<void>
}

export interface AskOptions {
  readonly namespace?: string
  readonly name?: string
  readonly query?: string
  readonly accept?: string
  readonly signal?: AbortSignal
  readonly reply?: MemoryReply
  readonly group?: string
  readonly version?: string
}

export const signal: AbortSignal = new AbortController().signal

/** Get, list and watch on a store in memory. */
export async function createReadApi(
  options: { limits?: WindowLimits; seed?: number; tickMs?: number; store?: Store } = {},
): Promise<ReadApi> {
  const env = createTestEnv(options.seed, { tickMs: options.tickMs ?? 0 })
  const store = options.store ?? createMemoryStore({ env })
  const registry = createResourceRegistry({
    resources: resources(),
    strategyFor: (resource) => readStrategy(resource.plural),
  })
  const cache = createObjectCache({
    store,
    registry,
    env,
    log: env.log,
    ...(options.limits !== undefined && { limits: options.limits }),
  })
  const responder = createResponder({ env, registry })
  const handlers = createReadHandlers({ env, store, cache, responder, registry })
  await cache.ready
  const scope = (plural: string, group = '', version = 'v1'): RequestScope => {
    const found = registry.find(group, version, plural, '')
    if (found === undefined) throw new Error(`${plural} is not served`)
    return found
  }
  const keyOf = (plural: string, namespace: string, name: string): Uint8Array => {
    const { resource } = scope(plural)
    return Buffer.from([resource.storagePrefix, ...(resource.namespaced ? [namespace] : []), name].join('/'))
  }
  return {
    env,
    store,
    cache,
    handlers,
    scope,
    async put(plural, object) {
      const { name, namespace = '' } = object['metadata'] as { readonly name: string; readonly namespace?: string }
      const key = keyOf(plural, namespace, name)
      const gvk = scope(plural).resource.storageVersion
      const value = encodeJson(object, typeOf(gvk)!, gvk)
      const result = await store.txn({ compare: [], success: [{ type: 'put', key, value }], failure: [] }, { signal })
      return result.revision
    },
    async remove(plural, namespace, name) {
      const key = keyOf(plural, namespace, name)
      const result = await store.txn({ compare: [], success: [{ type: 'delete', key }], failure: [] }, { signal })
      return result.revision
    },
    compact: (revision) => store.compact({ revision, physical: false }, { signal }),
    ask(verb, plural, asked = {}) {
      const { group = '', version = 'v1', name = '' } = asked
      const info: Partial<RequestInfo> = {
        verb,
        resource: plural,
        namespace: asked.namespace ?? '',
        group,
        version,
        name: name || nameOfSelector(asked.query),
      }
      const reply = asked.reply ?? new MemoryReply()
      const request = createRequest(info, {
        query: asked.query ?? '',
        headers: asked.accept === undefined ? {} : { accept: asked.accept },
        ...(asked.signal !== undefined && { signal: asked.signal }),
      })
      const done = (async () => handlers[verb](scope(plural, group, version), request, reply))()
      done.catch(() => {})
      return { reply, done }
    },
    async close() {
      handlers.close()
      cache.close()
      await store.close()
    },
  }
}

/** As RequestInfo does: a selector of one name names the request. */
function nameOfSelector(query = ''): string {
  return /^metadata\.name=([^,]+)$/.exec(new URLSearchParams(query).get('fieldSelector') ?? '')?.[1] ?? ''
}

export function configMap(
  name: string,
  options: { namespace?: string; labels?: Record<string, string>; data?: string } = {},
): ObjectValue {
  return {
    metadata: {
      name,
      namespace: options.namespace ?? 'default',
      uid: `uid-${name}`,
      creationTimestamp: '2029-12-31T23:55:00Z',
      ...(options.labels !== undefined && { labels: options.labels }),
    },
    data: { value: options.data ?? '' },
  }
}

export interface WatchLine {
  readonly type: string
  readonly object: {
    readonly kind: string
    readonly metadata: {
      readonly name?: string
      readonly namespace?: string
      readonly resourceVersion?: string
      readonly annotations?: Readonly<Record<string, string>>
      readonly labels?: Readonly<Record<string, string>>
    }
    readonly code?: number
    readonly reason?: string
    readonly message?: string
    readonly data?: Readonly<Record<string, string>>
    readonly columnDefinitions?: readonly unknown[] | null
    readonly rows?: readonly { readonly cells: readonly unknown[] }[]
  }
}

export function lines(reply: MemoryReply): readonly WatchLine[] {
  return reply.text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as WatchLine)
}

/** "ADDED a 5" per line. */
export function story(reply: MemoryReply): readonly string[] {
  return lines(reply).map(({ type, object }) =>
    [type, object.metadata?.name ?? object.reason ?? '', object.metadata?.resourceVersion ?? object.code ?? ''].join(
      ' ',
    ),
  )
}

export interface ListBody {
  readonly kind: string
  readonly apiVersion: string
  readonly metadata: {
    readonly resourceVersion: string
    readonly continue?: string
    readonly remainingItemCount?: number
  }
  readonly items: readonly {
    readonly kind?: string
    readonly metadata: { readonly name: string; readonly resourceVersion: string }
  }[]
}

export const listBody = (reply: MemoryReply): ListBody => JSON.parse(reply.text) as ListBody
