import type { CacheSnapshot } from '../cache/object-cache.ts'
import { listPrefix } from '../store-keys.ts'
import { writeList } from '../encoding/list-stream.ts'
import { negotiate } from '../encoding/negotiation.ts'
import { listFormat } from '../encoding/responder.ts'
import { badRequest, expired, tooLargeResourceVersion } from '../errors.ts'
import { parseSelection, type Selection } from '../selectors/selection.ts'
import { StorageError } from '../../storage/index.ts'
import type { Handler, RequestScope } from '../types.ts'
import { type ContinuePosition, decodeContinue, encodeContinue, inconsistentContinue } from './list-continue.ts'
import { type ListOptions, parseListOptions } from './list-options.ts'
import { type ListPage, readPage, selectPage } from './list-page.ts'
import type { ReadServices } from './read-services.ts'

interface ListRead {
  readonly scope: RequestScope
  readonly prefix: string
  readonly selection: Selection
  readonly options: ListOptions
  readonly position: ContinuePosition | undefined
  readonly signal: AbortSignal
}

/** What is listed, and at which revision all of it is. */
interface ListResult extends ListPage {
  readonly revision: number
}

/** Lists a resource with the resourceVersion rules of the API concepts page ("semantics for get and list"). */
export function listHandler(services: ReadServices): Handler {
  return async (scope, request, reply) => {
    const format = listFormat(negotiate(request, 'object'))
    const options = parseListOptions(request.query, 'list')
    const selection = parseSelection(scope, request.query, request.info.name)
    const prefix = listPrefix(scope.resource, request.info.namespace)
    const position = options.continueToken === '' ? undefined : decodeContinue(prefix, options.continueToken)
    if (position !== undefined && options.resourceVersion !== undefined && options.resourceVersion !== 0) {
      throw badRequest('specifying resource version is not allowed when using continue')
    }
    const { signal } = request
    const {
      objects,
      more: rest,
      revision,
    } = await read(services, {
      scope,
      prefix,
      selection,
      options,
      position,
      signal,
    })
    // one name in one namespace: there is no second object to go on to
    const single = selection.name !== '' && (request.info.namespace !== '' || !scope.resource.namespaced)
    const more = single && objects.length > 0 ? undefined : rest
    const meta = {
      revision,
      ...(more !== undefined && { continueToken: encodeContinue(prefix, more.after, revision) }),
      // With selectors nobody knows how many of the rest would be chosen.
      ...(more !== undefined && selection.everything && { remainingItemCount: more.remaining }),
    }
    await writeList(services.responder, { scope, format, objects, meta, reply, signal })
  }
}

function read(services: ReadServices, of: ListRead): Promise<ListResult> {
  const { options, position } = of
  const { resourceVersion, match, limit } = options
  if (position !== undefined) {
    return position.revision === -1 ? readFresh(services, of) : readExact(services, of, position.revision)
  }
  if (resourceVersion === undefined) return readFresh(services, of)
  // A limit without a match means exact: how old clients asked for a page at a revision.
  if (resourceVersion > 0 && (match === 'Exact' || (match === '' && limit > 0))) {
    return readExact(services, of, resourceVersion)
  }
  return readNotOlderThan(services, of, resourceVersion)
}

async function readFresh(services: ReadServices, of: ListRead): Promise<ListResult> {
  await services.cache.fresh({ signal: of.signal })
  return readCurrent(services, of, of.options.limit)
}

async function readNotOlderThan(services: ReadServices, of: ListRead, revision: number): Promise<ListResult> {
  if (revision > 0) await services.cache.waitUntil(revision, { signal: of.signal })
  // "Any" comes from the cache as a whole.
  return readCurrent(services, of, revision === 0 ? 0 : of.options.limit)
}

async function readCurrent(services: ReadServices, of: ListRead, limit: number): Promise<ListResult> {
  const { cache } = services
  const snapshot = cache.snapshot(of.prefix)
  // Before the first wait, while the cache is still at this revision: the next page may come.
  if (limit > 0) cache.retain(of.prefix)
  return pageOf(services, of, snapshot, limit)
}

async function readExact(services: ReadServices, of: ListRead, revision: number): Promise<ListResult> {
  const { cache, store } = services
  await cache.waitUntil(revision, { signal: of.signal })
  // What the cache still knows of a compacted revision is not served: every server would know something else.
  if (revision < store.status().compactRevision) throw tooOld(of)
  const snapshot = cache.listAt(of.prefix, revision)
  if (snapshot !== undefined) return pageOf(services, of, snapshot, of.options.limit)
  try {
    const { prefix, selection, signal } = of
    const from = of.position?.key ?? prefix
    const page = await readPage(services, of.scope, {
      prefix,
      from,
      revision,
      limit: of.options.limit,
      selection,
      signal,
    })
    return { ...page, revision }
  } catch (error) {
    if (error instanceof StorageError && error.code === 'ERR_COMPACTED') throw tooOld(of)
    if (error instanceof StorageError && error.code === 'ERR_FUTURE_REVISION') {
      throw tooLargeResourceVersion(revision, error.currentRevision ?? cache.revision)
    }
    throw error
  }
}

async function pageOf(
  services: ReadServices,
  of: ListRead,
  snapshot: CacheSnapshot,
  limit: number,
): Promise<ListResult> {
  const page = await selectPage(services.responder.turns, of.selection, snapshot.range(of.position?.key), limit)
  return { ...page, revision: snapshot.revision }
}

/** An expired page may be continued at the current revision, if the client can live with the gap. */
function tooOld(of: ListRead): Error {
  if (of.position === undefined) return expired('The resourceVersion for the provided list is too old.')
  return expired(
    'The provided continue parameter is too old to display a consistent list result. Start a new list without it, or ' +
      'use the continue token of this answer to get the rest as it is now: what changed since the first page may then ' +
      'be missing or show up twice.',
    inconsistentContinue(of.prefix, of.position),
  )
}
