import type { ObjectValue } from '../types.ts'
import { isObject, shallowCopy } from './json-value.ts'

/**
 * Applies a JSON merge patch (RFC 7386): objects merge, null removes, everything else replaces.
 *
 * @param document - Not changed; the answer shares what the patch leaves alone.
 */
export function mergePatch(document: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const merged: ObjectValue = isObject(document) ? shallowCopy(document) : (Object.create(null) as ObjectValue)
  for (const key of Object.keys(patch)) {
    const value = patch[key]
    if (value === null) delete merged[key]
    else merged[key] = mergePatch(Object.hasOwn(merged, key) ? merged[key] : undefined, value)
  }
  return merged
}
