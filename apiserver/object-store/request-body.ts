import {
  applyDefaults,
  decodeEnvelope,
  decodeJson,
  decodeProtobuf,
  decodeYaml,
  type Envelope,
  type FieldProblem,
  type ObjectValue,
  parseJson,
  SchemaError,
  type ServedVersion,
} from '../../schemas/index.ts'
import { apiVersionOf } from '../encoding/stored-object.ts'
import { badRequest } from '../errors.ts'
import type { ApiRequest, RequestScope } from '../types.ts'
import { isObject, metadataOf, record, textAt } from '../validation/object-fields.ts'
import { type BodyFormat, bodyFormat } from './media-type.ts'
import type { FieldValidation } from './write-options.ts'

/**
 * From a body to an object of the storage version, defaults applied, apiVersion and kind checked against the path
 * (kubernetes/apiserver endpoints/handlers/{create,update,rest}.go for the texts).
 *
 * @throws ApiError 400 what cannot be decoded, 415 a format that is not served.
 */
export async function decodeObjectBody(
  scope: RequestScope,
  request: ApiRequest,
  validation: FieldValidation,
): Promise<ObjectValue> {
  const format = bodyFormat(request.headers['content-type'])
  const body = await request.body()
  return decodeObject(scope, body, format, validation, (message) => request.warn(message))
}

/** The same from bytes at hand: apply and other kinds of body. */
export async function decodeObject(
  scope: RequestScope,
  body: Uint8Array,
  format: BodyFormat,
  validation: FieldValidation,
  warn: (message: string) => void,
): Promise<ObjectValue> {
  const versioned = await decodeVersioned(scope.served, body, format, validation, warn)
  return toStorageVersion(scope, versioned)
}

/** Of any served kind, in its own version: what subresources with a kind of their own take (Scale, Eviction, Binding). */
export async function decodeVersioned(
  served: Pick<ServedVersion, 'gvk' | 'type'>,
  body: Uint8Array,
  format: BodyFormat,
  validation: FieldValidation,
  warn: (message: string) => void,
): Promise<ObjectValue> {
  if (format === 'protobuf') return decodeProtobufBody(served, body)
  let object: ObjectValue
  let problems: readonly FieldProblem[]
  try {
    const decoded = format === 'yaml' ? await decodeYaml(body, served.type) : decodeJson(body, served.type)
    object = decoded.object
    problems = decoded.problems
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error
    throw undecodable(served, body, format, error)
  }
  checkKind(served, object)
  reportProblems(served, textAt(object, 'kind'), problems, validation, warn)
  return object
}

/** Strict validation has nothing to say here: unknown fields of protobuf have no names. */
function decodeProtobufBody(served: Pick<ServedVersion, 'gvk' | 'type'>, body: Uint8Array): ObjectValue {
  let envelope: Envelope
  try {
    envelope = decodeEnvelope(body)
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error
    throw unrecognized(served, body, error.message)
  }
  const { apiVersion, kind, raw } = envelope
  // Before the message is read as something that it is not.
  checkKind(served, { apiVersion, kind })
  try {
    const object = decodeProtobuf(raw, served.type)
    if (kind !== '') object['kind'] = kind
    if (apiVersion !== '') object['apiVersion'] = apiVersion
    return object
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error
    throw cannotBeHandled(served, served.gvk.kind, served.gvk.version, error.message)
  }
}

/** Defaults of the version it came in, conversion, defaults of the version it is stored in. */
export function toStorageVersion(scope: RequestScope, versioned: ObjectValue): ObjectValue {
  const { storageVersion } = scope.resource
  if (scope.served.gvk.version !== storageVersion.version || scope.served.gvk.group !== storageVersion.group) {
    applyDefaults(versioned, scope.served.type)
  }
  const object = scope.served.toStorage(versioned)
  object['apiVersion'] = apiVersionOf(storageVersion)
  object['kind'] = storageVersion.kind
  scope.strategy.applyDefaults(object)
  return object
}

