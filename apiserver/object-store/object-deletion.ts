import type { ObjectValue } from '../../schemas/index.ts'
import { conflict, notFound } from '../errors.ts'
import { garbageCollectionOf } from '../strategies/kind-table.ts'
import { metadataOf, numberAt, objectAt, textAt, textsAt } from '../validation/object-fields.ts'
import { bumpGeneration, deletionState, timestamp } from './object-meta.ts'
import {
  type CurrentObject,
  groupResource,
  type ObjectTarget,
  type WriteOutcome,
  type WriteStep,
} from './object-store.ts'
import type { DeleteOptions } from './write-options.ts'
import { attributesOf, uidMismatch, type WriteRequest } from './write-pipeline.ts'
import type { WriteServices } from './write-services.ts'

/**
 * Deleting in two phases (kubernetes/apiserver registry/rest/delete.go and registry/generic/registry/store.go): an object
 * with finalizers or a grace period is only marked; it goes when the last finalizer is removed, or at once when nothing
 * holds it.
 */

export interface Deletion {
  /** Gone, rather than marked. */
  readonly deleted: boolean
  readonly outcome: WriteOutcome
}

export async function deleteObject(
  services: WriteServices,
  write: WriteRequest,
  target: ObjectTarget,
  options: DeleteOptions,
): Promise<Deletion> {
  const { context, request } = write
  const call = { operation: 'delete', dryRun: options.dryRun, signal: request.signal }
  /** Set once the marked object may go: the next write removes it. */
  let goOn = false
  const marked = await services.objects.write(target, call, async (current) => {
    goOn = false
    if (current === undefined) throw notFound(groupResource(target), target.name)
    const attributes = attributesOf(write, 'DELETE', target.namespace, target.name, undefined, current.object)
    await services.admission.admit(attributes)
    checkPreconditions(target, current, options)
    await services.admission.validate(attributes)
    if (isNamespace(target)) return markNamespace(current, options, context.now, target)
    const step = markObject(target, current, options, context.now)
    goOn = step.goOn
    return step.step
  })
  if (!goOn || options.dryRun) return { deleted: marked.did === 'deleted', outcome: marked }
  // Grace 0 asked of a kind with graceful deletion: watchers first see the object marked, then gone. If it is gone by
  // now, or was marked and removed by its own controller, that is what was asked for.
  const gone = await services.objects
    .write(target, call, async (current) => {
      if (current === undefined || current.cached.uid !== marked.object.uid) return { do: 'keep' }
      if (deletionState(current.object).finalizers > 0) return { do: 'keep' }
      return { do: 'delete' }
    })
    .catch((error: unknown) => {
      if (isNotFound(error)) return { did: 'deleted' as const, object: marked.object, revision: marked.revision }
      throw error
    })
  return { deleted: gone.did === 'deleted', outcome: gone }
}

const isNotFound = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'reason' in error && error.reason === 'NotFound'

