import { keyBytes, keyText, prefixEnd } from '../store-keys.ts'
import { makeCachedObject } from '../encoding/stored-object.ts'
import { storePageItems } from '../limits.ts'
import { matches, type Selection } from '../selectors/selection.ts'
import type { WorkTurns } from '../work-turns.ts'
import type { CachedObject, RequestScope } from '../types.ts'
import type { ReadServices } from './read-services.ts'

/** Chosen objects, and how to go on. */
export interface ListPage {
  readonly objects: readonly CachedObject[]
  /** Key of the last object; undefined when nothing follows it. */
  readonly more: { readonly after: string; readonly remaining: number } | undefined
}

/**
 * The first `limit` objects that are selected; more keys behind them mean another page, selected or not.
 *
 * @param candidates - In key order.
 * @param limit - 0 = all.
 */
export async function selectPage(
  turns: WorkTurns,
  selection: Selection,
  candidates: readonly CachedObject[],
  limit: number,
): Promise<ListPage> {
  if (selection.everything && (limit === 0 || candidates.length <= limit))
    return { objects: candidates, more: undefined }
  const objects: CachedObject[] = []
  let slice = turns.begin()
  for (const [index, object] of candidates.entries()) {
    if (matches(selection, object)) objects.push(object)
    if (limit > 0 && objects.length === limit) {
      const remaining = candidates.length - index - 1
      return { objects, more: remaining === 0 ? undefined : { after: object.key, remaining } }
    }
    if ((index & 63) === 63 && slice.spent()) slice = await turns.next()
  }
  return { objects, more: undefined }
}

/**
 * The same from the store's history, for revisions the cache no longer knows.
 *
 * @throws StorageError ERR_COMPACTED, ERR_FUTURE_REVISION
 */
export async function readPage(
  services: Pick<ReadServices, 'store' | 'registry'>,
  scope: RequestScope,
  of: {
    readonly prefix: string
    readonly from: string
    readonly revision: number
    readonly limit: number
    readonly selection: Selection
    readonly signal: AbortSignal
  },
): Promise<ListPage> {
  const objects: CachedObject[] = []
  const rangeEnd = prefixEnd(of.prefix)
  let key = keyBytes(of.from)
  for (;;) {
    const page = await services.store.range(
      { key, rangeEnd, revision: of.revision, limit: storePageItems },
      { signal: of.signal },
    )
    for (const [index, kv] of page.kvs.entries()) {
      const text = keyText(kv.key)
      const owner = services.registry.byKey(text) ?? scope
      const object = makeCachedObject({
        resource: owner.resource,
        strategy: owner.strategy,
        key: text,
        revision: kv.modRevision,
        stored: kv.value,
      })
      if (matches(of.selection, object)) objects.push(object)
      if (of.limit > 0 && objects.length === of.limit) {
        const remaining = page.count - index - 1
        return { objects, more: remaining === 0 ? undefined : { after: text, remaining } }
      }
    }
    const last = page.kvs.at(-1)
    if (!page.more || last === undefined) return { objects, more: undefined }
    key = Buffer.concat([last.key, Buffer.of(0)])
  }
}
