import type { ObjectValue, ResourceInfo } from '../../schemas/index.ts'
import type { Compare, KeyValue, LeaseId, Op, Revision, Store } from '../../storage/index.ts'
import { makeCachedObject } from '../encoding/stored-object.ts'
import { conflict, modifiedText, notFound } from '../errors.ts'
import type { CachedObject, ObjectCache, Strategy } from '../types.ts'
import { casAttemptsMax } from './limits.ts'
import { keyBytes, namespaceKey, objectKey } from '../store-keys.ts'
import { storageFailure } from './storage-failure.ts'
import { decodeStored, encodeStored } from './stored-codec.ts'
import type { ValueTransformer } from './value-transformer.ts'
import { appendAll } from '../append.ts'

/** Which object a write is about. */
export interface ObjectTarget {
  readonly resource: ResourceInfo
  readonly strategy: Strategy
  readonly namespace: string
  readonly name: string
}

/** The object as it is now; `object` is the caller's own copy. */
export interface CurrentObject {
  readonly cached: CachedObject
  readonly object: ObjectValue
}

/** What a round of an update decided. */
export type WriteStep =
  /** Encoded and written when its bytes differ. metadata.resourceVersion must be gone. */
  | { readonly do: 'put'; readonly object: ObjectValue }
  /** `answer`: what the client gets instead of the last stored state. */
  | { readonly do: 'delete'; readonly answer?: ObjectValue }
  | { readonly do: 'keep' }

export interface WriteOutcome {
  readonly did: 'created' | 'updated' | 'deleted' | 'unchanged'
  readonly object: CachedObject
  /** Of the write; of the object where nothing was written. */
  readonly revision: Revision
}

export interface WriteCall {
  /** For messages: "create", "update", … */
  readonly operation: string
  readonly dryRun: boolean
  readonly signal: AbortSignal
  /** Attached to what is put (Events live by a lease). */
  readonly lease?: LeaseId
}

/**
 * Decides from the current state (undefined: no such object). Runs again, from the start, whenever the state it saw
 * turns out not to be the newest, errors included: it must not have effects of its own.
 */
export type WriteFunction = (current: CurrentObject | undefined) => Promise<WriteStep>

export interface ObjectStore {
  /**
   * Reads the cache, runs the function, writes if the object is still what was read. What the function throws is believed
   * only after a linearizable read has shown the same state.
   *
   * @throws ApiError 409 after casAttemptsMax lost races; what the function throws; storage failures as ApiError.
   */
  write(target: ObjectTarget, call: WriteCall, run: WriteFunction): Promise<WriteOutcome>
  /** Linearizable. */
  read(target: ObjectTarget, call: Pick<WriteCall, 'operation' | 'signal'>): Promise<CurrentObject | undefined>
}

interface Round {
  readonly current: CachedObject | undefined
  /** Read from the store itself, not from a cache that may lag. */
  readonly fresh: boolean
}