/**
 * As a client of the request's version would see it, apiVersion and kind included. The object itself and its metadata are
 * the caller's to change; everything below is shared.
 */
export function fromStorageVersion(scope: RequestScope, object: ObjectValue): ObjectValue {
  const versioned = record(scope.served.fromStorage(object))
  versioned['metadata'] = record(metadataOf(versioned))
  versioned['apiVersion'] = apiVersionOf(scope.served.gvk)
  versioned['kind'] = scope.served.gvk.kind
  return versioned
}

export function reportProblems(
  served: Pick<ServedVersion, 'gvk'>,
  kind: string,
  problems: readonly FieldProblem[],
  validation: FieldValidation,
  warn: (message: string) => void,
): void {
  if (problems.length === 0 || validation === 'Ignore') return
  if (validation === 'Warn') {
    for (const problem of problems) warn(problem.message)
    return
  }
  const list = problems.map((problem) => problem.message).join(', ')
  throw cannotBeHandled(
    served,
    kind === '' ? served.gvk.kind : kind,
    served.gvk.version,
    `strict decoding error: ${list}`,
  )
}

/** An absent kind or apiVersion is the path's; another one is refused. */
function checkKind(served: Pick<ServedVersion, 'gvk'>, object: ObjectValue): void {
  const kind = textAt(object, 'kind')
  const apiVersion = textAt(object, 'apiVersion')
  const expected = apiVersionOf(served.gvk)
  if (kind !== '' && kind !== served.gvk.kind) {
    const version = (apiVersion === '' ? expected : apiVersion).split('/').at(-1) ?? ''
    const named = apiVersion === '' ? expected : apiVersion
    throw cannotBeHandled(
      served,
      kind,
      version,
      `no kind ${JSON.stringify(kind)} is registered for the resource's version ${JSON.stringify(named)}`,
    )
  }
  if (apiVersion !== '' && apiVersion !== expected) {
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
    )
  }
}

function cannotBeHandled(served: Pick<ServedVersion, 'gvk'>, kind: string, version: string, why: string): Error {
  return badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${served.gvk.kind}: ${why}`)
}

function undecodable(
  served: Pick<ServedVersion, 'gvk'>,
  body: Uint8Array,
  format: BodyFormat,
  error: SchemaError,
): Error {
  const typed = error.code === 'ERR_TYPE' ? bodyKind(body, format) : undefined
  if (typed === undefined) {
    return unrecognized(served, body, `couldn't get version/kind; json parse error: ${error.message}`)
  }
  const kind = typed.kind === '' ? served.gvk.kind : typed.kind
  const version = typed.apiVersion.split('/').at(-1) ?? ''
  return cannotBeHandled(served, kind, version === '' ? served.gvk.version : version, error.message)
}

function unrecognized(served: Pick<ServedVersion, 'gvk'>, body: Uint8Array, why: string): Error {
  return badRequest(
    `the object provided is unrecognized (must be of type ${served.gvk.kind}): ${why} (${summary(body)})`,
  )
}

/** kind and apiVersion of a body whose other fields do not decode; undefined when it is no JSON object at all. */
function bodyKind(body: Uint8Array, format: BodyFormat): { kind: string; apiVersion: string } | undefined {
  if (format === 'yaml') return { kind: '', apiVersion: '' }
  try {
    const { value } = parseJson(body)
    if (!isObject(value)) return undefined
    return { kind: textAt(value, 'kind'), apiVersion: textAt(value, 'apiVersion') }
  } catch (error) {
    if (error instanceof SchemaError) return undefined
    throw error
  }
}

/** The first 30 bytes: as text when they look like JSON, else in hex. */
function summary(body: Uint8Array): string {
  if (body.length === 0) return '<empty>'
  const head = Buffer.from(body.subarray(0, 30))
  const text = body[0] === 0x7b ? head.toString('utf8') : head.toString('hex')
  return body.length > 30 ? `${text} ...` : text
}
