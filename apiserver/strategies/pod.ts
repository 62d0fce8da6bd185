import { compareQuantities, type ObjectValue, typeDescriptor } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { forbiddenField, invalidValue, required } from '../validation/field-error.ts'
import {
  copyValue,
  ensureObject,
  entriesAt,
  metadataOf,
  numberAt,
  objectAt,
  objectsAt,
  record,
  setOrRemove,
  textAt,
  valueAt,
} from '../validation/object-fields.ts'
import { validatePodOnly, validatePodSpec } from '../validation/pod-spec.ts'
import { inRange, int32Max } from '../validation/ranges.ts'
import { sameObject, sameRaw } from '../validation/semantic-equality.ts'
import type { KindRules } from './kind-rules.ts'
import { appendAll } from '../append.ts'

const podSpecType = (): ReturnType<typeof typeDescriptor> => typeDescriptor('io.k8s.api.core.v1.PodSpec')

const qosResources = ['cpu', 'memory'] as const

/** Guaranteed, Burstable or BestEffort, from cpu and memory alone (pkg/apis/core/v1/helper/qos). */
export function qosClass(spec: unknown): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const podLevel = objectAt(spec, 'resources')
  const holders =
    podLevel !== undefined && Object.keys(podLevel).length > 0
      ? [podLevel]
      : [...objectsAt(spec, 'containers'), ...objectsAt(spec, 'initContainers')].map((container) =>
          objectAt(container, 'resources'),
        )
  let any = false
  let guaranteed = holders.length > 0
  for (const resources of holders) {
    const limits = new Map(entriesAt(resources, 'limits'))
    const requests = new Map(entriesAt(resources, 'requests'))
    for (const name of qosResources) {
      const limit = positive(limits.get(name))
      const request = positive(requests.get(name))
      if (limit !== undefined || request !== undefined) any = true
      // A limit alone counts as the request too: defaulting made it one.
      if (limit === undefined || compareQuantities(request ?? limit, limit) !== 0) guaranteed = false
    }
  }
  if (!any) return 'BestEffort'
  return guaranteed ? 'Guaranteed' : 'Burstable'
}

const positive = (quantity: string | undefined): string | undefined =>
  quantity === undefined || (compareQuantities(quantity, '0') ?? 0) <= 0 ? undefined : quantity

const immutableText =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

/** The old spec with everything taken from the new one that may change. */
function withMutableFields(spec: ObjectValue, old: ObjectValue): ObjectValue {
  const allowed = copyValue(old)
  for (const list of ['containers', 'initContainers'] as const) {
    const containers = objectsAt(spec, list)
    for (const [index, container] of objectsAt(allowed, list).entries()) {
      const next = containers[index]
      if (next !== undefined && containers.length === objectsAt(allowed, list).length) {
        setOrRemove(container, 'image', next['image'])
      }
    }
  }
  setOrRemove(allowed, 'activeDeadlineSeconds', spec['activeDeadlineSeconds'])
  setOrRemove(allowed, 'tolerations', spec['tolerations'])
  if ((numberAt(old, 'terminationGracePeriodSeconds') ?? 0) < 0 && spec['terminationGracePeriodSeconds'] === 1) {
    allowed['terminationGracePeriodSeconds'] = 1
  }
  if (objectsAt(old, 'schedulingGates').length > 0) {
    setOrRemove(allowed, 'schedulingGates', spec['schedulingGates'])
    // A pod that waits at a gate is not scheduled: where it may run can still be narrowed.
    setOrRemove(allowed, 'nodeSelector', spec['nodeSelector'])
    takeNodeAffinity(allowed, spec)
  }
  return allowed
}

/** The other affinities stay: label keys were merged into them at creation. */
function takeNodeAffinity(allowed: ObjectValue, spec: ObjectValue): void {
  const next = valueAt(spec, 'affinity', 'nodeAffinity')
  if (next === undefined && objectAt(allowed, 'affinity') === undefined) return
  setOrRemove(ensureObject(allowed, 'affinity'), 'nodeAffinity', next)
  if (
    next === undefined &&
    spec['affinity'] === undefined &&
    Object.keys(ensureObject(allowed, 'affinity')).length === 0
  ) {
    delete allowed['affinity']
  }
}

