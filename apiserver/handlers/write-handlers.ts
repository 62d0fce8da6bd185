import type { ApiServices, Handler, Verb } from '../types.ts'
import { createWriteServices, type WriteServices } from '../object-store/write-services.ts'
import { createHandler } from './create.ts'
import { deleteHandler } from './delete.ts'
import { deleteCollectionHandler } from './deletecollection.ts'
import { patchHandler } from './patch.ts'
import { bindingHandler } from './subresources/binding.ts'
import { evictionHandler } from './subresources/eviction.ts'
import { logHandler, proxyHandler, streamHandler } from './subresources/kubelet.ts'
import { scaleHandlers } from './subresources/scale.ts'
import { updateHandler } from './update.ts'

export interface WriteHandlers {
  readonly create: Handler
  readonly update: Handler
  readonly patch: Handler
  readonly delete: Handler
  readonly deletecollection: Handler
  /**
   * By subresource name, then verb. A `get` that is missing here is the object's own (status, resize, …); any other verb
   * that is missing is 405. POST of `bindings` is `subresources.binding.create`.
   */
  readonly subresources: Readonly<Record<string, Readonly<Partial<Record<Verb, Handler>>>>>
  /** For built-in controllers and bootstrap, which write without a request of their own. */
  readonly services: WriteServices
}

/** Every handler that changes something, and the subresources that are not plain reads. */
export function createWriteHandlers(services: ApiServices): WriteHandlers {
  const writes = createWriteServices(services)
  const update = updateHandler(writes)
  const patch = patchHandler(writes)
  const whole = { update, patch }
  const stream = streamHandler(writes)
  const proxy = proxyHandler(writes)
  return {
    create: createHandler(writes),
    update,
    patch,
    delete: deleteHandler(writes),
    deletecollection: deleteCollectionHandler(writes),
    subresources: {
      status: whole,
      approval: whole,
      ephemeralcontainers: whole,
      resize: whole,
      finalize: { update },
      scale: scaleHandlers(writes),
      binding: { create: bindingHandler(writes) },
      eviction: { create: evictionHandler(writes) },
      log: { get: logHandler(writes) },
      exec: { get: stream, create: stream },
      attach: { get: stream, create: stream },
      portforward: { get: stream, create: stream },
      proxy: { get: proxy, create: proxy, update: proxy, patch: proxy, delete: proxy },
    },
    services: writes,
  }
}
