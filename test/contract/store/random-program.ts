import type { Compare, CompareOperator, LeaseId, Op } from '../../../storage/store.ts'
import { bytes, type StoreHarness } from './store-harness.ts'

/** One call of a program; the same on every store. */
export type Step =
  | {
      readonly type: 'txn'
      readonly compare: readonly Compare[]
      readonly success: readonly Op[]
      readonly failure: readonly Op[]
    }
  | { readonly type: 'range'; readonly op: Op & { type: 'range' } }
  | { readonly type: 'compact'; readonly revision: number }
  | { readonly type: 'leaseGrant'; readonly id: LeaseId }
  | { readonly type: 'leaseRevoke'; readonly id: LeaseId }
  | {
      readonly type: 'watch'
      readonly from: string
      readonly to: string | undefined
      readonly startRevision: number
      readonly prevKv: boolean
    }

/** Mulberry32: small, seeded, good enough for choosing. */
export function seededRandom(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * below)
  }
}

const operators: readonly CompareOperator[] = ['=', '!=', '<', '>']
export const names = ['a', 'b', 'b/1', 'b/2', 'c', 'd', 'e']

/**
 * Few keys, many collisions, refusals included. What is left out: a put and a delete of one key in sibling nested
 * transactions, where etcd itself is not consistent; to that end nested transactions write keys of their own.
 */
export class ProgramMaker {
  readonly #random: (below: number) => number
  readonly #harness: StoreHarness

  constructor(seed: number, harness: StoreHarness) {
    this.#random = seededRandom(seed)
    this.#harness = harness
  }

  /** @param revision - The store's current one, to aim around. */
  next(revision: number, compactRevision: number): Step {
    const dice = this.#random(100)
    if (dice < 60) {
      return {
        type: 'txn',
        compare: this.#list(3, () => this.#compare(revision)),
        success: this.#list(4, () => this.#op(revision, '')),
        failure: this.#list(3, () => this.#op(revision, '')),
      }
    }
    if (dice < 75) return { type: 'range', op: this.#range(revision) }
    if (dice < 79) return { type: 'compact', revision: revision - this.#random(12) + 1 }
    if (dice < 85) return { type: 'leaseGrant', id: this.#lease() }
    if (dice < 88) return { type: 'leaseRevoke', id: this.#lease() }
    // Above the compacted revision: at it, fixes later than the etcd at hand make a difference.
    const startRevision = Math.max(compactRevision + 1, revision - this.#random(30) + 2)
    return { type: 'watch', ...this.#span(), startRevision, prevKv: this.#random(2) === 0 }
  }

  #list<T>(below: number, make: () => T): T[] {
    return Array.from({ length: this.#random(below) }, make)
  }

  #name(): string {
    return names[this.#random(names.length)] ?? 'a'
  }

  #lease(): LeaseId {
    return BigInt(this.#random(3)) + 9_007_199_254_740_993n
  }

  #span(): { from: string; to: string | undefined } {
    const from = this.#name()
    return { from, to: this.#random(2) === 0 ? undefined : this.#name() }
  }

  #place(scope: string): { key: Uint8Array; rangeEnd?: Uint8Array } {
    const { from, to } = this.#span()
    const key = this.#harness.key(scope + from)
    return to === undefined ? { key } : { key, rangeEnd: this.#harness.key(scope + to) }
  }

  #revision(revision: number): number {
    return this.#random(3) === 0 ? Math.max(1, revision - this.#random(20) + 1) : 0
  }

  #compare(revision: number): Compare {
    const op = operators[this.#random(4)] ?? '='
    const place = this.#place('')
    switch (this.#random(5)) {
      case 0:
        return { ...place, op, target: 'mod', is: Math.max(0, revision - this.#random(6)) }
      case 1:
        return { ...place, op, target: 'create', is: Math.max(0, revision - this.#random(20)) }
      case 2:
        return { ...place, op, target: 'version', is: this.#random(4) }
      case 3:
        return { ...place, op, target: 'value', is: bytes(String(this.#random(9))) }
      default:
        return { ...place, op, target: 'lease', is: this.#random(2) === 0 ? 0n : this.#lease() }
    }
  }

  #op(revision: number, scope: string): Op {
    const prevKv = this.#random(2) === 0
    switch (this.#random(scope.length > 4 ? 4 : 5)) {
      case 0:
        return this.#range(revision, scope)
      case 1:
        return { type: 'delete', ...this.#place(scope), prevKv }
      case 4: {
        const nested = `${scope}n${this.#random(1000)}`
        return {
          type: 'txn',
          compare: this.#list(2, () => this.#compare(revision)),
          success: this.#list(3, () => this.#op(revision, nested)),
          failure: this.#list(2, () => this.#op(revision, nested)),
        }
      }
      default: {
        const lease = this.#random(4) === 0 ? this.#lease() : 0n
        const value = bytes(String(this.#random(9)))
        return { type: 'put', key: this.#harness.key(scope + this.#name()), value, lease, prevKv }
      }
    }
  }

  #range(revision: number, scope = ''): Op & { type: 'range' } {
    return {
      type: 'range',
      ...this.#place(scope),
      revision: this.#revision(revision),
      limit: this.#random(3),
      keysOnly: this.#random(4) === 0,
      countOnly: this.#random(6) === 0,
    }
  }
}