function validateUpdate(object: ObjectValue, old: ObjectValue): readonly Cause[] {
  const spec = objectAt(object, 'spec') ?? {}
  const before = objectAt(old, 'spec') ?? {}
  const causes: Cause[] = []
  for (const list of ['containers', 'initContainers'] as const) {
    const containers = objectsAt(spec, list)
    if (containers.length !== objectsAt(before, list).length) {
      return [...causes, forbiddenField(`spec.${list}`, 'pod updates may not add or remove containers')]
    }
    for (const [index, container] of containers.entries()) {
      if (textAt(container, 'image') === '') causes.push(required(`spec.${list}[${index}].image`))
    }
  }
  const deadline = validateDeadline(numberAt(spec, 'activeDeadlineSeconds'), numberAt(before, 'activeDeadlineSeconds'))
  appendAll(causes, deadline)
  if (deadline.length > 0) return causes
  const tolerations = objectsAt(spec, 'tolerations')
  const kept = (old: ObjectValue): boolean => tolerations.some((toleration) => sameToleration(toleration, old))
  if (!objectsAt(before, 'tolerations').every(kept)) {
    const text = 'existing toleration can not be modified except its tolerationSeconds'
    causes.push(forbiddenField('spec.tolerations', text))
  }
  const oldGates = new Set(objectsAt(before, 'schedulingGates').map((gate) => textAt(gate, 'name')))
  for (const [index, gate] of objectsAt(spec, 'schedulingGates').entries()) {
    const name = textAt(gate, 'name')
    if (oldGates.has(name)) continue
    const text = `only deletion is allowed, but found new scheduling gate '${name}'`
    causes.push(forbiddenField(`spec.schedulingGates[${index}].name`, text))
  }
  if (oldGates.size > 0) appendAll(causes, validateNarrowing(spec, before))
  if (!sameObject(spec, withMutableFields(spec, before), podSpecType())) {
    causes.push(forbiddenField('spec', immutableText))
  }
  return causes
}

/** A deadline may come, and come nearer. */
function validateDeadline(after: number | undefined, before: number | undefined): readonly Cause[] {
  const at = 'spec.activeDeadlineSeconds'
  if (after === undefined) {
    return before === undefined
      ? []
      : [invalidValue(at, undefined, 'must not update from a positive integer to nil value')]
  }
  const range = inRange(after, 0, int32Max, at)
  if (range.length > 0 || before === undefined || after <= before) return range
  return [invalidValue(at, after, 'must be less than or equal to previous value')]
}

/** Behind a gate the choice of nodes may become smaller, never other. */
function validateNarrowing(spec: ObjectValue, before: ObjectValue): readonly Cause[] {
  const causes: Cause[] = []
  const selector = objectAt(spec, 'nodeSelector') ?? {}
  if (entriesAt(before, 'nodeSelector').some(([key, value]) => selector[key] !== value)) {
    const text = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)'
    causes.push(invalidValue('spec.nodeSelector', selector, text))
  }
  const path = [
    'affinity',
    'nodeAffinity',
    'requiredDuringSchedulingIgnoredDuringExecution',
    'nodeSelectorTerms',
  ] as const
  const at = `spec.${path.join('.')}`
  const terms = objectsAt(spec, ...path)
  const oldTerms = objectsAt(before, ...path)
  if (oldTerms.length > 0 && terms.length !== oldTerms.length) {
    const text = 'no additions/deletions to non-empty NodeSelectorTerms list are allowed'
    return [...causes, invalidValue(at, terms, text)]
  }
  for (const [index, term] of oldTerms.entries()) {
    const next = terms[index] ?? {}
    if (hasOnlyAdditions(next, term)) continue
    causes.push(invalidValue(`${at}[${index}]`, next, 'only additions are allowed (no mutations or deletions)'))
  }
  return causes
}

function hasOnlyAdditions(term: ObjectValue, old: ObjectValue): boolean {
  const lists = ['matchExpressions', 'matchFields'] as const
  const count = (of: ObjectValue): number => lists.reduce((sum, list) => sum + objectsAt(of, list).length, 0)
  // A term that selects nothing must not begin to select.
  if (count(old) === 0) return count(term) === 0
  return lists.every((list) =>
    objectsAt(old, list).every((one) => objectsAt(term, list).some((other) => sameRaw(one, other))),
  )
}

