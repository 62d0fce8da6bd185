import type { Env } from '../storage/index.ts'
import { authenticateWith, type Authenticator, mastersGroup } from './authentication/authenticator.ts'
import { actingUser } from './authentication/impersonation.ts'
import { type Attributes, type Authorizer, forbiddenText } from './authorization/authorizer.ts'
import { ApiError, badRequest, forbidden, methodNotAllowed, noSuchResource } from './errors.ts'
import type { Exchange, ExchangeHandler } from './exchange.ts'
import { deadlineOf } from './filters/deadline.ts'
import { GuardedReply } from './filters/guarded-reply.ts'
import { InFlight } from './filters/in-flight.ts'
import { guardLoopback } from './filters/loopback-guard.ts'
import { requestSignal } from './filters/request-signal.ts'
import { Warnings } from './filters/warnings.ts'
import { watchLastBytesMs } from './http-limits.ts'
import type { RequestMetrics } from './metrics/request-metrics.ts'
import {
  hasTrailingPath,
  isLongRunning,
  isMutating,
  namedByPath,
  parseTarget,
  requestInfo,
  type RequestTarget,
} from './request-info.ts'
import { apiErrorOf, tooManyRequests } from './status.ts'
import { writeNotFound, writeStatus } from './status-reply.ts'
import { randomUuid } from './uuid.ts'
import type { ApiRequest, Handler, RequestInfo, RequestScope, ResourceRegistry, UserInfo } from './types.ts'

/** Paths outside the resources: discovery, health, version, OpenAPI. Returns false when the path is not one of them. */
export type PathHandler = (request: ApiRequest, reply: GuardedReply) => Promise<boolean>

/** Which handler serves a verb of a resource; undefined: none does, although discovery lists the verb. */
export type HandlerFor = (scope: RequestScope, info: RequestInfo) => Handler | undefined

export interface Dispatcher {
  readonly handle: ExchangeHandler
  /** Requests under way, watches included. */
  readonly active: number
  /** Resolves when none is under way. */
  idle(): Promise<void>
  /** From now on requests are refused with 503, health checks excepted. */
  refuse(): void
  /** Aborts the signal of every request under way. */
  abort(): void
}

/**
 * The filters of every request, outermost first: audit id and cache headers, panic recovery, request info, deadline,
 * authentication, impersonation, flow control, authorization, handler (kubernetes/apiserver server/config.go DefaultBuildHandlerChain).
 */
