import type { FieldDescriptor, TypeDescriptor, TypeRef } from '../../schemas/index.ts'
import { isObject } from './object-fields.ts'

/**
 * Equality as Go's apiequality.Semantic sees it, on decoded JSON: an absent list or map equals an empty one, and an
 * absent value equals its zero where the Go field is not a pointer. `paused: false` written out is no change of the spec.
 */
export function sameObject(a: unknown, b: unknown, type: TypeDescriptor): boolean {
  if (a === b) return true
  const left = isObject(a) ? a : {}
  const right = isObject(b) ? b : {}
  if (type.fields.length === 0 || type.preserveUnknown) return sameRaw(a, b)
  return type.fields.every((field) => sameField(left[field.jsonName], right[field.jsonName], field))
}

/** Whether everything but apiVersion, kind and the named top-level fields is the same. */
export function sameExcept(a: unknown, b: unknown, type: TypeDescriptor, except: ReadonlySet<string>): boolean {
  const left = isObject(a) ? a : {}
  const right = isObject(b) ? b : {}
  return type.fields.every(
    (field) =>
      field.jsonName === 'kind' ||
      field.jsonName === 'apiVersion' ||
      except.has(field.jsonName) ||
      sameField(left[field.jsonName], right[field.jsonName], field),
  )
}

/** The value of one field of `type`, compared the same way. */
export function sameFieldOf(a: unknown, b: unknown, type: TypeDescriptor, jsonName: string): boolean {
  const field = type.byJsonName.get(jsonName)
  return field === undefined ? sameRaw(a, b) : sameField(a, b, field)
}

function sameField(a: unknown, b: unknown, field: FieldDescriptor): boolean {
  if (a === b) return true
  if (field.presence === 'pointer' && (a === undefined) !== (b === undefined)) return false
  return sameTyped(a, b, field.type)
}

function sameTyped(a: unknown, b: unknown, type: TypeRef): boolean {
  if (type.is === 'message') return sameObject(a, b, type.descriptor())
  if (type.is === 'list') {
    const left = Array.isArray(a) ? a : []
    const right = Array.isArray(b) ? b : []
    return left.length === right.length && left.every((item, index) => sameTyped(item, right[index], type.of))
  }
  if (type.is === 'map') {
    const left = isObject(a) ? a : {}
    const right = isObject(b) ? b : {}
    const keys = Object.keys(left)
    return (
      keys.length === Object.keys(right).length &&
      keys.every((key) => Object.hasOwn(right, key) && sameTyped(left[key], right[key], type.of))
    )
  }
  if (type.is === 'raw' || type.is === 'fields') return sameRaw(a, b)
  return sameScalar(a, b)
}

const zeros = new Set<unknown>([undefined, '', 0, 0n, false])

function sameScalar(a: unknown, b: unknown): boolean {
  if (zeros.has(a) && zeros.has(b)) return a === undefined || b === undefined || a === b
  return a === b
}

/** Plain deep equality of JSON values. */
export function sameRaw(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => sameRaw(item, b[index]))
  }
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && sameRaw(a[key], b[key]))
}
