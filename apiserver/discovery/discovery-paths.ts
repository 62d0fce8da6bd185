import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { ObjectValue } from '../../schemas/index.ts'
import { protobufValue } from '../encoding/protobuf-encoder.ts'
import { yamlText } from '../encoding/yaml-text.ts'
import { ApiError, methodNotAllowed } from '../errors.ts'
import { goJson } from '../status.ts'
import { wantsPretty } from '../status-reply.ts'
import type { ApiReply, ApiRequest } from '../types.ts'
import { type AggregatedVersion, apiGroupDiscoveryList } from './aggregated-discovery.ts'
import { apiGroup, apiGroupList, apiResourceList, apiVersions, type ServedApi } from './legacy-discovery.ts'
import {
  acceptClauses,
  type MediaClause,
  plainMediaType,
  type PlainMediaType,
  plainMediaTypes,
} from './media-clause.ts'

/** Serves /api, /apis and what lies under them up to a group version. */
export class DiscoveryPaths {
  readonly #api: ServedApi
  readonly #serverAddress: string
  /** One per aggregated form: made on the first question, for the life of `api`. */
  readonly #aggregated = new Map<string, { readonly body: Uint8Array; readonly etag: string }>()

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
    const type = acceptClauses(request.headers['accept'])
      .map(asksForPlain)
      .find((asked) => asked !== undefined)
    if (type === undefined) throw notAcceptable()
    sendPlain(request, reply, answer, type)
    return true
  }

  #root(prefix: 'api' | 'apis', request: ApiRequest, reply: ApiReply): void {
    for (const clause of acceptClauses(request.headers['accept'])) {
      const as = aggregatedVersion(clause)
      if (as !== undefined) {
        this.#sendAggregated(prefix, as, request, reply)
        return
      }
      const type = asksForPlain(clause)
      if (type !== undefined) {
        const answer = prefix === 'api' ? apiVersions(this.#serverAddress) : apiGroupList(this.#api)
        sendPlain(request, reply, answer, type, { Vary: 'Accept' })
        return
      }
    }
    throw notAcceptable()
  }

  #sendAggregated(prefix: 'api' | 'apis', form: AggregatedForm, request: ApiRequest, reply: ApiReply): void {
    const key = `${prefix} ${form.version} ${form.type}`
    let document = this.#aggregated.get(key)
    if (document === undefined) {
      const list = apiGroupDiscoveryList(this.#api, prefix, form.version)
      const body = form.type === 'application/json' ? Buffer.from(goJson(list)) : protobufOf(list)
      document = { body, etag: `"${createHash('sha512').update(body).digest('hex').toUpperCase()}"` }
      this.#aggregated.set(key, document)
    }
    const headers = { ETag: document.etag, Vary: 'Accept', 'Cache-Control': 'public' }
    if (matches(request.headers['if-none-match'], document.etag)) {
      reply.send(304, '', '', headers)
      return
    }
    const type = `${form.type};g=apidiscovery.k8s.io;v=${form.version};as=APIGroupDiscoveryList`
    reply.send(200, type, document.body, headers)
  }
}

function sendPlain(
  request: ApiRequest,
  reply: ApiReply,
  answer: object,
  type: PlainMediaType,
  headers?: Readonly<Record<string, string>>,
): void {
  switch (type) {
    case 'application/json': {
      const pretty = wantsPretty(`?${request.query.toString()}`, request.headers)
      reply.send(200, type, `${goJson(answer, pretty ? 2 : undefined)}\n`, headers)
      return
    }
    case 'application/yaml':
      reply.send(200, type, yamlText(answer), headers)
      return
    case 'application/vnd.kubernetes.protobuf':
      // what has no apiVersion in JSON (see legacy-discovery.ts) is of v1 in its envelope
      reply.send(200, type, protobufOf({ apiVersion: 'v1', ...answer }), headers)
  }
}

function protobufOf(value: object): Uint8Array {
  const message = protobufValue(value as ObjectValue)
  assert(message !== undefined, 'every form of discovery has a message')
  return message
}

/** RFC 9110 13.1.2. */
export function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some((part) => part.trim() === '*' || part.trim().replace(/^W\//, '') === etag)
}

interface AggregatedForm {
  readonly version: AggregatedVersion
  readonly type: 'application/json' | 'application/vnd.kubernetes.protobuf'
}

function aggregatedVersion({ type, parameters }: MediaClause): AggregatedForm | undefined {
  if (parameters['as'] !== 'APIGroupDiscoveryList' || parameters['g'] !== 'apidiscovery.k8s.io') return undefined
  const version = parameters['v']
  if (version !== 'v2' && version !== 'v2beta1') return undefined
  if (type === 'application/json') return { version, type }
  return type === 'application/vnd.kubernetes.protobuf' && version === 'v2' ? { version, type } : undefined
}

/** A clause that asks for another form (`as=`) is no request for the plain one. */
const asksForPlain = (clause: MediaClause): PlainMediaType | undefined =>
  clause.parameters['as'] === undefined ? plainMediaType(clause) : undefined

function notAcceptable(): ApiError {
  return new ApiError(
    406,
    'NotAcceptable',
    `only the following media types are accepted: ${plainMediaTypes.join(', ')}`,
  )
}