export function createDispatcher(options: {
  readonly env: Env
  readonly registry: ResourceRegistry
  readonly authenticators: readonly Authenticator[]
  readonly authorizer: Authorizer
  readonly handlerFor: HandlerFor
  readonly paths: PathHandler
  readonly requestTimeoutMs: number
  readonly inFlight?: InFlight
  readonly metrics?: RequestMetrics
}): Dispatcher {
  const { env, registry, authorizer } = options
  const authenticate = authenticateWith(options.authenticators)
  const inFlight = options.inFlight ?? new InFlight()
  const stop = new AbortController()
  let active = 0
  let refusing = false
  let idleWaiters: (() => void)[] = []

  return {
    get active() {
      return active
    },
    idle: () => (active === 0 ? Promise.resolve() : new Promise((resolve) => idleWaiters.push(resolve))),
    refuse() {
      refusing = true
    },
    abort() {
      stop.abort(new DOMException('the server is shutting down', 'AbortError'))
    },
    handle(exchange) {
      active += 1
      void serve(exchange).finally(() => {
        active -= 1
        if (active > 0) return
        const waiters = idleWaiters
        idleWaiters = []
        for (const run of waiters) run()
      })
    },
  }

  /** Never rejects: whatever goes wrong becomes an answer, or a cut stream when the answer has begun. */
  async function serve(exchange: Exchange): Promise<void> {
    const guarded = new GuardedReply(exchange.reply)
    try {
      exchange.reply.setHeader('Audit-Id', auditId(env, exchange.headers['audit-id']))
      exchange.reply.setHeader('Cache-Control', 'no-cache, private')
      await route(exchange, guarded)
    } catch (error) {
      fail(exchange, guarded, error)
    }
  }

  function fail(exchange: Exchange, guarded: GuardedReply, error: unknown): void {
    const { reply } = exchange
    const failure = apiErrorOf(error)
    if (failure.code >= 500 && failure.reason === 'InternalError') {
      // neither query nor headers nor body: they may hold secrets
      const path = exchange.target.replace(/\?.*/s, '')
      env.log.error({ method: exchange.method, path, error: describe(error) }, 'request failed')
    }
    guarded.abandon()
    if (reply.finished) return
    // half an answer cannot be taken back: the client must see that it is broken
    if (reply.started) reply.destroy()
    else answerWith(exchange, failure)
  }

  /** Never throws: there is nobody left to catch it. */
  function answerWith(exchange: Exchange, failure: ApiError): void {
    try {
      writeStatus(exchange, failure)
    } catch (error) {
      env.log.error({ code: failure.code, error: describe(error) }, 'an error could not be told')
      if (exchange.reply.started) exchange.reply.destroy()
      else exchange.reply.send(failure.code, 'text/plain; charset=utf-8', `${failure.reason}\n`)
    }
  }

  async function route(exchange: Exchange, reply: GuardedReply): Promise<void> {
    const target = parseTarget(exchange.target)
    if (target === undefined) throw badRequest('the request path cannot be decoded')
    if (exchange.listener === 'loopback') guardLoopback(exchange)
    const info = requestInfo(exchange.method, target)
    if (refusing && !isHealthPath(info.path)) throw shuttingDown()
    const longRunning = isLongRunning(info)
    options.metrics?.begin(info, exchange, { longRunning, dryRun: target.query.has('dryRun') })
    const deadline = deadlineOf(info, target.query, options.requestTimeoutMs)
    const user = actingUser(exchange, authenticate(exchange), authorizer)

    const leave = longRunning || user.groups.includes(mastersGroup) ? nothing : inFlight.enter(isMutating(info))
    if (leave === undefined) throw tooManyRequests()
    const scoped = requestSignal({
      client: exchange.signal,
      stop: stop.signal,
      scheduler: env.scheduler,
      deadlineMs: longRunning ? undefined : deadline.ms,
      // answered here and now, even while the handler still waits for something that ignores its signal
      onExpired: () => fail(exchange, reply, deadline.expired()),
    })
    try {
      authorize(info, user, exchange)
      const warnings = new Warnings()
      const request: ApiRequest = {
        info,
        method: exchange.method,
        query: target.query,
        headers: exchange.headers,
        user,
        signal: scoped.signal,
        body: () => exchange.body(),
        warn(message) {
          const values = warnings.add(message)
          if (values !== undefined) exchange.reply.setHeader('Warning', values)
        },
      }
      if (info.isResourceRequest) await serveResource(exchange, target, request, reply)
      else if (!(await options.paths(request, reply))) writeNotFound(exchange)
      if (!exchange.reply.started && !exchange.reply.finished) throw new Error(`no answer to ${info.verb} ${info.path}`)
      // a stream goes on after its handler returned: it holds its slot and its signal until its last byte is out
      await finished(exchange, longRunning ? watchLastBytesMs : undefined)
    } catch (error) {
      // what a handler says about its aborted calls is noise when the deadline was the cause
      if (scoped.expired) return
      if (exchange.signal.aborted) return
      throw scoped.signal.aborted && stop.signal.aborted ? shuttingDown() : error
    } finally {
      scoped.release()
      leave()
    }
  }

  /** Resolves when the answer is out. @param limitMs - Longest wait; then it is cut. Others have their deadline. */
  async function finished({ reply }: Exchange, limitMs: number | undefined): Promise<void> {
    const limit = limitMs === undefined ? undefined : env.scheduler.after(limitMs, () => reply.destroy())
    await new Promise<void>((resolve) => reply.onFinished(resolve))
    limit?.cancel()
  }

  function authorize(info: RequestInfo, user: UserInfo, exchange: Exchange): void {
    const attributes: Attributes = info.isResourceRequest
      ? { ...info, isResourceRequest: true, user }
      : { isResourceRequest: false, user, verb: info.verb, path: info.path }
    if (authorizer.authorize(attributes).allowed) return
    const why = forbiddenText(attributes)
    exchange.reply.setHeader('X-Content-Type-Options', 'nosniff')
    if (info.isResourceRequest) throw forbidden(info, info.name, why)
    throw new ApiError(403, 'Forbidden', `forbidden: ${why}`, { details: {} })
  }

  async function serveResource(
    exchange: Exchange,
    target: RequestTarget,
    request: ApiRequest,
    reply: GuardedReply,
  ): Promise<void> {
    const { info } = request
    const scope = registry.find(info.group, info.version, info.resource, info.subresource)
    if (scope === undefined || !pathFits(scope, info, target)) {
      // below a group version that is served the API answers, elsewhere the server (apiserver/pkg/server/handler.go)
      if (servesGroupVersion(registry, info)) throw noSuchResource()
      writeNotFound(exchange)
      return
    }
    checkSegment('Name', info.name)
    checkSegment('Namespace', info.namespace)
    const verbs = scope.subresource?.verbs ?? scope.resource.verbs
    const handler =
      verbs.includes(info.verb) && verbFits(scope, info, target) ? options.handlerFor(scope, info) : undefined
    if (handler === undefined) throw methodNotAllowed()
    await handler(scope, request, reply)
  }
}

