import type { WatchCache } from '../cache/object-cache.ts'
import type { ObjectResponder } from '../encoding/responder.ts'
import type { ApiServices } from '../types.ts'

/** What get, list and watch are built with. */
export interface ReadServices extends ApiServices {
  readonly cache: WatchCache
  readonly responder: ObjectResponder
}
