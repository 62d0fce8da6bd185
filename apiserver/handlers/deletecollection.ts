import { ApiError } from '../errors.ts'
import { deleteCollectionWorkers } from '../object-store/limits.ts'
import { deleteObject } from '../object-store/object-deletion.ts'
import { listPrefix } from '../store-keys.ts'
import { deleteOptions, type DeleteOptions } from '../object-store/write-options.ts'
import { targetOf, type WriteRequest } from '../object-store/write-pipeline.ts'
import { strategyContext, type WriteServices } from '../object-store/write-services.ts'
import { objectMatcher } from '../selectors/index.ts'
import type { CachedObject, Handler } from '../types.ts'

/** DELETE of what the selectors choose: every object is deleted like a single one; the answer lists them all. */
export function deleteCollectionHandler(services: WriteServices): Handler {
  return async (scope, request, reply) => {
    services.responder.check(scope, request)
    const options = await deleteOptions(request)
    const matches = objectMatcher(scope, request.query)
    const namespace = scope.resource.namespaced ? request.info.namespace : ''
    const revision = await services.cache.fresh({ signal: request.signal })
    const chosen = services.cache.list(listPrefix(scope.resource, namespace)).filter(matches)
    const context = strategyContext(services, request, { dryRun: options.dryRun, subresource: '' })
    await deleteAll(services, { scope, request, context, fieldManager: '' }, chosen, options)
    await services.responder.list(scope, request, reply, { objects: chosen, revision })
  }
}

/** A few at a time; the first failure stops the rest. What is gone by the time it is reached is fine. */
async function deleteAll(
  services: WriteServices,
  write: WriteRequest,
  objects: readonly CachedObject[],
  options: DeleteOptions,
): Promise<void> {
  const queue = objects.values()
  let failed = false
  async function worker(): Promise<void> {
    for (const object of queue) {
      if (failed) return
      try {
        await deleteObject(services, write, targetOf(write.scope, object.namespace, object.name), options)
      } catch (error) {
        if (error instanceof ApiError && error.reason === 'NotFound') continue
        failed = true
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: deleteCollectionWorkers }, worker))
}
