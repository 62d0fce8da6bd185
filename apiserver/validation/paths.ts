import type { Cause } from '../types.ts'
import { invalidValue } from './field-error.ts'

/** Paths inside volumes. */

export function validateNoBacksteps(path: string, at: string): readonly Cause[] {
  return path.split('/').includes('..') ? [invalidValue(at, path, "must not contain '..'")] : []
}

/** Relative, and never upwards. */
export function validateDescendingPath(path: string, at: string): readonly Cause[] {
  const absolute = path.startsWith('/') ? [invalidValue(at, path, 'must be a relative path')] : []
  return [...absolute, ...validateNoBacksteps(path, at)]
}

/** Names that start with two dots belong to the kubelet, which swaps whole directories by them. */
export function validateLocalPath(path: string, at: string): readonly Cause[] {
  const reserved = path.startsWith('..') && !path.startsWith('../')
  return [
    ...validateDescendingPath(path, at),
    ...(reserved ? [invalidValue(at, path, "must not start with '..'")] : []),
  ]
}
