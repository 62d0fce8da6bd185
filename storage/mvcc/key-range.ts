import type { Key } from '../store.ts'

/**
 * Keys inside the engine are latin1 strings: one character per byte, so that `<` on strings is the bytewise order and
 * a string serves as a hash key. `name` always means such a string, `key` the bytes.
 */
export interface KeyRange {
  readonly start: string
  /** Exclusive; undefined = every key from `start` on. */
  readonly end: string | undefined
  /** Exactly one key: `end` is then start + '\0'. */
  readonly single: boolean
}

export function keyName(key: Key): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1')
}

export function keyBytes(name: string): Key {
  return Buffer.from(name, 'latin1')
}

/** etcd's meaning of (key, range_end): absent = the key itself, a single zero byte = everything from the key on. */
export function keyRange(key: Key, rangeEnd: Key | undefined): KeyRange {
  const start = keyName(key)
  if (rangeEnd === undefined || rangeEnd.length === 0) return { start, end: `${start}\0`, single: true }
  if (rangeEnd.length === 1 && rangeEnd[0] === 0) return { start, end: undefined, single: false }
  return { start, end: keyName(rangeEnd), single: false }
}

export function rangeHolds(range: KeyRange, name: string): boolean {
  return name >= range.start && (range.end === undefined || name < range.end)
}

/** A range no key can be in. */
export function isEmptyRange(range: KeyRange): boolean {
  return range.end !== undefined && range.end <= range.start
}
