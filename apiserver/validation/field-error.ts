import type { Cause } from '../types.ts'

/**
 * One problem of one field, worded as Go's field.Error words it (apimachinery pkg/util/validation/field/errors.go):
 * kubectl prints these texts and test suites match on them.
 */

/** A value as the message shows it: numbers and booleans bare, strings quoted as Go's %q, the rest as JSON. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return 'null'
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value)
  const text = JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? Number(item) : item))
  // Go's encoder writes for web pages.
  return text.replace(/[<>&]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`)
}

/** Go's %q for the characters that matter; JSON agrees on everything printable. */
export function quoted(text: string): string {
  return JSON.stringify(text)
}

const withDetail = (head: string, detail: string): string => (detail === '' ? head : `${head}: ${detail}`)

export function required(field: string, detail = ''): Cause {
  return { reason: 'FieldValueRequired', message: withDetail('Required value', detail), field }
}

export function invalidValue(field: string, value: unknown, detail: string): Cause {
  return { reason: 'FieldValueInvalid', message: withDetail(`Invalid value: ${shown(value)}`, detail), field }
}

export function notSupported(field: string, value: unknown, supported: readonly string[]): Cause {
  const list = supported.map(quoted).join(', ')
  return {
    reason: 'FieldValueNotSupported',
    message: `Unsupported value: ${shown(value)}${list === '' ? '' : `: supported values: ${list}`}`,
    field,
  }
}

export function duplicate(field: string, value: unknown): Cause {
  return { reason: 'FieldValueDuplicate', message: `Duplicate value: ${shown(value)}`, field }
}

export function forbiddenField(field: string, detail: string): Cause {
  return { reason: 'FieldValueForbidden', message: withDetail('Forbidden', detail), field }
}

export function notFoundField(field: string, value: unknown): Cause {
  return { reason: 'FieldValueNotFound', message: `Not found: ${shown(value)}`, field }
}

export function tooLong(field: string, bytesMax: number): Cause {
  return { reason: 'FieldValueTooLong', message: `Too long: may not be more than ${bytesMax} bytes`, field }
}

/** Each problem once: what the type declares and what a kind's own rules say may overlap. */
export function distinct(causes: readonly Cause[]): readonly Cause[] {
  if (causes.length < 2) return causes
  const seen = new Set<string>()
  return causes.filter((cause) => {
    const key = `${cause.field}\0${cause.message}`
    return !seen.has(key) && seen.add(key)
  })
}

export const immutableText = 'field is immutable'
