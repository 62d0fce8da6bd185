import type { CachedObject } from '../types.ts'
import { compareKeys } from '../store-keys.ts'

/** A leaf is split in two above this many objects. */
const leafItemsMax = 256

type Leaf = readonly CachedObject[]

/**
 * Objects of one resource in key order; immutable, so that every version of it is a snapshot for free. Two levels: a
 * change copies one leaf and the list of leaves, less than a microsecond for 10,000 objects. Leaves are never empty.
 */
export class SortedObjects {
  readonly size: number
  readonly #leaves: readonly Leaf[]
  /** Code units that all keys share: compares start behind them. */
  readonly #shared: number

  private constructor(leaves: readonly Leaf[], size: number, shared: number) {
    this.#leaves = leaves
    this.size = size
    this.#shared = shared
  }

  /** @param prefix - What all keys start with. */
  static empty(prefix: string): SortedObjects {
    return new SortedObjects([], 0, prefix.length)
  }

  /** @param objects - In key order, keys unique. */
  static from(prefix: string, objects: readonly CachedObject[]): SortedObjects {
    const leaves: Leaf[] = []
    // Half full, so that the first inserts split nothing.
    const step = leafItemsMax / 2
    for (let at = 0; at < objects.length; at += step) leaves.push(objects.slice(at, at + step))
    return new SortedObjects(leaves, objects.length, prefix.length)
  }

  get(key: string): CachedObject | undefined {
    const leaf = this.#leaves[this.#leafFor(key)]
    if (leaf === undefined) return undefined
    const object = leaf[this.#lowerBound(leaf, key)]
    return object?.key === key ? object : undefined
  }

  with(object: CachedObject): SortedObjects {
    const index = Math.max(0, this.#leafFor(object.key))
    const leaf = this.#leaves[index] ?? []
    const at = this.#lowerBound(leaf, object.key)
    const copy = leaf.slice()
    const replaces = copy[at]?.key === object.key
    copy.splice(at, replaces ? 1 : 0, object)
    const leaves = this.#leaves.slice()
    if (copy.length <= leafItemsMax) {
      leaves[index] = copy
    } else {
      // Keys often arrive in order: then a full leaf stays behind instead of a half-empty one.
      const cut = at === copy.length - 1 ? leafItemsMax : copy.length >> 1
      leaves.splice(index, 1, copy.slice(0, cut), copy.slice(cut))
    }
    return new SortedObjects(leaves, this.size + (replaces ? 0 : 1), this.#shared)
  }

  without(key: string): SortedObjects {
    const index = this.#leafFor(key)
    const leaf = this.#leaves[index]
    if (leaf === undefined) return this
    const at = this.#lowerBound(leaf, key)
    if (leaf[at]?.key !== key) return this
    const leaves = this.#leaves.slice()
    if (leaf.length === 1) leaves.splice(index, 1)
    else leaves[index] = [...leaf.slice(0, at), ...leaf.slice(at + 1)]
    return new SortedObjects(leaves, this.size - 1, this.#shared)
  }

  /**
   * Objects whose key starts with `prefix`, in key order.
   *
   * @param from - Only keys at or behind this one; absent = all.
   */
  range(prefix: string, from?: string): CachedObject[] {
    const found: CachedObject[] = []
    const start = from !== undefined && compareKeys(from, prefix) > 0 ? from : prefix
    const first = Math.max(0, this.#leafFor(start))
    // Whole resource: no key needs to be looked at.
    const all = prefix.length <= this.#shared
    for (let index = first; index < this.#leaves.length; index++) {
      const leaf = this.#leaves[index]!
      const low = index === first ? this.#lowerBound(leaf, start) : 0
      for (let at = low; at < leaf.length; at++) {
        const object = leaf[at]!
        if (!all && !object.key.startsWith(prefix)) return found
        found.push(object)
      }
    }
    return found
  }

  /** The last leaf whose first key is <= `key`; -1 when all are behind it. */
  #leafFor(key: string): number {
    let low = 0
    let high = this.#leaves.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (compareKeys(this.#leaves[middle]![0]!.key, key, this.#from(key)) <= 0) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  #lowerBound(leaf: Leaf, key: string): number {
    let low = 0
    let high = leaf.length
    const from = this.#from(key)
    while (low < high) {
      const middle = (low + high) >> 1
      if (compareKeys(leaf[middle]!.key, key, from) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /** A bound shorter than the shared prefix (a listed prefix) is compared whole. */
  #from(key: string): number {
    return key.length < this.#shared ? 0 : this.#shared
  }
}
