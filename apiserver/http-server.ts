import { createServer as createHttpServer, type IncomingMessage, type Server as HttpServer } from 'node:http'
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type ServerHttp2Session,
} from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { FastifyInstance, FastifyServerOptions } from 'fastify'
import type { Exchange, ExchangeHandler, PeerCertificate } from './exchange.ts'
import {
  concurrentStreamsMax,
  connectionsMax,
  handshakeMsMax,
  keepAliveMs,
  refusedBodyDrainMsMax,
  requestBodiesBytesMax,
  requestHeaderBytesMax,
  requestHeadersMsMax,
  requestMsMax,
  requestTimesCheckMs,
  sessionMemoryMegabytesMax,
} from './http-limits.ts'
import { createReply, cutResponse, type NodeResponse } from './reply-node.ts'
import { BodyBudget, dropBody, readBody } from './request-body-node.ts'

/** PEM texts. */
export interface TlsMaterial {
  readonly certificate: string
  readonly key: string
  /** Whose client certificates are believed. */
  readonly clientAuthority: string
}

export interface Listener {
  readonly port: number
  /** Only a secure listener: nobody gets through the handshake before the first call. */
  setTls(material: TlsMaterial): void
  /** From here on requests go to `handler`; before, handshakes wait and plain requests get 503. Call it once, TLS set. */
  serve(handler: ExchangeHandler): void
  /** No new connections; idle ones close, busy ones after their last answer. Resolves when all are gone. */
  drain(): Promise<void>
  /** Cuts what is left. */
  destroy(): void
}

/** What one client, or all of them, may hold without asking for anything; see http-limits.ts. */
export interface ConnectionLimits {
  readonly connectionsMax: number
  readonly handshakeMsMax: number
  readonly requestHeadersMsMax: number
  readonly requestMsMax: number
  readonly requestTimesCheckMs: number
  readonly refusedBodyDrainMsMax: number
  readonly requestBodiesBytesMax: number
}

const defaultLimits: ConnectionLimits = {
  connectionsMax,
  handshakeMsMax,
  requestHeadersMsMax,
  requestMsMax,
  requestTimesCheckMs,
  refusedBodyDrainMsMax,
  requestBodiesBytesMax,
}

export class ListenError extends Error {
  readonly code: string
  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, { cause: options?.cause })
    this.name = 'ListenError'
    this.code = code
  }
}

type NodeRequest = IncomingMessage | Http2ServerRequest

/**
 * HTTP/2 and HTTP/1.1 over TLS on one port, or HTTP/1.1 in the clear. Fastify carries the connection; there is one
 * route, since resources come and go while the server runs.
 *
 * @throws ListenError EADDRINUSE, EACCES, EADDRNOTAVAIL
 */
