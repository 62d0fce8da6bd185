import { rangeHolds, type KeyRange } from './key-range.ts'

interface Group<W> {
  readonly range: KeyRange
  readonly watchers: Set<W>
}

/**
 * Which watchers want a change of `name`: exact keys by hash, prefixes by hash per prefix length (a server watches few
 * lengths), other ranges by a sorted list. Watchers of one range share a group, so thousands of equal ones cost one
 * look-up.
 */
export class WatcherIndex<W extends { readonly range: KeyRange }> {
  readonly #keys = new Map<string, Group<W>>()
  /** Prefix length -> prefix -> group. */
  readonly #prefixes = new Map<number, Map<string, Group<W>>>()
  readonly #ranges = new Map<string, Group<W>>()
  /** The values of #ranges by start, each with the largest end up to there; undefined = to be built. */
  #sorted: readonly { readonly group: Group<W>; readonly endMax: string | undefined }[] | undefined = []
  #size = 0

  get size(): number {
    return this.#size
  }

  add(watcher: W): void {
    const { groups, id } = this.#place(watcher.range)
    let group = groups.get(id)
    if (group === undefined) {
      group = { range: watcher.range, watchers: new Set() }
      groups.set(id, group)
      if (groups === this.#ranges) this.#sorted = undefined
    }
    group.watchers.add(watcher)
    this.#size += 1
  }

  remove(watcher: W): void {
    const { groups, id } = this.#place(watcher.range)
    const group = groups.get(id)
    if (group === undefined || !group.watchers.delete(watcher)) return
    this.#size -= 1
    if (group.watchers.size > 0) return
    groups.delete(id)
    if (groups === this.#ranges) this.#sorted = undefined
    const prefix = prefixOf(watcher.range)
    if (prefix !== undefined && groups.size === 0) this.#prefixes.delete(prefix.length)
  }

  /** In no promised order, but the same order for the same history of calls. Each watcher once. */
  forEachMatch(name: string, visit: (watcher: W) => void): void {
    this.#keys.get(name)?.watchers.forEach(visit)
    for (const [length, groups] of this.#prefixes) {
      if (length <= name.length) groups.get(name.slice(0, length))?.watchers.forEach(visit)
    }
    if (this.#ranges.size === 0) return
    const sorted = (this.#sorted ??= this.#sort())
    for (let position = lastStartingAtOrBefore(sorted, name); position >= 0; position -= 1) {
      const entry = sorted[position]
      if (entry === undefined || (entry.endMax !== undefined && entry.endMax <= name)) return
      if (rangeHolds(entry.group.range, name)) entry.group.watchers.forEach(visit)
    }
  }

  *[Symbol.iterator](): Generator<W> {
    for (const group of this.#keys.values()) yield* group.watchers
    for (const groups of this.#prefixes.values()) for (const group of groups.values()) yield* group.watchers
    for (const group of this.#ranges.values()) yield* group.watchers
  }

  #place(range: KeyRange): { readonly groups: Map<string, Group<W>>; readonly id: string } {
    if (range.single) return { groups: this.#keys, id: range.start }
    const prefix = prefixOf(range)
    if (prefix === undefined) {
      return { groups: this.#ranges, id: `${range.start.length}:${range.start}${range.end ?? ''}` }
    }
    let groups = this.#prefixes.get(prefix.length)
    if (groups === undefined) this.#prefixes.set(prefix.length, (groups = new Map()))
    return { groups, id: prefix }
  }

  #sort(): { readonly group: Group<W>; readonly endMax: string | undefined }[] {
    const groups = [...this.#ranges.values()].sort((a, b) => (a.range.start < b.range.start ? -1 : 1))
    let endMax: string | undefined = ''
    return groups.map((group) => {
      const { end } = group.range
      endMax = endMax === undefined || end === undefined ? undefined : end > endMax ? end : endMax
      return { group, endMax }
    })
  }
}

function lastStartingAtOrBefore<W>(sorted: readonly { readonly group: Group<W> }[], name: string): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const entry = sorted[middle]
    if (entry !== undefined && entry.group.range.start <= name) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** The prefix P when the range is exactly the keys that start with P. */
function prefixOf(range: KeyRange): string | undefined {
  const { start, end, single } = range
  if (single || end === undefined || end.length !== start.length || end.length === 0) return undefined
  const last = start.length - 1
  if (end.charCodeAt(last) !== start.charCodeAt(last) + 1) return undefined
  return start.slice(0, last) === end.slice(0, last) ? start : undefined
}