export function createObjectStore(services: {
  readonly store: Store
  readonly cache: ObjectCache
  readonly transformer: ValueTransformer
}): ObjectStore {
  const { store, cache, transformer } = services

  const cachedOf = (target: ObjectTarget, key: string, kv: KeyValue | undefined): CachedObject | undefined =>
    kv === undefined
      ? undefined
      : makeCachedObject({
          resource: target.resource,
          strategy: target.strategy,
          key,
          revision: kv.modRevision,
          stored: transformer.fromStorage(kv.value, key),
        })

  async function readRound(target: ObjectTarget, key: string, signal: AbortSignal): Promise<Round> {
    const { kvs } = await store.range({ key: keyBytes(key) }, { signal })
    return { current: cachedOf(target, key, kvs[0]), fresh: true }
  }

  const decoded = (target: ObjectTarget, cached: CachedObject | undefined): CurrentObject | undefined =>
    cached && { cached, object: decodeStored(target.resource, target.strategy, cached.stored) }

  const revisionOf = (round: Round): Revision => round.current?.revision ?? 0

  async function write(target: ObjectTarget, call: WriteCall, run: WriteFunction): Promise<WriteOutcome> {
    const key = objectKey(target.resource, target.namespace, target.name)
    let round: Round = { current: cache.get(key), fresh: false }
    for (let attempt = 0; attempt < casAttemptsMax; attempt++) {
      const attempted = await attemptWrite(target, call, key, round, run)
      if ('outcome' in attempted) return attempted.outcome
      round = attempted.retry
    }
    throw conflict(groupResource(target), target.name, modifiedText)
  }

  type Attempt = { readonly outcome: WriteOutcome } | { readonly retry: Round }

  async function attemptWrite(
    target: ObjectTarget,
    call: WriteCall,
    key: string,
    round: Round,
    run: WriteFunction,
  ): Promise<Attempt> {
    const current = decoded(target, round.current)
    let step: WriteStep
    try {
      step = await run(current)
    } catch (error) {
      const newer = await newerRound(target, key, round, call)
      if (newer === undefined) throw error
      return { retry: newer }
    }
    if (step.do === 'delete' && round.current === undefined) throw notFound(groupResource(target), target.name)
    const stored = step.do === 'put' ? encodeStored(target.resource, step.object) : undefined
    const unchanged =
      step.do === 'keep' ||
      (stored !== undefined && round.current !== undefined && sameBytes(stored, round.current.stored))
    if (unchanged || call.dryRun) {
      // Nothing will be compared in the store, so the state itself must be the newest before it is answered from.
      const newer = await newerRound(target, key, round, call)
      if (newer !== undefined) return { retry: newer }
    }
    if (unchanged) {
      if (round.current === undefined) throw notFound(groupResource(target), target.name)
      return { outcome: { did: 'unchanged', object: round.current, revision: round.current.revision } }
    }
    const object = step.do === 'keep' ? undefined : step.do === 'put' ? step.object : step.answer
    const made = (revision: Revision): CachedObject => {
      const bytes = stored ?? (object === undefined ? undefined : encodeStored(target.resource, object))
      if (bytes === undefined && round.current !== undefined) return round.current
      if (bytes === undefined) throw notFound(groupResource(target), target.name)
      return makeCachedObject({ resource: target.resource, strategy: target.strategy, key, revision, stored: bytes })
    }
    const did = step.do === 'delete' ? 'deleted' : round.current === undefined ? 'created' : 'updated'
    if (call.dryRun) {
      const revision = revisionOf(round)
      return { outcome: { did, object: made(revision), revision } }
    }
    return commit(target, call, key, round, current, { step, stored, did, made })
  }

  async function commit(
    target: ObjectTarget,
    call: WriteCall,
    key: string,
    round: Round,
    current: CurrentObject | undefined,
    plan: {
      readonly step: WriteStep
      readonly stored: Uint8Array | undefined
      readonly did: 'created' | 'updated' | 'deleted'
      readonly made: (revision: Revision) => CachedObject
    },
  ): Promise<Attempt> {
    const at = keyBytes(key)
    const next = plan.step.do === 'put' ? plan.step.object : undefined
    const claims = next === undefined ? [] : (target.strategy.claims?.(next, current?.object) ?? [])
    const releases = current === undefined ? [] : (target.strategy.releases?.(next, current.object) ?? [])
    const compare: Compare[] = [{ key: at, target: 'mod', op: '=', is: revisionOf(round) }]
    const failure: Op[] = [{ type: 'range', key: at }]
    // An object must not outlive its namespace: admission saw the namespace earlier, this looks again in the same
    // transaction that creates.
    const inNamespace = plan.did === 'created' && target.resource.namespaced
    if (inNamespace) {
      const namespace = keyBytes(namespaceKey(target.namespace))
      compare.push({ key: namespace, target: 'create', op: '>', is: 0 })
      failure.push({ type: 'range', key: namespace, keysOnly: true })
    }
    appendAll(
      compare,
      claims.map((claim) => claim.compare),
    )
    const lease = call.lease === undefined ? {} : { lease: call.lease }
    const own: Op =
      plan.stored === undefined
        ? { type: 'delete', key: at }
        : { type: 'put', key: at, value: transformer.toStorage(plan.stored, key), ...lease }
    const success: Op[] = [own, ...claims.map((claim) => claim.op), ...releases]
    const result = await storeCall(target, call, () =>
      store.txn({ compare, success, failure }, { signal: call.signal }),
    )
    if (result.succeeded) {
      return { outcome: { did: plan.did, object: plan.made(result.revision), revision: result.revision } }
    }
    const found = result.responses[0]?.kvs[0]
    if ((found?.modRevision ?? 0) === revisionOf(round) && inNamespace && result.responses[1]?.kvs.length === 0) {
      throw notFound({ group: '', resource: 'namespaces' }, target.namespace)
    }
    // Either the object moved on or a claim was lost to somebody else: decide anew from what is there now.
    return { retry: { current: cachedOf(target, key, found), fresh: true } }
  }

  async function newerRound(
    target: ObjectTarget,
    key: string,
    round: Round,
    call: Pick<WriteCall, 'operation' | 'signal'>,
  ): Promise<Round | undefined> {
    if (round.fresh) return undefined
    const newest = await storeCall(target, call, () => readRound(target, key, call.signal))
    return revisionOf(newest) === revisionOf(round) ? undefined : newest
  }

  async function storeCall<T>(
    target: ObjectTarget,
    call: Pick<WriteCall, 'operation'>,
    run: () => Promise<T>,
  ): Promise<T> {
    try {
      return await run()
    } catch (error) {
      throw storageFailure(error, call.operation, groupResource(target), target.name)
    }
  }

  return {
    write,
    async read(target, call) {
      const key = objectKey(target.resource, target.namespace, target.name)
      const round = await storeCall(target, call, () => readRound(target, key, call.signal))
      return decoded(target, round.current)
    },
  }
}

export function groupResource(target: { readonly resource: ResourceInfo }): {
  readonly group: string
  readonly resource: string
} {
  return { group: target.resource.group, resource: target.resource.plural }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0
}
