import type { ObjectValue } from '../../schemas/index.ts'

/**
 * Reading and writing decoded objects, whose fields are `unknown` to the compiler. A field of another JSON type than
 * asked for reads as absent: the decoder has refused such bodies already, so this only keeps the callers total.
 */

/** Null prototype, like everything the decoder makes. */
export function record(fields: Readonly<Record<string, unknown>> = {}): ObjectValue {
  return Object.assign(Object.create(null) as ObjectValue, fields)
}

export function isObject(value: unknown): value is ObjectValue {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object at `path`, or undefined. */
export function objectAt(from: unknown, ...path: readonly string[]): ObjectValue | undefined {
  const value = valueAt(from, ...path)
  return isObject(value) ? value : undefined
}

export function valueAt(from: unknown, ...path: readonly string[]): unknown {
  let value = from
  for (const field of path) {
    if (!isObject(value)) return undefined
    value = value[field]
  }
  return value
}

/** Objects of the list at `path`; empty when there is none. */
export function objectsAt(from: unknown, ...path: readonly string[]): readonly ObjectValue[] {
  const value = valueAt(from, ...path)
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** Strings of the list at `path`; empty when there is none. */
export function textsAt(from: unknown, ...path: readonly string[]): readonly string[] {
  const value = valueAt(from, ...path)
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []
}

/** "" when absent, as Go's zero value. */
export function textAt(from: unknown, ...path: readonly string[]): string {
  const value = valueAt(from, ...path)
  return typeof value === 'string' ? value : ''
}

export function numberAt(from: unknown, ...path: readonly string[]): number | undefined {
  const value = valueAt(from, ...path)
  if (typeof value === 'bigint') return Number(value)
  return typeof value === 'number' ? value : undefined
}

/** As decoded: integers beyond 2^53 keep every digit. */
export function integerAt(from: unknown, ...path: readonly string[]): number | bigint | undefined {
  const value = valueAt(from, ...path)
  return typeof value === 'number' || typeof value === 'bigint' ? value : undefined
}

export function flagAt(from: unknown, ...path: readonly string[]): boolean {
  return valueAt(from, ...path) === true
}

/** Entries of the string map at `path`. */
export function entriesAt(from: unknown, ...path: readonly string[]): readonly (readonly [string, string])[] {
  const value = objectAt(from, ...path)
  if (value === undefined) return []
  return Object.keys(value).map((key) => [key, textAt(value, key)] as const)
}

/** The object at `field`, made when it is missing. */
export function ensureObject(parent: ObjectValue, field: string): ObjectValue {
  const value = parent[field]
  if (isObject(value)) return value
  const made = record()
  parent[field] = made
  return made
}

export function setOrRemove(parent: ObjectValue, field: string, value: unknown): void {
  if (value === undefined) delete parent[field]
  else parent[field] = value
}

/** Deep copy of JSON-like data; prototypes stay null. */
export function copyValue<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item: unknown) => copyValue(item)) as T
  if (!isObject(value)) return value
  const copy = record()
  for (const key of Object.keys(value)) copy[key] = copyValue(value[key])
  return copy as T
}

/** The object's metadata, made when missing. */
export function metadataOf(object: ObjectValue): ObjectValue {
  return ensureObject(object, 'metadata')
}

export function labelsOf(object: unknown): Readonly<Record<string, string>> {
  const labels = record() as Record<string, string>
  for (const [key, value] of entriesAt(object, 'metadata', 'labels')) labels[key] = value
  return labels
}
