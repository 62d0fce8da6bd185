import type { ObjectValue } from '../../schemas/index.ts'
import type { AdmissionAttributes, AdmissionOperation } from '../admission/admission.ts'
import { ApiError, conflict, invalid, modifiedText } from '../errors.ts'
import type { ApiRequest, Cause, RequestScope, StrategyContext } from '../types.ts'
import { invalidValue } from '../validation/field-error.ts'
import { validateObjectMeta, validateObjectMetaUpdate } from '../validation/object-meta.ts'
import { metadataOf, textAt } from '../validation/object-fields.ts'
import { objectKey } from '../store-keys.ts'
import { nameRuleOf } from '../strategies/kind-table.ts'
import {
  bumpGeneration,
  carryMetadata,
  deletionState,
  dropDuplicateOwners,
  fillMetadata,
  generateName,
} from './object-meta.ts'
import { type CurrentObject, groupResource, type ObjectTarget, type WriteStep } from './object-store.ts'
import { storageType } from './stored-codec.ts'
import { sameExcept } from '../validation/semantic-equality.ts'
import type { WriteServices } from './write-services.ts'

/** One request's write, after its options are known. */
export interface WriteRequest {
  readonly scope: RequestScope
  readonly request: ApiRequest
  readonly context: StrategyContext
  readonly fieldManager: string
}

/**
 * create: admit → name, uid, timestamps → defaults again → field manager → strategy → validate → admission validates.
 * `object` is of the storage version and changed in place; what comes out is what gets stored.
 */
export async function prepareCreate(
  services: WriteServices,
  write: WriteRequest,
  object: ObjectValue,
  namespace: string,
): Promise<void> {
  const { scope, context } = write
  const { strategy, resource } = scope
  const metadata = metadataOf(object)
  if (textAt(metadata, 'resourceVersion') !== '') {
    throw new ApiError(500, '', 'resourceVersion should not be set on objects to be created')
  }
  const attributes = attributesOf(write, 'CREATE', namespace, textAt(metadata, 'name'), object, undefined)
  await services.admission.admit(attributes)
  dropDuplicateOwners(object, (message) => context.warn(message))
  fillMetadata(object, { now: context.now, uid: context.uid() })
  const base = textAt(metadata, 'generateName')
  if (textAt(metadata, 'name') === '' && base !== '') metadata['name'] = generateName(services.env, base)
  strategy.applyDefaults(object)
  services.fieldManager.update(object, undefined, write.fieldManager)
  if (strategy.tracksGeneration) metadata['generation'] = 1
  strategy.prepareForCreate(object, context)
  const causes = [...validateObjectMeta(object, rulesOf(scope)), ...strategy.validate(object)]
  if (causes.length > 0) throw invalid(groupKind(scope), textAt(metadata, 'name'), causes)
  await services.admission.validate({ ...attributes, name: textAt(metadata, 'name') })
  if (resource.namespaced && namespace === '') throw new Error(`${resource.plural} need a namespace`)
}

/**
 * update: resourceVersion and uid → admit → system fields carried over → defaults → field manager → strategy → generation
 * → validate → admission validates. Answers what to do with the result: an object that only waited for this last
 * finalizer goes.
 */
export async function prepareUpdate(
  services: WriteServices,
  write: WriteRequest,
  target: ObjectTarget,
  object: ObjectValue,
  current: CurrentObject,
): Promise<WriteStep> {
  const { scope, context } = write
  const { strategy } = scope
  const old = current.object
  requireSameVersion(target, object, current)
  const attributes = attributesOf(write, 'UPDATE', target.namespace, target.name, object, old)
  await services.admission.admit(attributes)
  dropDuplicateOwners(object, (message) => context.warn(message))
  carryMetadata(object, old)
  strategy.applyDefaults(object)
  services.fieldManager.update(object, old, write.fieldManager)
  strategy.prepareForUpdate(object, old, context)
  if (strategy.tracksGeneration && context.subresource !== 'status' && specChanged(target, object, old)) {
    bumpGeneration(object)
  }
  const causes: Cause[] = [
    ...validateObjectMetaUpdate(object, old),
    ...validateObjectMeta(object, rulesOf(scope)),
    ...strategy.validateUpdate(object, old, context),
  ]
  if (causes.length > 0) throw invalid(groupKind(scope), target.name, causes)
  await services.admission.validate(attributes)
  return goesWith(object, current.object) ? { do: 'delete', answer: object } : { do: 'put', object }
}

