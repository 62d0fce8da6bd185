import { createHash } from 'node:crypto'
import { encodeOpenApiV2, openApiV2Document, openApiV3Document, resourceGroups } from '../../schemas/index.ts'
import type { Env } from '../../storage/index.ts'
import { ApiError, methodNotAllowed } from '../errors.ts'
import { goJson } from '../status.ts'
import type { ApiReply, ApiRequest } from '../types.ts'
import { gitVersion } from '../version.ts'
import type { WorkTurns } from '../work-turns.ts'
import { matches } from './discovery-paths.ts'
import { acceptClauses, acceptsJson } from './media-clause.ts'

interface Document {
  readonly body: string
  /** SHA-512 of the body, upper-case hex: the URL's ?hash= and the ETag. */
  readonly hash: string
}

/** The OpenAPI 2.0 document in both forms. */
interface WholeDocument {
  readonly json: string
  readonly protobuf: Uint8Array
  readonly hash: string
}

const protobufV2 = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'

const yearSeconds = 31_536_000

/** /openapi/v2, /openapi/v3 and one document per group version (KEP-2896; kube-openapi handler3). Documents are made when first asked for. */
export class OpenApiPaths {
  readonly #env: Env
  readonly #turns: WorkTurns
  /** Bounded by the group versions served. */
  readonly #documents = new Map<string, Document>()

  /** Made once, on the first question: only old clients ask. */
  #whole: Promise<WholeDocument> | undefined

  constructor(options: { readonly env: Env; readonly turns: WorkTurns }) {
    this.#env = options.env
    this.#turns = options.turns
  }

  /** False: not an OpenAPI path, or no such group version. */
  async serve(request: ApiRequest, reply: ApiReply): Promise<boolean> {
    const { path } = request.info
    if (path === '/openapi/v2') {
      await this.#version2(request, reply)
      return true
    }
    if (path !== '/openapi/v3' && path !== '/openapi/v3/' && !path.startsWith('/openapi/v3/')) return false
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed()
    if (!acceptClauses(request.headers['accept']).some(acceptsJson)) {
      throw notAcceptable('only the following media types are accepted: application/json')
    }
    const name = path.slice('/openapi/v3/'.length)
    if (name === '') {
      await this.#index(request, reply)
      return true
    }
    const document = this.#document(name)
    if (document === undefined) return false
    this.#answer(name, document, request, reply)
    return true
  }

  /** Protobuf when asked for before JSON (kube-openapi handler/handler.go); the answer's type has a dot for the "@". */
  async #version2(request: ApiRequest, reply: ApiReply): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed()
    const clause = acceptClauses(request.headers['accept']).find((one) => acceptsJson(one) || one.type === protobufV2)
    if (clause === undefined) {
      throw notAcceptable(`only the following media types are accepted: application/json, ${protobufV2}`)
    }
    this.#whole ??= this.#turns.run(makeVersion2())
    const whole = await this.#whole
    const binary = clause.type === protobufV2
    const etag = `"${whole.hash}"`
    const headers = { ETag: etag, Vary: 'Accept' }
    if (matches(request.headers['if-none-match'], etag)) reply.send(304, '', '', headers)
    else if (binary) reply.send(200, protobufV2.replace('@', '.'), whole.protobuf, headers)
    else reply.send(200, 'application/json', whole.json, headers)
  }

  async #index(request: ApiRequest, reply: ApiReply): Promise<void> {
    const body = goJson({ paths: await this.#turns.run(this.#indexPaths()) })
    const etag = `"${hashOf(body)}"`
    if (matches(request.headers['if-none-match'], etag)) reply.send(304, '', '', { ETag: etag })
    else reply.send(200, 'application/json', body, { ETag: etag, Vary: 'Accept' })
  }

  /** Makes the documents that nobody has asked for yet: each takes some milliseconds. */
  *#indexPaths(): Generator<undefined, Record<string, object>> {
    const paths: Record<string, object> = {}
    for (const name of documentNames().sort()) {
      const document = this.#document(name)
      paths[name] = { serverRelativeURL: `/openapi/v3/${name}?hash=${document?.hash ?? ''}` }
      yield
    }
    return paths
  }

  /** With the right ?hash= the answer may be kept for ever; a wrong one is sent to the right one. */
  #answer(name: string, document: Document, request: ApiRequest, reply: ApiReply): void {
    const asked = request.query.get('hash')
    if (asked !== null && asked !== '' && asked !== document.hash) {
      reply.send(301, 'text/html; charset=utf-8', '', { Location: `/openapi/v3/${name}?hash=${document.hash}` })
      return
    }
    const etag = `"${document.hash}"`
    const expires = new Date(this.#env.clock.wallMs() + yearSeconds * 1000).toUTCString()
    const headers = {
      ETag: etag,
      Vary: 'Accept',
      ...(asked ? { 'Cache-Control': 'public, immutable', Expires: expires } : {}),
    }
    if (matches(request.headers['if-none-match'], etag)) reply.send(304, '', '', headers)
    else reply.send(200, 'application/json', document.body, headers)
  }

  #document(name: string): Document | undefined {
    const known = this.#documents.get(name)
    if (known !== undefined) return known
    if (!documentNames().includes(name)) return undefined
    const [, group = '', version = ''] = name === 'api/v1' ? ['api', '', 'v1'] : name.split('/')
    const body = goJson(openApiV3Document({ group, version }, gitVersion()))
    const document = { body, hash: hashOf(body) }
    this.#documents.set(name, document)
    return document
  }
}

function* makeVersion2(): Generator<undefined, WholeDocument> {
  const document = yield* openApiV2Document(gitVersion())
  const members: string[] = []
  for (const [name, value] of Object.entries(document)) {
    members.push(
      `${goJson(name)}:${name === 'paths' || name === 'definitions' ? yield* jsonOfEach(value) : goJson(value)}`,
    )
  }
  const json = `{${members.join(',')}}`
  yield
  return { json, protobuf: yield* encodeOpenApiV2(document), hash: hashOf(json) }
}

/** goJson(object), a member a step. */
function* jsonOfEach(object: unknown): Generator<undefined, string> {
  const members: string[] = []
  for (const [name, value] of Object.entries(object as object)) {
    members.push(`${goJson(name)}:${goJson(value)}`)
    yield
  }
  return `{${members.join(',')}}`
}

const hashOf = (text: string): string => createHash('sha512').update(text).digest('hex').toUpperCase()

function documentNames(): string[] {
  return resourceGroups().flatMap(({ group, versions }) =>
    versions.map(({ version }) => (group === '' ? `api/${version}` : `apis/${group}/${version}`)),
  )
}

function notAcceptable(message: string): ApiError {
  return new ApiError(406, 'NotAcceptable', message)
}