function sameToleration(a: ObjectValue, b: ObjectValue): boolean {
  return ['key', 'operator', 'value', 'effect'].every((field) => textAt(a, field) === textAt(b, field))
}

function validatePod(object: ObjectValue): readonly Cause[] {
  const spec = objectAt(object, 'spec')
  return [...validatePodSpec(spec, 'spec', true), ...validatePodOnly(spec, 'spec')]
}

/** kubernetes pkg/registry/core/pod. */
export const podRules: KindRules = {
  prepareForCreate(object) {
    object['status'] = record({ phase: 'Pending', qosClass: qosClass(object['spec']) })
  },
  validate: validatePod,
  validateCreate(object) {
    const causes: Cause[] = []
    if (objectsAt(object, 'spec', 'ephemeralContainers').length > 0) {
      causes.push(forbiddenField('spec.ephemeralContainers', 'cannot be set on create'))
    }
    if (textAt(object, 'spec', 'nodeName') !== '' && objectsAt(object, 'spec', 'schedulingGates').length > 0) {
      causes.push(forbiddenField('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'))
    }
    return causes
  },
  validateUpdate,
  graceSeconds(object, asked) {
    const phase = textAt(object, 'status', 'phase')
    if (textAt(object, 'spec', 'nodeName') === '' || phase === 'Succeeded' || phase === 'Failed') return 0
    const period = asked ?? numberAt(object, 'spec', 'terminationGracePeriodSeconds') ?? 0
    return period < 0 ? 1 : period
  },
  subresources: {
    status: {
      prepare(object, sent, old) {
        const status = ensureObject(sent, 'status')
        // The class is decided once, at creation.
        setOrRemove(status, 'qosClass', valueAt(old, 'status', 'qosClass'))
        object['status'] = status
        setOrRemove(metadataOf(object), 'ownerReferences', copyValue(valueAt(old, 'metadata', 'ownerReferences')))
      },
    },
    ephemeralcontainers: {
      prepare(object, sent) {
        setOrRemove(ensureObject(object, 'spec'), 'ephemeralContainers', valueAt(sent, 'spec', 'ephemeralContainers'))
      },
      validate: validateEphemeralContainers,
    },
    resize: {
      prepare(object, sent) {
        for (const list of ['containers', 'initContainers']) {
          const next = new Map(objectsAt(sent, 'spec', list).map((container) => [textAt(container, 'name'), container]))
          for (const container of objectsAt(object, 'spec', list)) {
            const resized = next.get(textAt(container, 'name'))
            if (resized === undefined) continue
            setOrRemove(container, 'resources', resized['resources'])
            setOrRemove(container, 'resizePolicy', resized['resizePolicy'])
          }
        }
      },
      validate: validateResize,
    },
  },
}

function validateEphemeralContainers(object: ObjectValue, old: ObjectValue): readonly Cause[] {
  const at = 'spec.ephemeralContainers'
  const next = new Map(objectsAt(object, 'spec', 'ephemeralContainers').map((one) => [textAt(one, 'name'), one]))
  const causes: Cause[] = [...validatePod(object)]
  for (const container of objectsAt(old, 'spec', 'ephemeralContainers')) {
    const kept = next.get(textAt(container, 'name'))
    const name = textAt(container, 'name')
    if (kept === undefined) {
      causes.push(forbiddenField(at, `existing ephemeral containers ${JSON.stringify(name)} may not be removed\n`))
    } else if (!sameRaw(kept, container)) {
      causes.push(forbiddenField(at, `existing ephemeral containers ${JSON.stringify(name)} may not be changed\n`))
    }
  }
  return causes
}

function validateResize(object: ObjectValue, old: ObjectValue): readonly Cause[] {
  const causes: Cause[] = [...validatePod(object)]
  const before = textAt(old, 'status', 'qosClass')
  const after = qosClass(object['spec'])
  if (before !== '' && before !== after) {
    causes.push(invalidValue('spec', after, 'Pod QOS Class may not change as a result of resizing'))
  }
  return causes
}