function checkPreconditions(target: ObjectTarget, current: CurrentObject, options: DeleteOptions): void {
  const { uid, resourceVersion } = options.preconditions
  const { cached } = current
  if (uid !== undefined && uid !== cached.uid) {
    if (isNamespace(target)) throw conflict(groupResource(target), target.name, uidMismatch(target, uid, current))
    throw conflict(
      { group: target.resource.group, resource: target.resource.kind },
      target.name,
      `the UID in the precondition (${uid}) does not match the UID in record (${cached.uid}). The object might have been deleted and then recreated`,
    )
  }
  if (resourceVersion !== undefined && resourceVersion !== String(cached.revision)) {
    throw conflict(
      { group: target.resource.group, resource: target.resource.kind },
      target.name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${cached.revision}). The object might have been modified`,
    )
  }
}

interface Marked {
  readonly step: WriteStep
  /** After the marking has been written, delete for good. */
  readonly goOn: boolean
}

function markObject(target: ObjectTarget, current: CurrentObject, options: DeleteOptions, now: Date): Marked {
  const { object } = current
  const metadata = metadataOf(object)
  const state = deletionState(object)
  const graceSeconds = target.strategy.graceSeconds
  if (graceSeconds !== undefined && state.deleting && state.graceSeconds !== undefined) {
    // A deletion under way may only be made shorter.
    const asked = options.gracePeriodSeconds
    if (asked === undefined || asked >= state.graceSeconds) return keepOrGo(state)
    const period = Math.max(asked, 0)
    const deadlineMs = Date.parse(textAt(metadata, 'deletionTimestamp'))
    metadata['deletionTimestamp'] = timestamp(new Date(deadlineMs - (state.graceSeconds - period) * 1000))
    metadata['deletionGracePeriodSeconds'] = period
    return { step: { do: 'put', object }, goOn: period === 0 && state.finalizers === 0 }
  }
  setCollectorFinalizers(target, object, options)
  const finalizers = textsAt(metadata, 'finalizers').length
  if (graceSeconds !== undefined && !state.deleting) {
    const period = graceSeconds(object, options.gracePeriodSeconds)
    metadata['deletionTimestamp'] = timestamp(new Date(now.getTime() + period * 1000))
    metadata['deletionGracePeriodSeconds'] = period
    if ((numberAt(metadata, 'generation') ?? 0) > 0) bumpGeneration(object)
    return { step: { do: 'put', object }, goOn: period === 0 && finalizers === 0 }
  }
  if (finalizers === 0) return { step: { do: 'delete' }, goOn: false }
  markNow(object, now)
  return { step: { do: 'put', object }, goOn: false }
}

/** An object already marked with nothing left that holds it goes; else it stays as it is. */
function keepOrGo(state: { readonly finalizers: number; readonly graceSeconds: number | undefined }): Marked {
  const free = state.finalizers === 0 && state.graceSeconds === 0
  return { step: free ? { do: 'delete' } : { do: 'keep' }, goOn: false }
}

function markNow(object: ObjectValue, now: Date): void {
  const metadata = metadataOf(object)
  const state = deletionState(object)
  if (!state.deleting && (numberAt(metadata, 'generation') ?? 0) > 0) bumpGeneration(object)
  if (!state.deleting || Date.parse(textAt(metadata, 'deletionTimestamp')) > now.getTime()) {
    metadata['deletionTimestamp'] = timestamp(now)
  }
  metadata['deletionGracePeriodSeconds'] = 0
}

const orphanFinalizer = 'orphan'
const foregroundFinalizer = 'foregroundDeletion'

/** What the garbage collector is asked to do with dependents, as finalizers; an explicit policy beats the kind's own. */
function setCollectorFinalizers(target: ObjectTarget, object: ObjectValue, options: DeleteOptions): void {
  const policy = garbageCollectionOf(target.resource)
  if (policy === 'unsupported') return
  const metadata = metadataOf(object)
  const before = textsAt(metadata, 'finalizers')
  const wanted = dependentsPolicy(before, options, policy)
  const after = before.filter((finalizer) => finalizer !== orphanFinalizer && finalizer !== foregroundFinalizer)
  if (wanted === 'Orphan') after.push(orphanFinalizer)
  if (wanted === 'Foreground') after.push(foregroundFinalizer)
  if (after.length === 0) delete metadata['finalizers']
  else metadata['finalizers'] = after
}

function dependentsPolicy(
  finalizers: readonly string[],
  options: DeleteOptions,
  policy: 'background' | 'orphan',
): 'Orphan' | 'Foreground' | 'Background' {
  if (options.orphanDependents !== undefined) return options.orphanDependents ? 'Orphan' : 'Background'
  if (options.propagationPolicy !== undefined) return options.propagationPolicy
  if (finalizers.includes(orphanFinalizer)) return 'Orphan'
  if (finalizers.includes(foregroundFinalizer)) return 'Foreground'
  return policy === 'orphan' ? 'Orphan' : 'Background'
}

const isNamespace = (target: ObjectTarget): boolean =>
  target.resource.group === '' && target.resource.plural === 'namespaces'

/** A namespace is marked Terminating first, and goes when its spec.finalizers are empty (registry/core/namespace). */
function markNamespace(current: CurrentObject, options: DeleteOptions, now: Date, target: ObjectTarget): WriteStep {
  const { object } = current
  const metadata = metadataOf(object)
  if (textAt(metadata, 'deletionTimestamp') === '') {
    metadata['deletionTimestamp'] = timestamp(now)
    const status = objectAt(object, 'status')
    if (status === undefined) object['status'] = { phase: 'Terminating' }
    else status['phase'] = 'Terminating'
    setCollectorFinalizers(target, object, options)
    return { do: 'put', object }
  }
  const held = textsAt(object, 'spec', 'finalizers').length > 0 || textsAt(metadata, 'finalizers').length > 0
  return held ? { do: 'keep' } : { do: 'delete' }
}
