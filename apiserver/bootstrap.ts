import { ApiError } from './errors.ts'
import { runInternally } from './internal-request.ts'
import type { HandlerFor } from './dispatch.ts'
import type { ApiServices, RequestInfo } from './types.ts'

/** There from the first second (kubernetes pkg/controlplane/controller/systemnamespaces). */
export const systemNamespaces = ['kube-system', 'kube-public', 'kube-node-lease', 'default'] as const

/** Written at every start: proof that a write succeeds, which is what "ready" means. Outside /registry/: not an object. */
export const startKey = '/trireme/start'

/** Creates what must exist and is missing; resolves when a write has been acknowledged. */
export async function bootstrap(options: {
  readonly services: ApiServices
  readonly handlerFor: HandlerFor
  readonly signal: AbortSignal
  /** What startKey records. */
  readonly version: string
}): Promise<void> {
  const { services, signal } = options
  const missing = systemNamespaces.filter((name) => services.cache.get(`/registry/namespaces/${name}`) === undefined)
  await Promise.all([
    services.store.txn(
      {
        compare: [],
        success: [{ type: 'put', key: Buffer.from(startKey), value: Buffer.from(options.version) }],
        failure: [],
      },
      { signal },
    ),
    ...missing.map((name) => createNamespace(name, options)),
  ])
}

async function createNamespace(
  name: string,
  { services, handlerFor, signal }: { services: ApiServices; handlerFor: HandlerFor; signal: AbortSignal },
): Promise<void> {
  const info: RequestInfo = {
    isResourceRequest: true,
    path: '/api/v1/namespaces',
    verb: 'create',
    apiPrefix: 'api',
    group: '',
    version: 'v1',
    namespace: '',
    resource: 'namespaces',
    subresource: '',
    name: '',
  }
  const scope = services.registry.find('', 'v1', 'namespaces', '')
  const handler = scope && handlerFor(scope, info)
  if (scope === undefined || handler === undefined) throw new Error('namespaces are not served')
  try {
    await runInternally({
      info,
      method: 'POST',
      body: { kind: 'Namespace', apiVersion: 'v1', metadata: { name } },
      signal,
      run: (request, reply) => handler(scope, request, reply),
    })
  } catch (error) {
    // another API server on the same store was faster
    if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error
  }
}
