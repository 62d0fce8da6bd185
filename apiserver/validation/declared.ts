import type { FieldDescriptor, ObjectValue, TypeDescriptor, TypeRef } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { notSupported, required } from './field-error.ts'
import { isObject } from './object-fields.ts'

/**
 * What the type itself declares: required texts and enumerations. Only texts and enums count as missing when they are
 * empty: a required struct or list of Go's may well be its zero value. metadata has its own rules and status is the
 * word of controllers, so neither is looked at.
 */
export function validateDeclared(object: ObjectValue, type: TypeDescriptor): readonly Cause[] {
  const causes: Cause[] = []
  for (const field of type.fields) {
    if (skippedAtTop.has(field.jsonName)) continue
    validateField(object, field, field.jsonName, causes)
  }
  return causes
}

const skippedAtTop = new Set(['kind', 'apiVersion', 'metadata', 'status'])

function validateField(parent: ObjectValue, field: FieldDescriptor, at: string, causes: Cause[]): void {
  const value = parent[field.jsonName]
  if (value === undefined || value === '') {
    if (field.required === true && isText(field.type)) causes.push(required(at))
    return
  }
  validateValue(value, field.type, at, causes)
}

const isText = (type: TypeRef): boolean => type.is === 'string' || type.is === 'enum'

function validateValue(value: unknown, type: TypeRef, at: string, causes: Cause[]): void {
  if (type.is === 'enum') {
    if (typeof value === 'string' && value !== '' && !type.values.includes(value)) {
      causes.push(notSupported(at, value, supportedValues(type.values)))
    }
  } else if (type.is === 'message') {
    if (!isObject(value)) return
    for (const field of type.descriptor().fields) validateField(value, field, `${at}.${field.jsonName}`, causes)
  } else if (type.is === 'list') {
    if (!Array.isArray(value) || !hasRules(type.of)) return
    for (const [index, item] of value.entries()) validateValue(item, type.of, `${at}[${index}]`, causes)
  } else if (type.is === 'map') {
    if (!isObject(value) || !hasRules(type.of)) return
    for (const key of Object.keys(value)) validateValue(value[key], type.of, `${at}[${key}]`, causes)
  }
}

/** Lists that the real server does not sort, as clients print them. */
const listedInOrder: readonly (readonly string[])[] = [
  ['Always', 'OnFailure', 'Never'],
  ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'],
  ['File', 'FallbackToLogsOnError'],
  ['NoSchedule', 'PreferNoSchedule', 'NoExecute'],
  ['PreemptLowerPriority', 'Never'],
  ['Localhost', 'RuntimeDefault', 'Unconfined'],
]

function supportedValues(values: readonly string[]): readonly string[] {
  const known = values.filter((value) => value !== '')
  const ordered = listedInOrder.find(
    (list) => list.length === known.length && list.every((item) => known.includes(item)),
  )
  return ordered ?? known.toSorted()
}

/** Scalars other than enums declare nothing: no need to walk long lists and maps of them. */
const hasRules = (type: TypeRef): boolean =>
  type.is === 'enum' || type.is === 'message' || type.is === 'list' || type.is === 'map'
