import { ApiError, badRequest } from '../errors.ts'
import { matchNamespace } from '../object-store/object-meta.ts'
import type { WriteFunction, WriteOutcome } from '../object-store/object-store.ts'
import { groupResource } from '../object-store/object-store.ts'
import { decodeObjectBody } from '../object-store/request-body.ts'
import { generatedNameAttemptsMax } from '../object-store/limits.ts'
import { writeOptions } from '../object-store/write-options.ts'
import { prepareCreate, targetOf, type WriteRequest } from '../object-store/write-pipeline.ts'
import { strategyContext, type WriteServices } from '../object-store/write-services.ts'
import { alreadyExists } from '../errors.ts'
import type { ApiRequest, Handler, RequestScope } from '../types.ts'
import { copyValue, metadataOf, textAt } from '../validation/object-fields.ts'
import type { ObjectValue } from '../../schemas/index.ts'

/** POST of a new object: 201 and the object. */
export function createHandler(services: WriteServices): Handler {
  return async (scope, request, reply) => {
    services.responder.check(scope, request)
    const options = writeOptions(request, 'CreateOptions')
    const decoded = await decodeObjectBody(scope, request, options.fieldValidation)
    const context = strategyContext(services, request, { dryRun: options.dryRun, subresource: '' })
    const outcome = await createObject(
      services,
      { scope, request, context, fieldManager: options.fieldManager },
      decoded,
    )
    services.responder.object(scope, request, reply, { status: 201, object: outcome.object })
  }
}

/**
 * Creates the object, which is of the storage version, in the request's namespace. With generateName, names are tried
 * until one is free.
 *
 * @throws ApiError 409 when it exists already.
 */
export async function createObject(
  services: WriteServices,
  write: WriteRequest,
  decoded: ObjectValue,
): Promise<WriteOutcome> {
  const { scope, request } = write
  const namespace = scope.resource.namespaced ? request.info.namespace : ''
  if (scope.resource.namespaced && namespace === '') {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
  matchNamespace(decoded, scope.resource, namespace)
  const generated = textAt(decoded, 'metadata', 'name') === '' && textAt(decoded, 'metadata', 'generateName') !== ''
  for (let attempt = 1; ; attempt++) {
    try {
      return await createOnce(services, write, decoded, namespace)
    } catch (error) {
      const exists = error instanceof ApiError && error.reason === 'AlreadyExists'
      if (!exists || !generated) throw error
      if (attempt >= generatedNameAttemptsMax) throw generatedNameTaken(error)
    }
  }
}

async function createOnce(
  services: WriteServices,
  write: WriteRequest,
  decoded: ObjectValue,
  namespace: string,
): Promise<WriteOutcome> {
  const { scope, request, context } = write
  // The first round may use the request's copy up; a round after a lost race starts from the body again.
  const object = copyValue(decoded)
  await prepareCreate(services, write, object, namespace)
  const name = textAt(object, 'metadata', 'name')
  const target = targetOf(scope, namespace, name)
  let ready: ObjectValue | undefined = object
  const run: WriteFunction = async (current) => {
    if (current !== undefined) throw alreadyExists(groupResource(target), name)
    if (ready === undefined) {
      const again = copyValue(decoded)
      metadataOf(again)['name'] = name
      await prepareCreate(services, write, again, namespace)
      return { do: 'put', object: again }
    }
    const first = ready
    ready = undefined
    return { do: 'put', object: first }
  }
  const lease = await leaseFor(services, scope, request, context.dryRun)
  const call = { operation: 'create', dryRun: context.dryRun, signal: request.signal, ...lease }
  return services.objects.write(target, call, run)
}

/** Events live by a lease; everything else stays. */
export async function leaseFor(
  services: WriteServices,
  scope: RequestScope,
  request: Pick<ApiRequest, 'signal'>,
  dryRun: boolean,
): Promise<{ readonly lease?: bigint }> {
  if (dryRun || scope.resource.storagePrefix !== '/registry/events') return {}
  return { lease: await services.eventLeases.current(request.signal) }
}

function generatedNameTaken(error: ApiError): ApiError {
  return new ApiError(
    409,
    'AlreadyExists',
    `${error.message}, the server was not able to generate a unique name for the object`,
    {
      cause: error,
      details: { ...error.details, retryAfterSeconds: 1 },
    },
  )
}
