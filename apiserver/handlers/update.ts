import type { ObjectValue } from '../../schemas/index.ts'
import { conflict, notFound } from '../errors.ts'
import { matchName, matchNamespace } from '../object-store/object-meta.ts'
import { groupResource, type ObjectTarget, type WriteFunction } from '../object-store/object-store.ts'
import { decodeObjectBody } from '../object-store/request-body.ts'
import { writeOptions } from '../object-store/write-options.ts'
import {
  prepareCreate,
  prepareUpdate,
  targetOf,
  uidMismatch,
  type WriteRequest,
} from '../object-store/write-pipeline.ts'
import { strategyContext, type WriteServices } from '../object-store/write-services.ts'
import type { Handler } from '../types.ts'
import { copyValue, metadataOf, textAt } from '../validation/object-fields.ts'
import { leaseFor } from './create.ts'

/**
 * PUT of a whole object, or of one of its subresources that take the object itself (status, finalize, approval, …): 200,
 * or 201 where the kind may be created this way.
 */
export function updateHandler(services: WriteServices): Handler {
  return async (scope, request, reply) => {
    services.responder.check(scope, request)
    const options = writeOptions(request, 'UpdateOptions')
    const decoded = await decodeObjectBody(scope, request, options.fieldValidation)
    const namespace = scope.resource.namespaced ? request.info.namespace : ''
    const { name, subresource } = request.info
    matchNamespace(decoded, scope.resource, namespace)
    matchName(decoded, name)
    const context = strategyContext(services, request, { dryRun: options.dryRun, subresource })
    const target = targetOf(scope, namespace, name)
    const write: WriteRequest = { scope, request, context, fieldManager: options.fieldManager }
    const lease = await leaseFor(services, scope, request, options.dryRun)
    const call = { operation: 'update', dryRun: options.dryRun, signal: request.signal, ...lease }
    const outcome = await services.objects.write(target, call, updateTo(services, write, target, decoded))
    const status = outcome.did === 'created' ? 201 : 200
    services.responder.object(scope, request, reply, { status, object: outcome.object })
  }
}

function updateTo(
  services: WriteServices,
  write: WriteRequest,
  target: ObjectTarget,
  decoded: ObjectValue,
): WriteFunction {
  return async (current) => {
    const object = copyValue(decoded)
    if (current !== undefined) return prepareUpdate(services, write, target, object, current)
    const of = groupResource(target)
    // before 404: who writes what they had read learns that this object is gone
    const uid = textAt(object, 'metadata', 'uid')
    if (uid !== '') throw conflict(of, target.name, uidMismatch(target, uid, undefined))
    if (!target.strategy.allowCreateOnUpdate || write.context.subresource !== '') throw notFound(of, target.name)
    delete metadataOf(object)['resourceVersion']
    await prepareCreate(services, write, object, target.namespace)
    return { do: 'put', object }
  }
}
