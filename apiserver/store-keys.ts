import type { ResourceInfo } from '../schemas/index.ts'
import type { Key } from '../storage/index.ts'

/** Store prefix of every built-in and custom object. */
export const registryPrefix = '/registry/'

/**
 * Store key of one object, as text, laid out as kube-apiserver does: `<storagePrefix>/<namespace>/<name>`, or without
 * the namespace for cluster-scoped resources, whose `namespace` is "".
 */
export function objectKey(resource: ResourceInfo, namespace: string, name: string): string {
  return listPrefix(resource, namespace) + name
}

/** What the keys of a list start with; `namespace` "" means all of them. Ends in "/". */
export function listPrefix(resource: ResourceInfo, namespace: string): string {
  const prefix = resource.storagePrefix
  if (prefix === undefined) throw new Error(`${resource.plural} are not stored`)
  return resource.namespaced && namespace !== '' ? `${prefix}/${namespace}/` : `${prefix}/`
}

export const namespaceKey = (name: string): string => `${registryPrefix}namespaces/${name}`

export function keyBytes(text: string): Key {
  return Buffer.from(text, 'utf8')
}

export function keyText(key: Key): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('utf8')
}

/** First key behind all that start with `prefix`, for half-open ranges. The prefix ends in a byte below 0xff. */
export function prefixEnd(prefix: string): Key {
  const end = Buffer.from(prefix, 'utf8')
  const last = end.length - 1
  end[last] = (end[last] ?? 0) + 1
  return end
}

/**
 * Order of two keys by their UTF-8 bytes, comparing from code unit `from` on (what lies before is known equal).
 * Plain string order differs from it only where a surrogate meets a unit above the surrogates.
 */
export function compareKeys(a: string, b: string, from = 0): number {
  const shared = Math.min(a.length, b.length)
  for (let at = from; at < shared; at++) {
    const left = a.charCodeAt(at)
    const right = b.charCodeAt(at)
    if (left !== right) return rank(left) - rank(right)
  }
  return a.length - b.length
}

/** Surrogates stand for code points above every single unit. */
const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit)
