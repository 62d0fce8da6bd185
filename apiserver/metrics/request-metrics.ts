import type { Clock } from '../../storage/index.ts'
import type { Exchange } from '../exchange.ts'
import { isMutating } from '../request-info.ts'
import type { RequestInfo, ResourceRegistry } from '../types.ts'
import { Counter, Histogram, type Metric } from './metrics.ts'

/** Seconds; those of kubernetes/apiserver endpoints/metrics/metrics.go. */
const durationBounds = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
]
const requestLabels = ['verb', 'group', 'version', 'resource', 'subresource', 'scope', 'component'] as const
const component = 'apiserver'
const ownPaths = new Set(['/healthz', '/livez', '/readyz', '/metrics', '/version'])

/**
 * What became of requests, under the names of kube-apiserver. Labels come from what is served, never from a client's
 * text, so that their number is bounded.
 */
export class RequestMetrics {
  readonly #clock: Clock
  readonly #registry: ResourceRegistry
  readonly #total = new Counter({
    name: 'apiserver_request_total',
    help: 'Requests by verb, resource and code of their answer.',
    labels: [...requestLabels, 'dry_run', 'code'],
  })
  readonly #duration = new Histogram({
    name: 'apiserver_request_duration_seconds',
    help: 'Time from the head of a request to the last byte of its answer.',
    labels: [...requestLabels, 'dry_run'],
    bounds: durationBounds,
  })
  readonly #inFlight = new Counter(
    {
      name: 'apiserver_current_inflight_requests',
      help: 'Requests under way that are not long-running.',
      labels: ['request_kind'],
    },
    'gauge',
  )
  readonly #longRunning = new Counter(
    { name: 'apiserver_longrunning_requests', help: 'Watches and connections under way.', labels: requestLabels },
    'gauge',
  )

  constructor(options: { readonly clock: Clock; readonly registry: ResourceRegistry }) {
    this.#clock = options.clock
    this.#registry = options.registry
    this.#inFlight.add(0, 'readOnly')
    this.#inFlight.add(0, 'mutating')
  }

  get all(): readonly Metric[] {
    return [this.#total, this.#duration, this.#inFlight, this.#longRunning]
  }

  /** Counts one request from now until its answer is out. */
  begin(
    info: RequestInfo,
    exchange: Pick<Exchange, 'headers' | 'reply'>,
    options: { readonly longRunning: boolean; readonly dryRun: boolean },
  ): void {
    const startMs = this.#clock.monotonicMs()
    const labels = this.#labels(info, exchange.headers['content-type'])
    const kind = isMutating(info) ? 'mutating' : 'readOnly'
    const count = (amount: number): void => {
      if (options.longRunning) this.#longRunning.add(amount, ...labels)
      else this.#inFlight.add(amount, kind)
    }
    count(1)
    exchange.reply.onFinished(() => {
      count(-1)
      const dryRun = options.dryRun ? 'All' : ''
      this.#total.add(1, ...labels, dryRun, String(exchange.reply.status))
      this.#duration.observe((this.#clock.monotonicMs() - startMs) / 1000, ...labels, dryRun)
    })
  }

  #labels(info: RequestInfo, contentType: string | undefined): readonly string[] {
    const verb = verbLabel(info, contentType)
    const served =
      info.isResourceRequest && this.#registry.find(info.group, info.version, info.resource, info.subresource)
    if (!served) return [verb, '', '', '', ownPaths.has(info.path) ? info.path : '', '', component]
    const scope = info.name !== '' ? 'resource' : info.namespace !== '' ? 'namespace' : 'cluster'
    return [verb, info.group, info.version, info.resource, info.subresource, scope, component]
  }
}

function verbLabel({ verb, isResourceRequest, subresource }: RequestInfo, contentType: string | undefined): string {
  if (isResourceRequest && ['attach', 'exec', 'portforward', 'proxy'].includes(subresource)) return 'CONNECT'
  switch (verb) {
    case 'create':
    case 'post':
      return 'POST'
    case 'update':
    case 'put':
      return 'PUT'
    case 'patch':
      return contentType?.startsWith('application/apply-patch') === true ? 'APPLY' : 'PATCH'
    case 'get':
    case 'head':
    case 'list':
    case 'watch':
    case 'delete':
    case 'deletecollection':
      return verb === 'head' ? 'GET' : verb.toUpperCase()
    case 'options':
      return 'OTHER'
    default:
      return 'OTHER' // methods that RequestInfo passes on as they came
  }
}