export async function listen(options: {
  readonly host: string
  /** 0 = any free one. */
  readonly port: number
  readonly secure: boolean
  /** Default: those of http-limits.ts. */
  readonly limits?: Partial<ConnectionLimits>
  /** What chose host and port, for messages. */
  readonly settings?: { readonly host: string; readonly port: string }
}): Promise<Listener> {
  const connections = new Set<Socket>()
  const sessions = new Set<ServerHttp2Session>()
  const busy = new Map<Socket, number>()
  let handler: ExchangeHandler | undefined
  let draining: Promise<void> | undefined

  const limits = { ...defaultLimits, ...options.limits }
  const bodies = new BodyBudget(limits.requestBodiesBytesMax)
  const server = options.secure ? createSecure(limits) : createPlain(limits)
  const beginHandshakes = options.secure ? holdHandshakes(server) : () => undefined
  server.maxConnections = limits.connectionsMax
  server.on(options.secure ? 'secureConnection' : 'connection', (socket: Socket) => {
    connections.add(socket)
    socket.on('close', () => connections.delete(socket))
  })
  // the TCP connection below a TLS one: a client that never finishes its handshake must not hold up a stop
  const transports = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    socket.setKeepAlive(true, 60_000)
    transports.add(socket)
    socket.on('close', () => transports.delete(socket))
    socket.on('error', () => {}) // a broken connection ends with 'close'; there is nobody to tell
  })
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    session.on('error', () => {}) // as above
  })

  const { default: fastify } = await import('fastify')
  const app: FastifyInstance = fastify({
    serverFactory: (onRequest) => {
      server.on('request', onRequest)
      return server as HttpServer
    },
    // routing on real paths is ours: Fastify sees one
    rewriteUrl: (raw) => {
      ;(raw as { apiTarget?: string }).apiTarget = raw.url ?? '/'
      return '/'
    },
    schemaController: { compilersFactory: noSchemaCompilers },
    exposeHeadRoutes: false,
    return503OnClosing: false,
    logger: false,
  })
  // hijacking in the first hook comes before body parsing, and serves the methods that no route can name
  app.addHook('onRequest', (request, reply, done) => {
    reply.hijack()
    accept(request.raw, reply.raw)
    done()
  })
  app.all('/', (_request, reply) => reply)
  try {
    await app.listen({ host: options.host, port: options.port })
  } catch (cause) {
    const code = (cause as { code?: string }).code ?? 'ERR_LISTEN'
    await app.close()
    throw new ListenError(code, listenText(code, options), { cause })
  }

  function accept(request: NodeRequest, response: NodeResponse): void {
    const aborted = new AbortController()
    const reply = createReply(response, request.method === 'HEAD')
    const socket = transportOf(request)
    const share = bodies.share()
    busy.set(socket, (busy.get(socket) ?? 0) + 1)
    reply.onFinished(() => {
      share.release()
      const left = (busy.get(socket) ?? 1) - 1
      if (left > 0) busy.set(socket, left)
      else busy.delete(socket)
      // whoever has given the whole answer has nothing left to stop; aborting would make an exception a request
      if (!response.writableEnded) aborted.abort()
      // over HTTP/1.1 an answer that is out has let go of its connection
      dropBody(request, limits.refusedBodyDrainMsMax, () =>
        'stream' in request ? cutResponse(response) : request.socket.destroy(),
      )
      if (draining !== undefined && left <= 0 && !('stream' in request)) socket.end()
    })
    let body: Promise<Uint8Array> | undefined
    const exchange: Exchange = {
      method: request.method ?? 'GET',
      target: (request as { apiTarget?: string }).apiTarget ?? request.url ?? '/',
      headers: joined(request.headers),
      values: (name) => valuesOf(request.rawHeaders, name),
      listener: options.secure ? 'secure' : 'loopback',
      peer: options.secure ? peerOf(socket as TLSSocket) : undefined,
      signal: aborted.signal,
      body: () => (body ??= readBody(request, share)),
      reply,
    }
    if (draining !== undefined && !('stream' in request)) reply.setHeader('Connection', 'close')
    if (handler === undefined) reply.send(503, 'text/plain; charset=utf-8', 'starting\n', { 'Retry-After': '1' })
    else handler(exchange)
  }

  return {
    port: (server.address() as AddressInfo).port,
    setTls(material) {
      if ('setSecureContext' in server) {
        server.setSecureContext({
          cert: material.certificate,
          key: material.key,
          ca: material.clientAuthority,
          minVersion: 'TLSv1.2',
        })
      }
    },
    serve(to) {
      handler = to
      beginHandshakes()
    },
    drain() {
      draining ??= closeAll()
      return draining
    },
    destroy() {
      for (const session of sessions) session.destroy()
      for (const socket of connections) socket.destroy()
      for (const socket of transports) socket.destroy()
    },
  }

  async function closeAll(): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    for (const session of sessions) session.close()
    for (const socket of connections) if (!busy.has(socket) && !isHttp2(socket)) socket.end()
    // handshakes under way: their owners have asked for nothing yet
    if (connections.size === 0) for (const socket of transports) socket.destroy()
    await closed
    await app.close()
  }
}

function createSecure(limits: ConnectionLimits): Http2SecureServer {
  const server = createSecureServer({
    allowHTTP1: true,
    requestCert: true,
    rejectUnauthorized: false, // asked for, not required: requests without one are anonymous
    handshakeTimeout: limits.handshakeMsMax,
    maxSessionMemory: sessionMemoryMegabytesMax,
    settings: { maxConcurrentStreams: concurrentStreamsMax, initialWindowSize: 1024 * 1024 },
  } as Parameters<typeof createSecureServer>[0])
  // an idle watch is not idle
  server.setTimeout(0)
  // read when a connection or the listening begins; this constructor does not take them
  Object.assign(server, http1Bounds(limits), everyHeader)
  return server
}

/**
 * Connections wait, as they would for a process that has not come to accept them yet: without a certificate each
 * handshake would fail, and clients that find a server failing stay away longer than from one that is slow to answer.
 *
 * @returns What lets them go on.
 */
