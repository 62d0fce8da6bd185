import { makeCachedObject } from '../encoding/stored-object.ts'
import { notFound } from '../errors.ts'
import { objectMatcher } from '../selectors/index.ts'
import type { ApiRequest, ApiServices, CachedObject, Handler, RequestScope } from '../types.ts'

/** The store under the name that clients know it by, whoever it is. */
const storeComponent = 'etcd-0'

const deprecation = 'v1 ComponentStatus is deprecated in v1.19+'

/**
 * `componentstatuses`: nothing stored, looked at when asked (kubernetes pkg/registry/core/componentstatus). Shows what
 * this process runs, which is the store; a scheduler and a controller manager are nobody's but the user's own.
 */
export function componentStatusHandlers(services: Pick<ApiServices, 'cache' | 'responder'>): {
  readonly get: Handler
  readonly list: Handler
} {
  const { cache, responder } = services

  /** A round of the quorum, as every consistent read makes one. */
  async function storeStatus(scope: RequestScope, signal: AbortSignal): Promise<CachedObject> {
    try {
      await cache.fresh({ signal })
      return statusObject(scope, { type: 'Healthy', status: 'True', message: 'ok' })
    } catch (error) {
      signal.throwIfAborted()
      const message = error instanceof Error ? error.message : String(error)
      return statusObject(scope, { type: 'Healthy', status: 'False', error: message })
    }
  }

  function begin(scope: RequestScope, request: ApiRequest): void {
    responder.check(scope, request)
    request.warn(deprecation)
  }

  return {
    async get(scope, request, reply) {
      begin(scope, request)
      const { name } = request.info
      if (name !== storeComponent) throw notFound({ group: '', resource: scope.resource.plural }, name)
      responder.object(scope, request, reply, { status: 200, object: await storeStatus(scope, request.signal) })
    },
    async list(scope, request, reply) {
      begin(scope, request)
      const matches = objectMatcher(scope, request.query)
      const objects = [await storeStatus(scope, request.signal)].filter(matches)
      await responder.list(scope, request, reply, { objects, revision: cache.revision })
    },
  }
}

/** Revision 0: an object that is not stored shows no resourceVersion. */
function statusObject(
  { resource, strategy }: RequestScope,
  condition: Readonly<Record<'type' | 'status', string>> & { readonly message?: string; readonly error?: string },
): CachedObject {
  const { kind, version } = resource.storageVersion
  const object = { kind, apiVersion: version, metadata: { name: storeComponent }, conditions: [condition] }
  return makeCachedObject({ resource, strategy, key: '', revision: 0, stored: Buffer.from(JSON.stringify(object)) })
}