const nothing = (): void => {}

/** A namespaced resource lies under a namespace unless all are listed; a cluster-scoped one never does. */
function pathFits(scope: RequestScope, info: RequestInfo, target: RequestTarget): boolean {
  if (hasTrailingPath(info, target) && info.subresource !== 'proxy') return false
  if (info.subresource !== '' && info.name === '') return false
  if (info.subresource === '' && namedByPath(info, target) && !scope.resource.verbs.some(isVerbOfOne)) return false
  if (info.resource === 'namespaces' && info.group === '') return info.namespace === '' || info.namespace === info.name
  if (!scope.resource.namespaced) return info.namespace === ''
  return info.namespace !== '' || !namedByPath(info, target)
}

/** Reviews and bindings are only ever posted: there is no path of one of them. */
const isVerbOfOne = (verb: string): boolean =>
  verb === 'get' || verb === 'update' || verb === 'patch' || verb === 'delete'

function servesGroupVersion(registry: ResourceRegistry, { group, version }: RequestInfo): boolean {
  return registry
    .all()
    .some(({ resource }) => resource.group === group && resource.served.some(({ gvk }) => gvk.version === version))
}

/** What the method needs of the path: POST goes to the collection, PUT and PATCH to a name, writes into one namespace. */
function verbFits(scope: RequestScope, info: RequestInfo, target: RequestTarget): boolean {
  const named = namedByPath(info, target)
  const everywhere = scope.resource.namespaced && info.namespace === ''
  switch (info.verb) {
    case 'create':
      return !everywhere && named === (info.subresource !== '')
    case 'update':
    case 'patch':
    case 'delete':
      return named
    case 'deletecollection':
      return !everywhere
    case 'get':
    case 'list':
    case 'watch':
    case 'post':
    case 'put':
    case 'head':
    case 'options':
      return true
  }
}

/** Names become store keys: one segment, nothing that climbs (apimachinery api/validation/path). */
function checkSegment(what: 'Name' | 'Namespace', value: string): void {
  let fault: string | undefined
  if (value === '.' || value === '..') fault = `may not be '${value}'`
  else if (value.includes('/')) fault = "may not contain '/'"
  else if (value.includes('%')) fault = "may not contain '%'"
  if (fault !== undefined) throw badRequest(`${what} parameter invalid: ${JSON.stringify(value)}: ${fault}`)
}

function shuttingDown(): ApiError {
  return new ApiError(503, 'ServiceUnavailable', 'the server is shutting down', { details: { retryAfterSeconds: 1 } })
}

function isHealthPath(path: string): boolean {
  return /^\/(?:healthz|livez|readyz)(?:\/|$)/.test(path)
}

/** The caller's, when it is printable and short; else a new random UUID (RFC 9562 version 4). */
function auditId(env: Env, asked: string | undefined): string {
  if (asked !== undefined && /^[\x21-\x7e]{1,64}$/.test(asked)) return asked
  return randomUuid(env)
}

/** For the log. What JSON.parse says quotes its input, so a SyntaxError shows where it happened alone. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return `not an error: ${typeof error}`
  const stack = error.stack ?? error.message
  return error instanceof SyntaxError ? stack.replace(error.message, '(withheld)') : stack
}
