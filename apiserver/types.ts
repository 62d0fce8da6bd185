import type { FieldProblem, GVK, ObjectValue, ResourceInfo, ServedVersion, SubresourceInfo } from '../schemas/index.ts'
import type { Compare, Env, Op, Revision, Store } from '../storage/index.ts'

export interface UserInfo {
  readonly name: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

export type Verb =
  | 'get'
  | 'list'
  | 'watch'
  | 'create'
  | 'update'
  | 'patch'
  | 'delete'
  | 'deletecollection'
  /** Non-resource requests keep their lower-case HTTP method: 'get', 'post', … */
  | 'post'
  | 'put'
  | 'head'
  | 'options'

/** What the path and method ask for (kubernetes/apiserver endpoints/request/requestinfo.go). */
export interface RequestInfo {
  readonly isResourceRequest: boolean
  readonly path: string
  readonly verb: Verb
  /** "api" or "apis"; "" for other paths. */
  readonly apiPrefix: string
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly resource: string
  readonly subresource: string
  readonly name: string
}

/** One request after the filters, as handlers see it. */
export interface ApiRequest {
  readonly info: RequestInfo
  readonly method: string
  readonly query: URLSearchParams
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly user: UserInfo
  /** Aborts at the request's deadline, when the client goes away, or at shutdown. */
  readonly signal: AbortSignal
  /** Whole body, decompressed; bounded (413 ApiError above). Empty when there is none. */
  body(): Promise<Uint8Array>
  /** Adds a `Warning: 299` header; only before the answer starts. */
  warn(message: string): void
}

/** The answer. Exactly one of send and stream is called, once. */
export interface ApiReply {
  send(status: number, contentType: string, body: Uint8Array | string, headers?: Readonly<Record<string, string>>): void
  /** Chunked answer; the head goes out with the first write or flushHead(). */
  stream(status: number, contentType: string, headers?: Readonly<Record<string, string>>): ByteStream
}

export interface ByteStream {
  /** Takes over `bytes` (shared, not copied, never mutated afterwards). */
  write(bytes: Uint8Array): void
  flushHead(): void
  /** Bytes handed over and not yet taken by the client's connection. */
  readonly bufferedBytes: number
  /** Calls back once, when bufferedBytes is back at or under the socket's watermark, or the stream closed. */
  onDrain(run: () => void): void
  end(): void
  /** Cuts the connection without a clean end. */
  destroy(): void
  /** The client went away, or end()/destroy() was called. */
  readonly closed: boolean
  onClose(run: () => void): void
}

/** A resource in a version a client asked for: what every handler is given. */
export interface RequestScope {
  readonly resource: ResourceInfo
  readonly served: ServedVersion
  readonly subresource: SubresourceInfo | undefined
  readonly strategy: Strategy
  /** List items keep kind and apiVersion (custom resources); built-in kinds leave them out. */
  readonly itemTypeMeta?: boolean
}

export type Handler = (scope: RequestScope, request: ApiRequest, reply: ApiReply) => Promise<void>

/**
 * One revision of one object. `stored` is canonical JSON of the storage version without resourceVersion;
 * offsets come from scanStored(). Immutable and shared between clients.
 */
export interface CachedObject {
  /** Store key, as text. */
  readonly key: string
  readonly revision: Revision
  readonly stored: Uint8Array
  readonly offsets: StoredOffsets
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly labels: Readonly<Record<string, string>>
  /** What field selectors match on, metadata.name and metadata.namespace included. */
  readonly fields: Readonly<Record<string, string>>
  /** metadata.deletionTimestamp is set. */
  readonly deleting: boolean
}

/** Byte positions inside `stored`. `{"kind":"Pod","apiVersion":"v1",|"metadata":{…,"uid":"…",|"generation":…}|,"spec":…` */
export interface StoredOffsets {
  /** After the type meta: a list item of a built-in kind is `{` + stored from here. */
  readonly body: number
  /** After `"metadata":{`. */
  readonly metadata: number
  /** Where `"resourceVersion":"N"` goes in. */
  readonly resourceVersion: number
  /** A field precedes that place inside metadata (so a comma goes before), or one follows it (a comma behind). */
  readonly commaBefore: boolean
  readonly commaAfter: boolean
  /** After metadata's closing brace. */
  readonly metadataEnd: number
}

export interface StrategyContext {
  readonly user: UserInfo
  readonly now: Date
  readonly dryRun: boolean
  /** "" for the main resource. */
  readonly subresource: string
  warn(message: string): void
  uid(): string
}

/** One entry of Status.details.causes. */
export interface Cause {
  readonly reason: string
  readonly field: string
  readonly message: string
}

/**
 * What is special about a kind. Sync and pure but for its arguments; sees storage-version objects, which it may change
 * (they are its own copy). What reads other objects is an admission plugin or `claims`.
 */
export interface Strategy {
  readonly allowCreateOnUpdate: boolean
  readonly allowUnconditionalUpdate: boolean
  readonly tracksGeneration: boolean
  readonly returnsDeletedObject: boolean
  /** Seconds of grace for a delete that asked for `asked`; absent = the kind has no graceful deletion. */
  readonly graceSeconds?: (object: ObjectValue, asked: number | undefined) => number
  /** Idempotent; also run on objects read from storage. */
  applyDefaults(object: ObjectValue): void
  prepareForCreate(object: ObjectValue, context: StrategyContext): void
  prepareForUpdate(object: ObjectValue, old: ObjectValue, context: StrategyContext): void
  validate(object: ObjectValue): readonly Cause[]
  validateUpdate(object: ObjectValue, old: ObjectValue, context: StrategyContext): readonly Cause[]
  /** Beyond metadata.name and metadata.namespace; every supported label is present, "" when unset. */
  selectableFields(object: ObjectValue): Readonly<Record<string, string>>
  /** Field labels accepted in fieldSelector beyond metadata.name and metadata.namespace. */
  readonly fieldLabels: readonly string[]
  /** Shared space (clusterIP, nodePort): compares and puts that join the object's own transaction. */
  claims?(object: ObjectValue, old: ObjectValue | undefined): readonly { readonly compare: Compare; readonly op: Op }[]
  /** Claims of `old` that `object` (undefined: deleted) no longer needs; they join the same transaction. */
  releases?(object: ObjectValue | undefined, old: ObjectValue): readonly Op[]
}

/** Every failure that a client sees; becomes a v1 Status in one place (status.ts). */
export interface StatusDetails {
  readonly name?: string
  readonly group?: string
  readonly kind?: string
  readonly uid?: string
  readonly causes?: readonly Cause[]
  readonly retryAfterSeconds?: number
}

export type { FieldProblem, GVK, ObjectValue }

/** The watch cache as handlers see it: every object under /registry/, fed by one Store.watch, in revision order. */
export interface ObjectCache {
  /** Everything through this revision is in. */
  readonly revision: Revision
  get(key: string): CachedObject | undefined
  /** Objects whose key starts with `prefix`, in key order. */
  list(prefix: string): readonly CachedObject[]
  /** How many a whole resource has; `prefix` as its keys begin. */
  count(prefix: string): number
  /** Until `revision` is in; ApiError 504 ResourceVersionTooLarge after 3 s. */
  waitUntil(revision: Revision, options: { readonly signal: AbortSignal }): Promise<void>
  /** Linearizable: asks the store for its current revision and waits for it. Returns it. */
  fresh(options: { readonly signal: AbortSignal }): Promise<Revision>
}

/** Encodes answers as the request's Accept header asks: JSON, YAML, protobuf, Table, PartialObjectMetadata, pretty. */
export interface Responder {
  /** Throws ApiError 406 NotAcceptable before anything is done: call it before work that changes state. */
  check(scope: RequestScope, request: ApiRequest): void
  object(
    scope: RequestScope,
    request: ApiRequest,
    reply: ApiReply,
    answer: {
      readonly status: number
      readonly object: CachedObject
      /** DELETED objects carry the deletion's revision. */ readonly at?: Revision
    },
  ): void
  /** A list answer from objects already chosen (deletecollection). Resolves when all is handed over. */
  list(
    scope: RequestScope,
    request: ApiRequest,
    reply: ApiReply,
    answer: { readonly objects: readonly CachedObject[]; readonly revision: Revision },
  ): Promise<void>
  /** Objects that are not stored: reviews, Scale, Binding, Status. `value` carries apiVersion and kind. */
  value(request: ApiRequest, reply: ApiReply, answer: { readonly status: number; readonly value: ObjectValue }): void
}

/** Which resources are served; may change at run time (custom resources later). */
export interface ResourceRegistry {
  /** undefined: not served in that version. Unknown subresource: undefined too. */
  find(group: string, version: string, plural: string, subresource: string): RequestScope | undefined
  all(): readonly { readonly resource: ResourceInfo; readonly strategy: Strategy }[]
  /** The resource whose objects lie under this store key. */
  byKey(key: string): { readonly resource: ResourceInfo; readonly strategy: Strategy } | undefined
}

/** What handlers are built with; one per API server. */
export interface ApiServices {
  readonly env: Env
  readonly store: Store
  readonly cache: ObjectCache
  readonly responder: Responder
  readonly registry: ResourceRegistry
}
