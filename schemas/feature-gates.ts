import { readData } from './data-node.ts'
import { lazy } from './lazy.ts'
import { isObject } from './patch/json-value.ts'
import type { FieldDescriptor, ObjectValue, TypeDescriptor, TypeRef } from './types.ts'

/**
 * Fields behind feature gates that are off in the version we speak for (`data/feature-gates.json`). They are known, so
 * that strict decoding lets them pass, and not kept: the real server drops them before it validates.
 */
const offGates = lazy(() => new Set((readData('feature-gates.json') as { off: readonly string[] }).off))

/** All gates of a field must be on. */
export function isDisabled(field: FieldDescriptor): boolean {
  return field.featureGate !== undefined && field.featureGate.split(',').some((gate) => offGates().has(gate))
}

/** What to take away from values of one type, and where to look further; undefined where there is nothing to do. */
interface Plan {
  readonly fields: readonly string[]
  readonly below: readonly { readonly field: string; readonly type: TypeRef }[]
}

// One plan per type, made when it is first asked for; immutable then.
const plans = new WeakMap<TypeDescriptor, Plan>()
const matters = new WeakMap<TypeDescriptor, boolean>()

/** Without its namespace this reference would name something else: it goes as a whole. */
const claimSpec = 'io.k8s.api.core.v1.PersistentVolumeClaimSpec'

/** Takes disabled fields out of `object`, in place. Idempotent. */
export function dropDisabledFields(object: ObjectValue, type: TypeDescriptor): void {
  const plan = planOf(type)
  for (const field of plan.fields) delete object[field]
  if (type.name === claimSpec && isObject(object['dataSourceRef']) && hasText(object['dataSourceRef']['namespace'])) {
    delete object['dataSourceRef']
  }
  for (const step of plan.below) dropInside(object[step.field], step.type)
}

const hasText = (value: unknown): boolean => typeof value === 'string' && value !== ''

function dropInside(value: unknown, type: TypeRef): void {
  if (type.is === 'list') {
    if (Array.isArray(value)) for (const item of value) dropInside(item, type.of)
  } else if (isObject(value)) {
    if (type.is === 'map') for (const key of Object.keys(value)) dropInside(value[key], type.of)
    else if (type.is === 'message') dropDisabledFields(value, type.descriptor())
  }
}

function planOf(type: TypeDescriptor): Plan {
  let plan = plans.get(type)
  if (plan === undefined) {
    plan = {
      fields: type.fields.filter(isDisabled).map((field) => field.jsonName),
      below: type.fields.flatMap((field) => {
        const of = messageIn(field.type)
        return of !== undefined && !isDisabled(field) && hasDisabled(of, new Set())
          ? [{ field: field.jsonName, type: field.type }]
          : []
      }),
    }
    plans.set(type, plan)
  }
  return plan
}

function messageIn(type: TypeRef): TypeDescriptor | undefined {
  if (type.is === 'message') return type.descriptor()
  return type.is === 'list' || type.is === 'map' ? messageIn(type.of) : undefined
}

/** `open`: the types being asked, for those that contain themselves. */
function hasDisabled(type: TypeDescriptor, open: Set<TypeDescriptor>): boolean {
  const known = matters.get(type)
  if (known !== undefined) return known
  if (open.has(type)) return false
  open.add(type)
  const answer = type.fields.some((field) => {
    const of = messageIn(field.type)
    return isDisabled(field) || (of !== undefined && hasDisabled(of, open))
  })
  open.delete(type)
  // A "no" found inside a recursion may be the recursion's own: only the outermost is final.
  if (answer || open.size === 0) matters.set(type, answer)
  return answer
}
