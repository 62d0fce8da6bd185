/**
 * Defaults of the built-in types. Three sources, in this order for each message: what the type's fields declare, the
 * unconditional ones of `data/defaults.json`, and the rules of core.ts and workloads.ts for those with a condition.
 *
 * Amounts in resource lists are rounded up to a thousandth besides.
 *
 * A message is completed before the messages inside it, so that what a rule creates is completed too.
 */
import { readData } from '../data-node.ts'
import { lazy } from '../lazy.ts'
import { roundQuantityUp } from '../scalars/quantity.ts'
import { isObject } from '../patch/json-value.ts'
import { newObject } from '../json/reader.ts'
import type { FieldDescriptor, ObjectValue, TypeDescriptor, TypeRef } from '../types.ts'
import { coreRules } from './core.ts'
import { type DefaultRule, fresh } from './rules.ts'
import { workloadRules } from './workloads.ts'

type DefaultTable = Readonly<Record<string, Readonly<Record<string, unknown>>>>

const table = lazy(() => readData('defaults.json') as DefaultTable)
const rules: Readonly<Record<string, DefaultRule>> = { ...coreRules, ...workloadRules }

/** What is to be done for one type; steps of fields below which nothing has defaults are left out. */
interface Plan {
  readonly values: readonly { readonly field: string; readonly value: unknown; readonly zeroIsAbsent: boolean }[]
  readonly rule: DefaultRule | undefined
  readonly below: readonly Step[]
}

interface Step {
  readonly field: string
  /** A Go struct that is no pointer: there even when it was not given. */
  readonly always: boolean
  readonly apply: (value: unknown) => void
  readonly type: TypeDescriptor | undefined
}

// One plan per type, made when the type is first defaulted; immutable then.
const plans = new WeakMap<TypeDescriptor, Plan>()
const matters = new WeakMap<TypeDescriptor, boolean>()

/** Completes `object` in place. Idempotent; also run on objects that an older version of this program stored. */
export function applyDefaults(object: ObjectValue, type: TypeDescriptor): void {
  const plan = planOf(type)
  for (const { field, value, zeroIsAbsent } of plan.values) {
    const present = object[field]
    if (present === undefined || (zeroIsAbsent && (present === '' || present === 0))) object[field] = fresh(value)
  }
  plan.rule?.(object)
  for (const step of plan.below) {
    const value = object[step.field]
    if (value !== undefined) step.apply(value)
    else if (step.always && step.type !== undefined) {
      const made = newObject()
      applyDefaults(made, step.type)
      if (Object.keys(made).length > 0) object[step.field] = made
    }
  }
}

/** Names in the data and the rules that fit no type or field: a test keeps this empty. */
export function misfitDefaults(find: (name: string) => TypeDescriptor | undefined): readonly string[] {
  const problems: string[] = []
  for (const name of new Set([...Object.keys(table()), ...Object.keys(rules)])) {
    const type = find(name)
    if (type === undefined) problems.push(name)
    else {
      const fields = Object.keys(table()[name] ?? {})
      problems.push(...fields.filter((field) => !type.byJsonName.has(field)).map((field) => `${name}.${field}`))
    }
  }
  return problems
}

function planOf(type: TypeDescriptor): Plan {
  let plan = plans.get(type)
  if (plan === undefined) {
    plan = makePlan(type)
    plans.set(type, plan)
  }
  return plan
}

function makePlan(type: TypeDescriptor): Plan {
  const listed = table()[type.name] ?? {}
  const values = type.fields.flatMap((field) => {
    const value = field.jsonName in listed ? listed[field.jsonName] : field.default
    return value === undefined ? [] : [{ field: field.jsonName, value, zeroIsAbsent: field.presence !== 'pointer' }]
  })
  const below = type.fields.flatMap((field) => stepOf(field) ?? [])
  return { values, rule: rules[type.name], below }
}

/** Finer amounts are rounded up: nothing is scheduled or accounted below a thousandth. */
const resourceListExponent = -3
const resourceListType = 'v1.ResourceList'

function roundResourceList(value: unknown): void {
  if (!isObject(value)) return
  for (const name of Object.keys(value)) {
    const amount = value[name]
    if (typeof amount === 'string') value[name] = roundQuantityUp(amount, resourceListExponent)
  }
}

const isResourceList = (field: FieldDescriptor): boolean => field.goType === resourceListType

function stepOf(field: FieldDescriptor): Step | undefined {
  if (isResourceList(field)) {
    return { field: field.jsonName, always: false, type: undefined, apply: roundResourceList }
  }
  const inner = messageOf(field.type)
  if (inner === undefined || !hasDefaults(inner, new Set())) return undefined
  const direct = field.type.is === 'message'
  return {
    field: field.jsonName,
    always: direct && field.presence === 'always',
    type: direct ? inner : undefined,
    apply: applierOf(field.type, inner),
  }
}

function applierOf(type: TypeRef, inner: TypeDescriptor): (value: unknown) => void {
  if (type.is === 'list') {
    const apply = applierOf(type.of, inner)
    return (value) => {
      if (Array.isArray(value)) for (const item of value) apply(item)
    }
  }
  if (type.is === 'map') {
    const apply = applierOf(type.of, inner)
    return (value) => {
      if (isObject(value)) for (const key of Object.keys(value)) apply(value[key])
    }
  }
  return (value) => {
    if (isObject(value)) applyDefaults(value, inner)
  }
}

function messageOf(type: TypeRef): TypeDescriptor | undefined {
  if (type.is === 'message') return type.descriptor()
  return type.is === 'list' || type.is === 'map' ? messageOf(type.of) : undefined
}

/** Whether a type or anything inside it has defaults; `open` holds the types being asked, for those that recurse. */
function hasDefaults(type: TypeDescriptor, open: Set<TypeDescriptor>): boolean {
  const known = matters.get(type)
  if (known !== undefined) return known
  if (open.has(type)) return false
  open.add(type)
  const own =
    type.name in table() ||
    rules[type.name] !== undefined ||
    type.fields.some((field) => field.default !== undefined || isResourceList(field))
  const answer =
    own ||
    type.fields.some((field) => {
      const inner = messageOf(field.type)
      return inner !== undefined && hasDefaults(inner, open)
    })
  open.delete(type)
  // A "no" found while a type around it was still open may be the recursion's own: only the outermost is final.
  if (answer || open.size === 0) matters.set(type, answer)
  return answer
}
