import { listPrefix } from '../store-keys.ts'
import { negotiate, watchContentType } from '../encoding/negotiation.ts'
import { watchTimeoutMinSeconds } from '../limits.ts'
import { parseSelection } from '../selectors/selection.ts'
import { StorageError } from '../../storage/index.ts'
import type { Handler } from '../types.ts'
import { type ListOptions, parseListOptions } from './list-options.ts'
import type { ReadServices } from './read-services.ts'
import { tooOldError, WatchSession } from './watch-session.ts'

export interface Watching {
  readonly handler: Handler
  /** Ends all watches cleanly; later ones end at once. */
  close(): void
}

/** Streams changes as JSON lines or protobuf frames. What goes wrong behind the head is an ERROR event, as clients expect it. */
export function createWatching(services: ReadServices): Watching {
  const sessions = new Set<WatchSession>()
  let closed = false
  const handler: Handler = (scope, request, reply) => {
    const format = negotiate(request, 'watch')
    const options = parseListOptions(request.query, 'watch')
    const selection = parseSelection(scope, request.query, request.info.name)
    const namespace = scope.resource.namespaced ? request.info.namespace : ''
    const prefix = listPrefix(scope.resource, namespace)
    const { env, responder } = services
    return new Promise<void>((resolve) => {
      const stream = reply.stream(200, watchContentType(format))
      const onAbort = (): void => session.end()
      const session = new WatchSession({
        env,
        encoder: responder.encoder,
        turns: responder.turns,
        target: { scope, format, selection, namespace, bookmarks: options.allowWatchBookmarks },
        stream,
        onEnded: () => {
          sessions.delete(session)
          request.signal.removeEventListener('abort', onAbort)
          resolve()
        },
      })
      sessions.add(session)
      stream.flushHead()
      session.start(timeoutMs(services, options))
      if (closed || request.signal.aborted || stream.closed) session.end()
      else request.signal.addEventListener('abort', onAbort)
      run(services, session, prefix, options).catch((error: unknown) => session.fail(error))
    })
  }
  return {
    handler,
    close() {
      closed = true
      for (const session of sessions) session.end()
    },
  }
}

function timeoutMs({ env }: ReadServices, { timeoutSeconds }: ListOptions): number {
  const seconds =
    timeoutSeconds !== undefined && timeoutSeconds > 0
      ? timeoutSeconds
      : watchTimeoutMinSeconds * (1 + env.random.float())
  return Math.min(seconds, timeoutMaxSeconds) * 1000
}

/** Longest delay that timers take (2^31 ms), rounded down. */
const timeoutMaxSeconds = 2_000_000

async function run(services: ReadServices, session: WatchSession, prefix: string, options: ListOptions): Promise<void> {
  const { cache } = services
  const { signal } = session
  const after = options.resourceVersion ?? 0
  // Without a revision a watch starts with what is there, unless it says it does not want it.
  const initial = options.sendInitialEvents ?? after === 0
  if (options.resourceVersion === undefined) await cache.fresh({ signal })
  else if (after > 0) await cache.waitUntil(after, { signal })
  if (signal.aborted) return
  if (initial) {
    const snapshot = cache.snapshot(prefix)
    await session.sendInitial(snapshot.range())
    session.sendInitialEnd(snapshot.revision)
    session.attach(cache, prefix, snapshot.sequence)
    return
  }
  if (after === 0) {
    session.attach(cache, prefix, cache.snapshot(prefix).sequence)
    return
  }
  await followFrom(services, session, prefix, after)
}

async function followFrom(services: ReadServices, session: WatchSession, prefix: string, after: number): Promise<void> {
  const { cache, store } = services
  // What the window still knows of a compacted revision is not served: after a restart it would not be there either.
  const { compactRevision } = store.status()
  if (after < compactRevision) throw tooOldError(after, compactRevision)
  let reached = after
  let sequence = cache.sequenceAt(prefix, reached)
  while (sequence === undefined) {
    try {
      for await (const piece of cache.replay(prefix, reached, session.signal)) {
        await session.sendHistory(piece.events)
        reached = piece.reached
        if (session.signal.aborted) return
      }
    } catch (error) {
      if (session.signal.aborted) return
      if (error instanceof StorageError && error.code === 'ERR_COMPACTED') {
        throw tooOldError(after, error.compactRevision ?? store.status().compactRevision)
      }
      throw error
    }
    sequence = cache.sequenceAt(prefix, reached)
  }
  session.attach(cache, prefix, sequence)
}
