import type { Revision } from '../../storage/index.ts'
import { retainedBytesMax, retainedRootAgeMs, retainedRootsMax } from '../limits.ts'
import type { SortedObjects } from './sorted-objects.ts'

interface Root {
  readonly prefix: string
  readonly revision: Revision
  readonly objects: SortedObjects
  readonly atMs: number
  /** The resource's superseded bytes when it was retained: what was superseded since is what it may keep alive. */
  readonly supersededBytes: number
}

/**
 * What lists answered with a continue token looked like, for their next pages. Bounded by count, age and the bytes
 * kept alive; a page whose root has left is read from the store.
 */
export class RetainedRoots {
  /** In the order they were retained. */
  readonly #roots = new Map<string, Root>()

  get size(): number {
    return this.#roots.size
  }

  retain(root: Root): void {
    const id = `${root.prefix}@${root.revision}`
    if (this.#roots.has(id)) return
    this.#roots.set(id, root)
    this.trim(root.atMs, (prefix) => (prefix === root.prefix ? root.supersededBytes : 0))
  }

  find(prefix: string, revision: Revision): SortedObjects | undefined {
    return this.#roots.get(`${prefix}@${revision}`)?.objects
  }

  /** @param superseded - Superseded bytes of a resource so far. */
  trim(nowMs: number, superseded: (prefix: string) => number): void {
    for (const [id, root] of this.#roots) {
      const tooOld = nowMs - root.atMs > retainedRootAgeMs
      const tooLarge = superseded(root.prefix) - root.supersededBytes > retainedBytesMax
      if (tooOld || tooLarge || this.#roots.size > retainedRootsMax) this.#roots.delete(id)
    }
  }

  clear(): void {
    this.#roots.clear()
  }
}
