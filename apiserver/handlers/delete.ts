import { deleteObject, type Deletion } from '../object-store/object-deletion.ts'
import { deleteOptions } from '../object-store/write-options.ts'
import { targetOf } from '../object-store/write-pipeline.ts'
import { strategyContext, type WriteServices } from '../object-store/write-services.ts'
import type { Handler, RequestScope } from '../types.ts'
import { record } from '../validation/object-fields.ts'
import type { ObjectValue } from '../../schemas/index.ts'

/**
 * DELETE of one object: 200 with the object while something still holds it (or for kinds that answer what they deleted),
 * else 200 with a Status.
 */
export function deleteHandler(services: WriteServices): Handler {
  return async (scope, request, reply) => {
    services.responder.check(scope, request)
    const options = await deleteOptions(request)
    const namespace = scope.resource.namespaced ? request.info.namespace : ''
    const context = strategyContext(services, request, { dryRun: options.dryRun, subresource: '' })
    const target = targetOf(scope, namespace, request.info.name)
    const write = { scope, request, context, fieldManager: '' }
    const deletion = await deleteObject(services, write, target, options)
    const { outcome } = deletion
    // 202 is kept for clients from before propagationPolicy.
    const status = !deletion.deleted && options.orphanDependents === false ? 202 : 200
    if (deletion.deleted && !scope.strategy.returnsDeletedObject) {
      services.responder.value(request, reply, { status, value: successStatus(scope, request.info.name, deletion) })
      return
    }
    services.responder.object(scope, request, reply, { status, object: outcome.object, at: outcome.revision })
  }
}

function successStatus(scope: RequestScope, name: string, deletion: Deletion): ObjectValue {
  const { group, plural } = scope.resource
  return record({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: record(),
    status: 'Success',
    details: record({
      name,
      ...(group === '' ? {} : { group }),
      kind: plural,
      uid: deletion.outcome.object.uid,
    }),
  })
}
