import { objectKey } from '../store-keys.ts'
import { notFound } from '../errors.ts'
import type { Handler } from '../types.ts'
import { parseResourceVersion } from './list-options.ts'
import type { ReadServices } from './read-services.ts'

/** One object. resourceVersion: unset = most recent, 0 = any, N = not older than N. */
export function getHandler(services: ReadServices): Handler {
  const { cache, responder } = services
  return async (scope, request, reply) => {
    responder.check(scope, request)
    const { resource } = scope
    const { namespace, name } = request.info
    const revision = parseResourceVersion(request.query.get('resourceVersion') ?? '')
    if (revision === undefined) await cache.fresh({ signal: request.signal })
    else if (revision > 0) await cache.waitUntil(revision, { signal: request.signal })
    const object = cache.get(objectKey(resource, resource.namespaced ? namespace : '', name))
    if (object === undefined) throw notFound({ group: resource.group, resource: resource.plural }, name)
    responder.object(scope, request, reply, { status: 200, object })
  }
}
