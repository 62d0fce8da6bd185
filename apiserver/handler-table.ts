import type { Authorizer } from './authorization/authorizer.ts'
import { reviewHandlers } from './authorization/reviews.ts'
import type { HandlerFor } from './dispatch.ts'
import type { Handler, Responder, Verb } from './types.ts'

export interface ReadHandlers {
  readonly get: Handler
  readonly list: Handler
  readonly watch: Handler
  readonly componentStatuses: { readonly get: Handler; readonly list: Handler }
}

export interface WriteHandlers {
  readonly create: Handler
  readonly update: Handler
  readonly patch: Handler
  readonly delete: Handler
  readonly deletecollection: Handler
  /** By subresource name, then verb; "binding" also serves POST of the resource `bindings`. */
  readonly subresources: Readonly<Record<string, Readonly<Partial<Record<Verb, Handler>>>>>
}

/** Which handler serves a verb: reviews answer themselves, subresources have their own, all else is the generic store's. */
export function handlerTable(options: {
  readonly read: ReadHandlers
  readonly write: WriteHandlers
  readonly responder: Responder
  readonly authorizer: Authorizer
}): HandlerFor {
  const reviews = reviewHandlers(options)
  return (scope, info) => {
    const { resource } = scope
    const { subresources } = options.write
    if (scope.subresource !== undefined) {
      const own = subresources[scope.subresource.name]?.[info.verb]
      // reading a subresource of the same kind is reading the object
      return own ?? (info.verb === 'get' && scope.subresource.gvk.kind === resource.kind ? options.read.get : undefined)
    }
    if (resource.storagePrefix === undefined) {
      if (resource.plural === 'componentstatuses') {
        const { componentStatuses } = options.read
        return info.verb === 'get' || info.verb === 'list' ? componentStatuses[info.verb] : undefined
      }
      if (info.verb !== 'create') return undefined
      if (resource.plural === 'bindings') return subresources['binding']?.create
      return reviews.get(`${resource.group}/${resource.plural}`)
    }
    switch (info.verb) {
      case 'get':
        return options.read.get
      case 'list':
        return options.read.list
      case 'watch':
        return options.read.watch
      case 'create':
        return options.write.create
      case 'update':
        return options.write.update
      case 'patch':
        return options.write.patch
      case 'delete':
        return options.write.delete
      case 'deletecollection':
        return options.write.deletecollection
      case 'post':
      case 'put':
      case 'head':
      case 'options':
        return undefined
    }
  }
}
