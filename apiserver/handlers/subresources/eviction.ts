import { type ObjectValue, typeOf } from '../../../schemas/index.ts'
import { parseStored } from '../../encoding/stored-object.ts'
import { ApiError, forbidden, notFound } from '../../errors.ts'
import { bodyFormat } from '../../object-store/media-type.ts'
import { deleteObject } from '../../object-store/object-deletion.ts'
import { timestamp } from '../../object-store/object-meta.ts'
import type { CurrentObject, ObjectTarget } from '../../object-store/object-store.ts'
import { groupResource } from '../../object-store/object-store.ts'
import { decodeVersioned } from '../../object-store/request-body.ts'
import { writeOptions } from '../../object-store/write-options.ts'
import { strategyContext, type WriteServices } from '../../object-store/write-services.ts'
import type { CachedObject, Handler, RequestScope } from '../../types.ts'
import { isEmptySelector, selectorMatches } from '../../validation/label-selector.ts'
import { ensureObject, labelsOf, numberAt, objectsAt, textAt, valueAt } from '../../validation/object-fields.ts'
import { podTarget } from './binding.ts'
import { successStatus } from './success-status.ts'

const evictionKind = { group: 'policy', version: 'v1', kind: 'Eviction' }
const disruptedPodsMax = 2000
const staleBudgetRetrySeconds = 10

/** POST pods/<name>/eviction: a delete that asks the pod's disruption budget first (pkg/registry/core/pod/storage). */
export function evictionHandler(services: WriteServices): Handler {
  return async (scope, request, reply) => {
    const options = writeOptions(request, 'CreateOptions')
    const type = typeOf(evictionKind)
    if (type === undefined) throw new Error('no type for policy/v1 Eviction')
    const eviction = await decodeVersioned(
      { gvk: evictionKind, type },
      await request.body(),
      bodyFormat(request.headers['content-type']),
      options.fieldValidation,
      (text) => request.warn(text),
    )
    const dryRun = options.dryRun || valueAt(eviction, 'deleteOptions', 'dryRun') !== undefined
    const target = podTarget(services, request, eviction)
    const pod = await services.objects.read(target, { operation: 'create', signal: request.signal })
    if (pod === undefined) throw notFound(groupResource(target), target.name)
    if (!skipsBudgets(pod)) await takeFromBudget(services, target, pod, { dryRun, signal: request.signal })
    const pods: RequestScope = {
      ...scope,
      resource: target.resource,
      strategy: target.strategy,
      subresource: undefined,
    }
    const context = strategyContext(services, request, { dryRun, subresource: '' })
    const preconditions = valueAt(eviction, 'deleteOptions', 'preconditions')
    const text = (field: string): string | undefined => textAt(preconditions, field) || undefined
    await deleteObject(services, { scope: pods, request, context, fieldManager: '' }, target, {
      dryRun,
      gracePeriodSeconds: numberAt(eviction, 'deleteOptions', 'gracePeriodSeconds'),
      orphanDependents: undefined,
      propagationPolicy: undefined,
      preconditions: { uid: text('uid') ?? pod.cached.uid, resourceVersion: text('resourceVersion') },
    })
    services.responder.value(request, reply, { status: 201, value: successStatus(201) })
  }
}

/** A pod that is not running, or goes already, disrupts nothing. */
function skipsBudgets(pod: CurrentObject): boolean {
  const phase = textAt(pod.object, 'status', 'phase')
  return pod.cached.deleting || phase === 'Pending' || phase === 'Succeeded' || phase === 'Failed'
}

async function takeFromBudget(
  services: WriteServices,
  target: ObjectTarget,
  pod: CurrentObject,
  call: { readonly dryRun: boolean; readonly signal: AbortSignal },
): Promise<void> {
  await services.cache.fresh({ signal: call.signal })
  const budgets = services.cache
    .list(`/registry/poddisruptionbudgets/${target.namespace}/`)
    .filter((budget) => covers(budget, pod))
  const [budget, second] = budgets
  if (budget === undefined) return
  if (second !== undefined) {
    throw new ApiError(
      500,
      'InternalError',
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    )
  }
  const found = services.registry.find('policy', 'v1', 'poddisruptionbudgets', '')
  if (found === undefined) throw new Error('poddisruptionbudgets are not served')
  const budgetTarget: ObjectTarget = {
    resource: found.resource,
    strategy: found.strategy,
    namespace: budget.namespace,
    name: budget.name,
  }
  const now = new Date(services.env.clock.wallMs())
  await services.objects.write(budgetTarget, { operation: 'update', ...call }, async (current) => {
    if (current === undefined) return { do: 'keep' }
    return spend(current.object, pod, target.name, now) ? { do: 'put', object: current.object } : { do: 'keep' }
  })
}

function covers(budget: CachedObject, pod: CurrentObject): boolean {
  const selector = valueAt(parseStored(budget.stored), 'spec', 'selector')
  if (selector === undefined) return false
  return isEmptySelector(selector) || selectorMatches(selector, labelsOf(pod.object))
}

/** Takes one disruption. False: an unhealthy pod that costs nothing. */
function spend(budget: ObjectValue, pod: CurrentObject, name: string, now: Date): boolean {
  const status = ensureObject(budget, 'status')
  const observed = numberAt(status, 'observedGeneration') ?? 0
  if (observed < (numberAt(budget, 'metadata', 'generation') ?? 0)) {
    throw tooManyDisruptions(
      "Cannot evict pod as it would violate the pod's disruption budget.",
      `The disruption budget ${textAt(budget, 'metadata', 'name')} is still being processed by the server.`,
      staleBudgetRetrySeconds,
    )
  }
  const current = numberAt(status, 'currentHealthy') ?? 0
  const desired = numberAt(status, 'desiredHealthy') ?? 0
  if (!isReady(pod.object)) {
    const always = textAt(budget, 'spec', 'unhealthyPodEvictionPolicy') === 'AlwaysAllow'
    if (always || (current >= desired && desired > 0)) return false
  }
  const allowed = numberAt(status, 'disruptionsAllowed') ?? 0
  const budgetName = textAt(budget, 'metadata', 'name')
  const of = { group: 'policy', resource: 'poddisruptionbudgets' }
  if (allowed < 0) throw forbidden(of, budgetName, 'pdb disruptions allowed is negative')
  const disrupted = ensureObject(status, 'disruptedPods')
  if (Object.keys(disrupted).length > disruptedPodsMax) {
    throw forbidden(of, budgetName, 'DisruptedPods map too big - too many evictions not confirmed by PDB controller')
  }
  if (allowed === 0) {
    throw tooManyDisruptions(
      "Cannot evict pod as it would violate the pod's disruption budget.",
      `The disruption budget ${budgetName} needs ${desired} healthy pods and has ${current} currently`,
    )
  }
  status['disruptionsAllowed'] = allowed - 1
  disrupted[name] = timestamp(now)
  return true
}

const isReady = (pod: ObjectValue): boolean =>
  objectsAt(pod, 'status', 'conditions').some(
    (condition) => textAt(condition, 'type') === 'Ready' && textAt(condition, 'status') === 'True',
  )

function tooManyDisruptions(message: string, cause: string, retryAfterSeconds?: number): ApiError {
  return new ApiError(429, 'TooManyRequests', message, {
    details: {
      causes: [{ reason: 'DisruptionBudget', message: cause, field: '' }],
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    },
  })
}
