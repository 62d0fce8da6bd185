import type { ObjectValue } from '../types.ts'

/** JSON values as the decoder makes them: objects without a prototype, integers beyond 2^53 as bigint. */

export function isObject(value: unknown): value is ObjectValue {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
}

/** A copy of the top level only. A null prototype keeps "__proto__" an ordinary key. */
export function shallowCopy(object: ObjectValue): ObjectValue {
  const copy: ObjectValue = Object.create(null) as ObjectValue
  for (const key of Object.keys(object)) copy[key] = object[key]
  return copy
}

/** Equality of JSON values; 1 and 1n are the same number, key order does not matter. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a === 'bigint') return typeof b === 'number' && Number.isInteger(b) && BigInt(b) === a
  if (typeof b === 'bigint') return jsonEqual(b, a)
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    return a.every((item, position) => jsonEqual(item, b[position]))
  }
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return keys.every((key) => Object.hasOwn(b, key) && jsonEqual(a[key], b[key]))
}

/** Rough size of a value as JSON text, in characters; a bound, not a measurement. */
export function jsonSize(value: unknown): number {
  if (typeof value === 'string') return value.length + 2
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + jsonSize(item) + 1, 2)
  if (isObject(value)) return Object.keys(value).reduce((sum, key) => sum + key.length + 4 + jsonSize(value[key]), 2)
  return 8
}

/** The same text for values that are jsonEqual, another for others: what lists of values are searched by. */
export function canonicalText(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`
  if (!isObject(value)) return String(value) // a bigint reads as the number of the same value
  const members = Object.keys(value).sort()
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonicalText(value[key])}`).join(',')}}`
}