function holdHandshakes(server: Http2SecureServer | HttpServer): () => void {
  const handshakes = server.listeners('connection')
  server.removeAllListeners('connection')
  const begin = (socket: Socket): void => {
    for (const handshake of handshakes) handshake.call(server, socket)
  }
  let held: Socket[] | undefined = []
  server.on('connection', (socket: Socket) => {
    if (held === undefined) begin(socket)
    else held.push(socket)
  })
  return () => {
    const waiting = held ?? []
    held = undefined
    for (const socket of waiting) if (!socket.destroyed) begin(socket)
  }
}

function createPlain(limits: ConnectionLimits): HttpServer {
  const server = Object.assign(createHttpServer(http1Bounds(limits)), everyHeader)
  server.setTimeout(0)
  return server
}

/**
 * Node drops what comes behind the first thousand headers and says nothing: whoever a proxy names in the last one would
 * be served as the proxy. The bytes of all headers are bounded, which is enough.
 */
const everyHeader = { maxHeadersCount: 0 }

const http1Bounds = (limits: ConnectionLimits) => ({
  maxHeaderSize: requestHeaderBytesMax,
  keepAliveTimeout: keepAliveMs,
  headersTimeout: limits.requestHeadersMsMax,
  requestTimeout: limits.requestMsMax,
  connectionsCheckingInterval: limits.requestTimesCheckMs,
})

type CompilersFactory = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>

/** No route has a schema: what would compile them takes 30 ms to load and is never asked. Typed for ajv's own functions. */
const noSchemaCompilers = {
  buildValidator: () => () => () => true,
  buildSerializer: () => () => JSON.stringify,
} as unknown as CompilersFactory

const isHttp2 = (socket: Socket): boolean => (socket as { alpnProtocol?: string | false }).alpnProtocol === 'h2'

/** HTTP/2 shows a proxy that refuses most of a socket's methods: reach the socket through the session. */
function transportOf(request: NodeRequest): Socket {
  return 'stream' in request ? (sessionSocket(request) ?? request.socket) : request.socket
}

function sessionSocket(request: Http2ServerRequest): Socket | undefined {
  return request.stream.session?.socket
}

const peers = Symbol('peer certificate')

/** Read once per connection: the certificate does not change (renegotiation is off). */
function peerOf(socket: TLSSocket): PeerCertificate | undefined {
  const holder = socket as TLSSocket & { [peers]?: PeerCertificate | 'none' }
  holder[peers] ??= readPeer(socket) ?? 'none'
  return holder[peers] === 'none' ? undefined : holder[peers]
}

function readPeer(socket: TLSSocket): PeerCertificate | undefined {
  const certificate = socket.getPeerCertificate()
  if (certificate === null || Object.keys(certificate).length === 0) return undefined
  const subject = certificate.subject as unknown as Record<string, string | string[] | undefined>
  const list = (value: string | string[] | undefined): string[] =>
    value === undefined ? [] : typeof value === 'string' ? [value] : value
  return { commonName: list(subject['CN'])[0] ?? '', organizations: list(subject['O']), trusted: socket.authorized }
}

/** @param raw - Names and values in turn, as received. */
function valuesOf(raw: readonly string[], name: string): string[] {
  return raw.filter((_, index) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === name)
}

function joined(headers: NodeRequest['headers']): Record<string, string | undefined> {
  const out: Record<string, string | undefined> = Object.create(null)
  for (const name in headers) {
    if (name.startsWith(':')) {
      if (name === ':authority') out['host'] ??= String(headers[name])
      continue
    }
    const value = headers[name]
    out[name] = typeof value === 'string' || value === undefined ? value : value.join(', ')
  }
  return out
}

function listenText(
  code: string,
  options: { readonly host: string; readonly port: number; readonly settings?: { host: string; port: string } },
): string {
  const { host, port } = options
  const { settings = { host: 'address', port: 'port' } } = options
  const other = `choose another ${settings.port} (0 = any free one)`
  if (code === 'EADDRINUSE') return `port ${port} on ${host} is in use: stop what listens there, or ${other}`
  if (code === 'EACCES') return `no permission to listen on port ${port} of ${host}: ${other}`
  if (code === 'EADDRNOTAVAIL') return `${host} is not an address of this machine: choose another ${settings.host}`
  return `cannot listen on port ${port} of ${host} (${code}): ${other}, or another ${settings.host}`
}
