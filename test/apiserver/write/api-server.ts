import { createObjectCache } from '../../../apiserver/cache/object-cache.ts'
import { createResponder } from '../../../apiserver/encoding/responder.ts'
import { ApiError } from '../../../apiserver/errors.ts'
import { createWriteHandlers, type WriteHandlers } from '../../../apiserver/handlers/write-handlers.ts'
import { createResourceRegistry } from '../../../apiserver/registry.ts'
import { strategyFor } from '../../../apiserver/strategies/index.ts'
import type { CachedObject, Handler, ObjectCache, RequestScope, Verb } from '../../../apiserver/types.ts'
import { resources } from '../../../schemas/index.ts'
import { createMemoryStore, type Store } from '../../../storage/index.ts'
import { createRequest, createTestEnv, MemoryReply, type TestEnv, until } from '../doubles.ts'

export interface Answer {
  readonly status: number
  /** Parsed body: an object, or a Status for errors too. */
  readonly body: ReturnType<typeof JSON.parse>
  readonly warnings: readonly string[]
  /** The body as it came; empty for errors. */
  readonly bytes: Uint8Array
}

export interface TestServer {
  readonly env: TestEnv
  readonly store: Store
  readonly write: WriteHandlers
  /** `path`: "default/configmaps/name", "configmaps" groups by "apps.deployments"; see `parsePath`. */
  call(verb: Verb, path: string, body?: unknown, options?: CallOptions): Promise<Answer>
  revision(): Promise<number>
  /** The write path goes on with what the cache holds now, as if its watch lagged; undone by thaw(). */
  freezeCache(): void
  thaw(): void
  close(): Promise<void>
}

export interface CallOptions {
  readonly query?: string
  readonly contentType?: string
  readonly accept?: string
}

const signal = new AbortController().signal

/**
 * The write handlers on a memory store with the real cache and encoder, without HTTP. Paths read
 * `[namespace:]resource[.group[@version]][/name[/subresource]]`.
 */
export async function startTestServer(
  options: { readonly wrap?: (store: Store) => Store; readonly seed?: number } = {},
): Promise<TestServer> {
  const env = createTestEnv(options.seed ?? 7)
  const memory = createMemoryStore({ env })
  const store = options.wrap?.(memory) ?? memory
  const registry = createResourceRegistry({ resources: resources(), strategyFor })
  const cache = createObjectCache({ store: memory, registry, env, log: env.log })
  await cache.ready
  const responder = createResponder({ env, registry })
  let frozen: ReadonlyMap<string, CachedObject> | undefined
  const laggingCache: ObjectCache = {
    get revision() {
      return cache.revision
    },
    get: (key) => (frozen === undefined ? cache.get(key) : frozen.get(key)),
    list: (prefix) => cache.list(prefix),
    count: (prefix) => cache.count(prefix),
    waitUntil: (revision, waitOptions) => cache.waitUntil(revision, waitOptions),
    fresh: (freshOptions) => cache.fresh(freshOptions),
  }
  const write = createWriteHandlers({ env, store, cache: laggingCache, responder, registry })

  function scopeOf(resource: string, group: string, version: string, subresource: string): RequestScope {
    const entry = resources().find((one) => one.group === group && one.plural === resource)
    const wanted = version === '' ? (entry?.served[0]?.gvk.version ?? 'v1') : version
    const scope = registry.find(group, wanted, resource, subresource)
    if (scope === undefined) throw new Error(`${resource}.${group}/${subresource} is not served`)
    return scope
  }

  function handlerOf(verb: Verb, subresource: string): Handler {
    if (subresource !== '') {
      const handler = write.subresources[subresource]?.[verb]
      if (handler === undefined) throw new Error(`no ${verb} of ${subresource}`)
      return handler
    }
    const handlers: Partial<Record<Verb, Handler>> = write
    const handler = handlers[verb]
    if (handler === undefined) throw new Error(`no ${verb}`)
    return handler
  }

  const server: TestServer = {
    env,
    store,
    write,
    async call(verb, path, body, callOptions = {}) {
      const { namespace, resource, group, version, name, subresource } = parsePath(path)
      const scope = scopeOf(resource, group, version, subresource)
      const warnings: string[] = []
      const bytes =
        body === undefined ? '' : typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
      const request = createRequest(
        { verb, group, version: scope.served.gvk.version, namespace, resource, subresource, name },
        {
          body: bytes,
          warnings,
          signal,
          query: callOptions.query ?? '',
          headers: {
            ...(callOptions.contentType !== undefined && { 'content-type': callOptions.contentType }),
            ...(callOptions.accept !== undefined && { accept: callOptions.accept }),
          },
        },
      )
      const reply = new MemoryReply()
      try {
        await handlerOf(verb, subresource)(scope, request, reply)
        // A list is streamed behind the handler's back.
        await until(() => !reply.streamed || reply.memory.ended || reply.memory.destroyed, 'the end of the answer')
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        const { code, reason, message, details } = error
        return { status: code, body: { code, reason, message, details }, warnings, bytes: new Uint8Array(0) }
      }
      const text = reply.text
      const answered = reply.body ?? new Uint8Array(0)
      return { status: reply.status, body: text.startsWith('{') ? JSON.parse(text) : text, warnings, bytes: answered }
    },
    revision: () => memory.currentRevision({ signal }),
    freezeCache() {
      const prefixes = registry.all().flatMap(({ resource }) => resource.storagePrefix ?? [])
      const objects = prefixes.flatMap((prefix) => cache.list(`${prefix}/`))
      frozen = new Map(objects.map((object) => [object.key, object]))
    },
    thaw() {
      frozen = undefined
    },
    async close() {
      cache.close()
      await memory.close()
    },
  }
  for (const name of ['default', 'kube-system', 'kube-public', 'manifests']) {
    const made = await server.call('create', 'namespaces', { metadata: { name } })
    if (made.status !== 201) throw new Error(`namespace ${name}: ${made.body.message}`)
  }
  return server
}

export interface ParsedPath {
  readonly namespace: string
  readonly resource: string
  readonly group: string
  readonly version: string
  readonly name: string
  readonly subresource: string
}

function parsePath(path: string): ParsedPath {
  const colon = path.indexOf(':')
  const namespace = colon < 0 ? '' : path.slice(0, colon)
  const [head = '', name = '', subresource = ''] = path.slice(colon + 1).split('/')
  const [full = '', version = ''] = head.split('@')
  const dot = full.indexOf('.')
  return {
    namespace,
    resource: dot < 0 ? full : full.slice(0, dot),
    group: dot < 0 ? '' : full.slice(dot + 1),
    version,
    name,
    subresource,
  }
}
