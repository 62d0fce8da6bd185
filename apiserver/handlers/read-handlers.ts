import type { Handler } from '../types.ts'
import { componentStatusHandlers } from './component-status.ts'
import { getHandler } from './get.ts'
import { listHandler } from './list.ts'
import type { ReadServices } from './read-services.ts'
import { createWatching } from './watch.ts'

export interface ReadHandlers {
  readonly get: Handler
  readonly list: Handler
  readonly watch: Handler
  readonly componentStatuses: { readonly get: Handler; readonly list: Handler }
  /** Shutdown: watches end cleanly. */
  close(): void
}

export function createReadHandlers(services: ReadServices): ReadHandlers {
  const watching = createWatching(services)
  return {
    get: getHandler(services),
    list: listHandler(services),
    watch: watching.handler,
    componentStatuses: componentStatusHandlers(services),
    close: () => watching.close(),
  }
}
