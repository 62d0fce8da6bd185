import { isObject } from '../patch/json-value.ts'
import { newObject } from '../json/reader.ts'
import type { ObjectValue } from '../types.ts'

/** Defaults that depend on something else in the object. Runs on one message of its type; idempotent. */
export type DefaultRule = (message: ObjectValue) => void

export const isEmpty = (value: unknown): boolean =>
  value === undefined || value === '' || (isObject(value) && Object.keys(value).length === 0)

/** Sets what is absent; null prototypes all the way down. */
export function setDefault(message: ObjectValue, field: string, value: unknown): void {
  if (message[field] === undefined) message[field] = fresh(value)
}

/** A value of its own for every object: nobody shares what another may change. */
export function fresh(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fresh)
  if (!isObject(value)) return value
  const copy = newObject()
  for (const key of Object.keys(value)) copy[key] = fresh(value[key])
  return copy
}

/** The message in `field`, made when absent: a Go struct that is no pointer is always there. */
export function ensure(message: ObjectValue, field: string): ObjectValue {
  const value = message[field]
  if (isObject(value)) return value
  const made = newObject()
  message[field] = made
  return made
}

export function objectAt(message: ObjectValue, ...path: readonly string[]): ObjectValue | undefined {
  let at: unknown = message
  for (const field of path) at = isObject(at) ? at[field] : undefined
  return isObject(at) ? at : undefined
}

export function objectsAt(message: ObjectValue | undefined, field: string): readonly ObjectValue[] {
  const list = message?.[field]
  return Array.isArray(list) ? list.filter(isObject) : []
}
