import {
  decodeValue,
  type FieldProblem,
  jsonPatch,
  jsonPatchOperationsMax,
  mergePatch,
  type ObjectValue,
  parseJson,
  SchemaError,
  strategicMergePatch,
} from '../../schemas/index.ts'
import { ApiError, badRequest, notFound, requestEntityTooLarge } from '../errors.ts'
import { mediaTypeOf, unsupportedMediaType } from '../object-store/media-type.ts'
import { matchName, matchNamespace } from '../object-store/object-meta.ts'
import { type CurrentObject, groupResource, type ObjectTarget } from '../object-store/object-store.ts'
import { fromStorageVersion, reportProblems, toStorageVersion } from '../object-store/request-body.ts'
import { writeOptions, type WriteOptions } from '../object-store/write-options.ts'
import { prepareUpdate, targetOf, type WriteRequest } from '../object-store/write-pipeline.ts'
import { strategyContext, type WriteServices } from '../object-store/write-services.ts'
import { isObject, metadataOf, textAt } from '../validation/object-fields.ts'
import type { Handler, RequestScope } from '../types.ts'
import { leaseFor } from './create.ts'

/** What a patch does to a document of the request's version. Throws SchemaError. */
export type PatchFunction = (document: ObjectValue, scope: Pick<RequestScope, 'served'>) => ObjectValue

const jsonPatchType = 'application/json-patch+json'
const mergePatchType = 'application/merge-patch+json'
const strategicPatchType = 'application/strategic-merge-patch+json'
const applyPatchType = 'application/apply-patch+yaml'

/**
 * PATCH: the patch is applied to the newest object, again from the start when somebody else was faster. A resourceVersion
 * inside the patch makes it conditional.
 */
export function patchHandler(services: WriteServices): Handler {
  return async (scope, request, reply) => {
    services.responder.check(scope, request)
    const type = mediaTypeOf(request.headers['content-type'])
    requirePatchType(type)
    const options = writeOptions(request, 'PatchOptions', 'other')
    const patch = parsePatch(type, await request.body(), (problems) => {
      reportProblems(scope.served, '', problems, options.fieldValidation, (message) => request.warn(message))
    })
    const namespace = scope.resource.namespaced ? request.info.namespace : ''
    const { name, subresource } = request.info
    const context = strategyContext(services, request, { dryRun: options.dryRun, subresource })
    const target = targetOf(scope, namespace, name)
    const write: WriteRequest = { scope, request, context, fieldManager: options.fieldManager }
    const lease = await leaseFor(services, scope, request, options.dryRun)
    const call = { operation: 'patch', dryRun: options.dryRun, signal: request.signal, ...lease }
    const outcome = await services.objects.write(target, call, async (current) => {
      if (current === undefined) throw notFound(groupResource(target), name)
      const object = patched(write, target, current, patch, options)
      return prepareUpdate(services, write, target, object, current)
    })
    services.responder.object(scope, request, reply, { status: 200, object: outcome.object })
  }
}

/** The patched object in the storage version, decoded and checked like a body. */
function patched(
  write: WriteRequest,
  target: ObjectTarget,
  current: CurrentObject,
  patch: PatchFunction,
  options: WriteOptions,
): ObjectValue {
  const { scope, context } = write
  const document = fromStorageVersion(scope, current.object)
  metadataOf(document)['resourceVersion'] = String(current.cached.revision)
  const { object, problems } = applyPatch(scope, document, patch)
  reportProblems(scope.served, '', problems, options.fieldValidation, (message) => context.warn(message))
  checkPatchedKind(scope, object)
  matchName(object, target.name)
  matchNamespace(object, target.resource, target.namespace)
  return toStorageVersion(scope, object)
}

/** Applies the patch and decodes the result. @throws ApiError 400, or 422 for a patch that does not fit the object. */
export function applyPatch(
  scope: Pick<RequestScope, 'served'>,
  document: ObjectValue,
  patch: PatchFunction,
): ReturnType<typeof decodeValue> {
  try {
    return decodeValue(patch(document, scope), scope.served.type)
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error
    throw patchFailure(error)
  }
}

function patchFailure(error: SchemaError): ApiError {
  switch (error.code) {
    case 'ERR_PATCH_TEST':
    case 'ERR_PATCH':
      return new ApiError(422, 'Invalid', 'the server rejected our request due to an error in our request', {
        cause: error,
        details: { causes: [{ reason: 'UnexpectedServerResponse', field: '', message: error.message }] },
      })
    case 'ERR_SYNTAX':
    case 'ERR_TYPE':
    case 'ERR_DEPTH':
      return badRequest(error.message)
    default:
      return error.code satisfies never
  }
}

function checkPatchedKind(scope: RequestScope, object: ObjectValue): void {
  const { gvk } = scope.served
  const expected = gvk.group === '' ? gvk.version : `${gvk.group}/${gvk.version}`
  const kind = textAt(object, 'kind')
  const apiVersion = textAt(object, 'apiVersion')
  if (kind !== gvk.kind || apiVersion !== expected) {
    throw badRequest(
      `${kind} in version ${JSON.stringify(apiVersion)} cannot be handled as a ${gvk.kind}: a patch may not change apiVersion or kind`,
    )
  }
}

export function requirePatchType(type: string): void {
  if (type === applyPatchType) {
    throw new ApiError(
      415,
      'UnsupportedMediaType',
      'server-side apply (application/apply-patch+yaml) is not supported by this server',
    )
  }
  const accepted = [jsonPatchType, mergePatchType, strategicPatchType]
  if (!accepted.includes(type)) throw unsupportedMediaType(accepted)
}

/** Parses once; what comes back may be applied many times. */
export function parsePatch(
  type: string,
  body: Uint8Array,
  report: (problems: readonly FieldProblem[]) => void,
): PatchFunction {
  let patch: unknown
  try {
    const parsed = parseJson(body)
    patch = parsed.value
    report(parsed.problems)
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error
    throw badRequest(`error decoding patch: ${error.message}`)
  }
  if (type === jsonPatchType) return parsedJsonPatch(patch)
  if (!isObject(patch))
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${jsonKind(patch)} into Go value of type map[string]interface {}`,
    )
  const value = patch
  if (type === mergePatchType) return (document) => asDocument(mergePatch(document, value))
  return (document, scope) => strategicMergePatch(document, value, scope.served.type)
}

function parsedJsonPatch(patch: unknown): PatchFunction {
  if (!Array.isArray(patch)) {
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${jsonKind(patch)} into Go value of type jsonpatch.Patch`,
    )
  }
  if (patch.length > jsonPatchOperationsMax) {
    throw requestEntityTooLarge(
      `The allowed maximum operations in a JSON patch is ${jsonPatchOperationsMax}, got ${patch.length}`,
    )
  }
  return (document) => asDocument(jsonPatch(document, patch))
}

function asDocument(value: unknown): ObjectValue {
  if (isObject(value)) return value
  throw badRequest(`a patch must leave an object, not ${jsonKind(value)}`)
}

function jsonKind(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'boolean') return 'bool'
  return typeof value === 'bigint' ? 'number' : typeof value
}
