import { createHash } from 'node:crypto'
import { ApiError, methodNotAllowed } from '../errors.ts'
import { goJson } from '../status.ts'
import { wantsPretty } from '../status-reply.ts'
import type { ApiReply, ApiRequest } from '../types.ts'
import { type AggregatedVersion, apiGroupDiscoveryList } from './aggregated-discovery.ts'
import { apiGroup, apiGroupList, apiResourceList, apiVersions, type ServedApi } from './legacy-discovery.ts'
import { acceptClauses, acceptsJson, type MediaClause } from './media-clause.ts'

/** Serves /api, /apis and what lies under them up to a group version. */
export class DiscoveryPaths {
  readonly #api: ServedApi
  readonly #serverAddress: string
  /** One per aggregated form: made on the first question, for the life of `api`. */
  readonly #aggregated = new Map<string, { readonly body: string; readonly etag: string }>()

  constructor(options: { readonly api: ServedApi; readonly serverAddress: string }) {
    this.#api = options.api
    this.#serverAddress = options.serverAddress
  }

  /** False: the path is not a discovery path, or names what is not served. */
  serve(request: ApiRequest, reply: ApiReply): boolean {
    const segments = request.info.path.split('/').filter((segment) => segment !== '')
    const [prefix, group, version] = segments
    if ((prefix !== 'api' && prefix !== 'apis') || segments.length > 3) return false
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed()
    if (segments.length === 1) {
      this.#root(prefix, request, reply)
      return true
    }
    const answer =
      prefix === 'api'
        ? segments.length === 2
          ? apiResourceList(this.#api, '', group ?? '')
          : undefined
        : version === undefined
          ? apiGroup(this.#api, group ?? '')
          : apiResourceList(this.#api, group ?? '', version)
    if (answer === undefined) return false
    if (!acceptClauses(request.headers['accept']).some(acceptsPlain)) throw notAcceptable()
    this.#send(request, reply, answer)
    return true
  }

  #root(prefix: 'api' | 'apis', request: ApiRequest, reply: ApiReply): void {
    for (const clause of acceptClauses(request.headers['accept'])) {
      const as = aggregatedVersion(clause)
      if (as !== undefined) {
        this.#sendAggregated(prefix, as, request, reply)
        return
      }
      if (acceptsPlain(clause)) {
        const answer = prefix === 'api' ? apiVersions(this.#serverAddress) : apiGroupList(this.#api)
        this.#send(request, reply, answer, { Vary: 'Accept' })
        return
      }
    }
    throw notAcceptable()
  }

  #send(request: ApiRequest, reply: ApiReply, answer: object, headers?: Readonly<Record<string, string>>): void {
    const pretty = wantsPretty(`?${request.query.toString()}`, request.headers)
    reply.send(200, 'application/json', `${goJson(answer, pretty ? 2 : undefined)}\n`, headers)
  }

  #sendAggregated(prefix: 'api' | 'apis', as: AggregatedVersion, request: ApiRequest, reply: ApiReply): void {
    const key = `${prefix} ${as}`
    let document = this.#aggregated.get(key)
    if (document === undefined) {
      const body = goJson(apiGroupDiscoveryList(this.#api, prefix, as))
      document = { body, etag: `"${createHash('sha512').update(body).digest('hex').toUpperCase()}"` }
      this.#aggregated.set(key, document)
    }
    const headers = { ETag: document.etag, Vary: 'Accept', 'Cache-Control': 'public' }
    if (matches(request.headers['if-none-match'], document.etag)) {
      reply.send(304, '', '', headers)
      return
    }
    const type = `application/json;g=apidiscovery.k8s.io;v=${as};as=APIGroupDiscoveryList`
    reply.send(200, type, document.body, headers)
  }
}

/** RFC 9110 13.1.2. */
export function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some((part) => part.trim() === '*' || part.trim().replace(/^W\//, '') === etag)
}

function aggregatedVersion({ type, parameters }: MediaClause): AggregatedVersion | undefined {
  if (type !== 'application/json' || parameters['as'] !== 'APIGroupDiscoveryList') return undefined
  if (parameters['g'] !== 'apidiscovery.k8s.io') return undefined
  const version = parameters['v']
  return version === 'v2' || version === 'v2beta1' ? version : undefined
}

/** A clause that asks for another form (`as=`) is no request for the plain one. */
const acceptsPlain = (clause: MediaClause): boolean => acceptsJson(clause) && clause.parameters['as'] === undefined

export function notAcceptable(): ApiError {
  return new ApiError(406, 'NotAcceptable', 'only the following media types are accepted: application/json', {})
}
