import type { Clock, Store, TxnRequest } from '../../storage/index.ts'
import type { ObjectCache, ResourceRegistry } from '../types.ts'
import { gauge, Histogram, type Metric } from './metrics.ts'

/** Seconds; those of kubernetes/apiserver storage/etcd3/metrics. */
const durationBounds = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
]

/** A store that says how long its answers take, by what is done to which resource. Failures count as well. */
export function measureStore(
  store: Store,
  options: { readonly clock: Clock; readonly registry: ResourceRegistry },
): { readonly store: Store; readonly metric: Metric } {
  const { clock, registry } = options
  const metric = new Histogram({
    name: 'etcd_request_duration_seconds',
    help: 'Time the store takes to answer, by operation and resource.',
    labels: ['operation', 'type'],
    bounds: durationBounds,
  })
  const timed = async <Result>(operation: string, key: Uint8Array | undefined, run: () => Promise<Result>) => {
    const startMs = clock.monotonicMs()
    try {
      return await run()
    } finally {
      metric.observe((clock.monotonicMs() - startMs) / 1000, operation, typeOfKey(registry, key))
    }
  }
  const measured: Store = {
    range: (request, call) =>
      timed(request.rangeEnd === undefined ? 'get' : 'list', request.key, () => store.range(request, call)),
    txn: (request, call) => timed(operationOf(request), keyOf(request), () => store.txn(request, call)),
    currentRevision: (call) => store.currentRevision(call),
    watch: (request, sink) => store.watch(request, sink),
    compact: (request, call) => timed('compact', undefined, () => store.compact(request, call)),
    leaseGrant: (request, call) => store.leaseGrant(request, call),
    leaseKeepAlive: (id, call) => store.leaseKeepAlive(id, call),
    leaseRevoke: (id, call) => store.leaseRevoke(id, call),
    leaseTimeToLive: (id, call) => store.leaseTimeToLive(id, call),
    status: () => store.status(),
    close: () => store.close(),
  }
  return { store: measured, metric }
}

/** A put on a key that must not be there creates. */
function operationOf({ compare, success }: TxnRequest): string {
  const [first] = success
  if (first?.type === 'delete') return 'delete'
  if (first?.type !== 'put') return 'get'
  const [guard] = compare
  const creates = guard !== undefined && guard.target !== 'value' && guard.target !== 'lease' && guard.is === 0
  return creates ? 'create' : 'update'
}

function keyOf({ success }: TxnRequest): Uint8Array | undefined {
  const [first] = success
  return first === undefined || first.type === 'txn' ? undefined : first.key
}

function typeOfKey(registry: ResourceRegistry, key: Uint8Array | undefined): string {
  if (key === undefined) return ''
  const resource = registry.byKey(Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('utf8'))?.resource
  return resource === undefined ? '' : qualified(resource)
}

const qualified = ({ plural, group }: { readonly plural: string; readonly group: string }): string =>
  group === '' ? plural : `${plural}.${group}`

/** Objects of each resource that is stored, and how far the store is. */
export function storedObjects(cache: ObjectCache, registry: ResourceRegistry, store: Store): readonly Metric[] {
  return [
    gauge({ name: 'apiserver_storage_objects', help: 'Stored objects, by resource.' }, () => {
      const seen = new Set<string>()
      return registry.all().flatMap(({ resource }) => {
        const prefix = resource.storagePrefix
        // one place may be served under two groups (events)
        if (prefix === undefined || seen.has(prefix)) return []
        seen.add(prefix)
        return [{ labels: { resource: qualified(resource) }, value: cache.count(`${prefix}/`) }]
      })
    }),
    gauge({ name: 'etcd_debugging_mvcc_current_revision', help: 'Revision of the store.' }, () => [
      { value: store.status().revision },
    ]),
    gauge({ name: 'etcd_debugging_mvcc_compact_revision', help: 'Oldest revision that can be read.' }, () => [
      { value: store.status().compactRevision },
    ]),
  ]
}
