import assert from 'node:assert/strict'
import type { StorageErrorCode } from '../../../storage/errors.ts'
import { StorageError } from '../../../storage/errors.ts'
import type { CallOptions, Compare, KeyValue, LeaseId, Op, OpResult, Store, TxnResult } from '../../../storage/store.ts'

export const options: CallOptions = { signal: new AbortController().signal }

export function bytes(text: string): Uint8Array {
  return Buffer.from(text, 'latin1')
}

export function text(of: Uint8Array): string {
  return Buffer.from(of).toString('latin1')
}

/** A KeyValue that compares and prints well. */
export interface PlainKv {
  readonly key: string
  readonly value: string
  readonly create: number
  readonly mod: number
  readonly version: number
  readonly lease: LeaseId
}

export function plainKv(kv: KeyValue): PlainKv {
  return {
    key: text(kv.key),
    value: text(kv.value),
    create: kv.createRevision,
    mod: kv.modRevision,
    version: kv.version,
    lease: kv.lease,
  }
}

export interface PlainResult {
  readonly kvs: readonly PlainKv[]
  readonly count: number
  readonly more: boolean
  readonly prevKvs: readonly PlainKv[]
  readonly txn?: { readonly succeeded: boolean; readonly responses: readonly PlainResult[] }
}

export function plainResult(result: OpResult): PlainResult {
  const plain = {
    kvs: result.kvs.map(plainKv),
    count: result.count,
    more: result.more,
    prevKvs: result.prevKvs.map(plainKv),
  }
  if (result.txn === undefined) return plain
  return { ...plain, txn: { succeeded: result.txn.succeeded, responses: result.txn.responses.map(plainResult) } }
}

/** Short names for one test's part of the key space. */
export class StoreHarness {
  readonly store: Store
  readonly prefix: string

  constructor(store: Store, prefix: string) {
    this.store = store
    this.prefix = prefix
  }

  key(name: string): Uint8Array {
    return bytes(this.prefix + name)
  }

  /** Everything of this test. */
  get all(): { readonly key: Uint8Array; readonly rangeEnd: Uint8Array } {
    return { key: bytes(this.prefix), rangeEnd: bytes(`${this.prefix.slice(0, -1)}0`) }
  }

  putOp(name: string, value: string, more: { lease?: LeaseId; prevKv?: boolean } = {}): Op {
    return { type: 'put', key: this.key(name), value: bytes(value), ...more }
  }

  getOp(name: string): Op {
    return { type: 'range', key: this.key(name) }
  }

  deleteOp(name: string): Op {
    return { type: 'delete', key: this.key(name) }
  }

  txn(success: readonly Op[], compare: readonly Compare[] = [], failure: readonly Op[] = []): Promise<TxnResult> {
    return this.store.txn({ compare, success, failure }, options)
  }

  /** @returns the revision. */
  async put(name: string, value: string, more: { lease?: LeaseId; prevKv?: boolean } = {}): Promise<number> {
    return (await this.txn([this.putOp(name, value, more)])).revision
  }

  async delete(name: string): Promise<number> {
    return (await this.txn([this.deleteOp(name)])).revision
  }

  async get(name: string, revision = 0): Promise<PlainKv | undefined> {
    const { kvs } = await this.store.range({ key: this.key(name), revision }, options)
    return kvs[0] === undefined ? undefined : plainKv(kvs[0])
  }

  /** name=value pairs of this test, in order. */
  async list(revision = 0): Promise<string[]> {
    const { kvs } = await this.store.range({ ...this.all, revision }, options)
    return kvs.map((kv) => `${text(kv.key).slice(this.prefix.length)}=${text(kv.value)}`)
  }

  async succeeds(compare: Compare): Promise<boolean> {
    return (await this.txn([], [compare])).succeeded
  }
}

export async function rejects(call: Promise<unknown>, code: StorageErrorCode): Promise<StorageError> {
  try {
    await call
  } catch (error) {
    assert.ok(error instanceof StorageError, `not a StorageError: ${String(error)}`)
    assert.equal(error.code, code, error.message)
    return error
  }
  return assert.fail(`resolved instead of rejecting with ${code}`)
}