/**
 * resourceVersion given: it must be the current one. Not given: only where the kind allows it. uid given: it must match.
 * Takes resourceVersion out of the object.
 */
function requireSameVersion(target: ObjectTarget, object: ObjectValue, current: CurrentObject): void {
  const metadata = metadataOf(object)
  const of = groupResource(target)
  const uid = textAt(metadata, 'uid')
  if (uid !== '' && uid !== current.cached.uid) throw conflict(of, target.name, uidMismatch(target, uid, current))
  const given = textAt(metadata, 'resourceVersion')
  delete metadata['resourceVersion']
  if (given === '' || given === '0') {
    if (target.strategy.allowUnconditionalUpdate) return
    const cause = invalidValue('metadata.resourceVersion', 0, 'must be specified for an update')
    throw invalid({ group: of.group, kind: of.resource }, target.name, [cause])
  }
  if (!/^\d+$/.test(given)) {
    const why = `strconv.ParseUint: parsing ${JSON.stringify(given)}: invalid syntax`
    const cause = invalidValue('metadata.resourceVersion', given, why)
    throw invalid({ group: of.group, kind: of.resource }, target.name, [cause])
  }
  if (given !== String(current.cached.revision)) throw conflict(of, target.name, modifiedText)
}

/** The storage layer's own words, which clients know from logs. Nothing there: no uid is the right one. */
export function uidMismatch(target: ObjectTarget, uid: string, current: CurrentObject | undefined): string {
  const key = objectKey(target.resource, target.namespace, target.name)
  return `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current?.cached.uid ?? ''}`
}

const metadataAndStatus = new Set(['metadata', 'status'])

/** Everything beside metadata and status counts as the spec. */
function specChanged(target: ObjectTarget, object: ObjectValue, old: ObjectValue): boolean {
  return !sameExcept(object, old, storageType(target.resource), metadataAndStatus)
}

/** Marked for deletion, grace over, nothing left that holds it (registry/generic/registry/store.go). */
function goesWith(object: ObjectValue, old: ObjectValue): boolean {
  const before = deletionState(old)
  if (!before.deleting || (before.graceSeconds ?? 0) !== 0) return false
  if (deletionState(object).finalizers > 0) return false
  // Namespaces have a second set of finalizers, for their content.
  const spec = object['spec']
  const inner = textAt(object, 'kind') === 'Namespace' && typeof spec === 'object' && spec !== null
  if (!inner) return true
  const finalizers = (spec as ObjectValue)['finalizers']
  return !Array.isArray(finalizers) || finalizers.length === 0
}

export function attributesOf(
  write: Pick<WriteRequest, 'scope' | 'request' | 'context'>,
  operation: AdmissionOperation,
  namespace: string,
  name: string,
  object: ObjectValue | undefined,
  oldObject: ObjectValue | undefined,
): AdmissionAttributes {
  return {
    operation,
    resource: write.scope.resource,
    subresource: write.context.subresource,
    namespace,
    name,
    user: write.request.user,
    dryRun: write.context.dryRun,
    object,
    oldObject,
    signal: write.request.signal,
    warn: (message) => write.context.warn(message),
  }
}

export function groupKind(scope: RequestScope): { readonly group: string; readonly kind: string } {
  return { group: scope.resource.group, kind: scope.resource.kind }
}

function rulesOf(scope: RequestScope): Parameters<typeof validateObjectMeta>[1] {
  return { namespaced: scope.resource.namespaced, nameRule: nameRuleOf(scope.resource) }
}

export function targetOf(scope: RequestScope, namespace: string, name: string): ObjectTarget {
  return { resource: scope.resource, strategy: scope.strategy, namespace, name }
}
