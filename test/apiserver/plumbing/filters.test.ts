/** What stands between a socket and a handler: deadlines, bounds on what is in flight, recovery from a handler that throws. */
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { connect as connectHttp2, constants } from 'node:http2'
import { connect as connectTls } from 'node:tls'
import test, { type TestContext } from 'node:test'
import { createIssuer } from '../../../apiserver/certificates/issuer-node.ts'
import { createDispatcher } from '../../../apiserver/dispatch.ts'
import { InFlight } from '../../../apiserver/filters/in-flight.ts'
import { type ConnectionLimits, type Listener, listen } from '../../../apiserver/http-server.ts'
import { createLogger } from '../../../apiserver/logger.ts'
import { createResourceRegistry } from '../../../apiserver/registry.ts'
import type { Handler, Strategy, UserInfo } from '../../../apiserver/types.ts'
import { createNodeEnv } from '../../../raft/env-node.ts'
import { resources } from '../../../schemas/index.ts'
import { call } from '../../control-plane.ts'

const jane: UserInfo = { name: 'jane', uid: '', groups: ['system:authenticated'], extra: {} }
const root: UserInfo = { ...jane, name: 'root', groups: ['system:masters'] }

interface Server {
  readonly base: string
  readonly log: () => string
  /** Delays of timers that are waiting; fire() runs the only one. */
  readonly delays: () => number[]
  fire(): void
}

/** The filters around one handler for everything, on a clock that moves when told to. */
async function serve(
  t: TestContext,
  handler: Handler,
  options: { readonly requestTimeoutMs?: number; readonly user?: () => UserInfo; readonly inFlight?: InFlight } = {},
): Promise<Server> {
  const timers = new Set<{ readonly delayMs: number; readonly run: () => void }>()
  let log = ''
  const env = createNodeEnv({
    log: createLogger({ level: 'debug', wallMs: () => 0, write: (line) => (log += line) }),
  })
  const dispatcher = createDispatcher({
    env: {
      ...env,
      scheduler: {
        ...env.scheduler,
        after(delayMs, run) {
          const timer = { delayMs, run }
          timers.add(timer)
          return { cancel: () => timers.delete(timer) }
        },
      },
    },
    registry: createResourceRegistry({ resources: resources(), strategyFor: () => ({}) as Strategy }),
    authenticators: [{ authenticate: () => options.user?.() ?? jane }],
    authorizer: {
      authorize: () => ({ allowed: true, reason: '' }),
      rules: () => ({ resourceRules: [], nonResourceRules: [] }),
    },
    handlerFor: () => handler,
    paths: async (asked, reply) => {
      await handler({} as Parameters<Handler>[0], asked, reply)
      return true
    },
    requestTimeoutMs: options.requestTimeoutMs ?? 60_000,
    ...(options.inFlight && { inFlight: options.inFlight }),
  })
  const listener = await listen({ host: '127.0.0.1', port: 0, secure: false })
  listener.serve(dispatcher.handle)
  t.after(() => stop(listener))
  return {
    base: `http://127.0.0.1:${listener.port}`,
    log: () => log,
    delays: () => [...timers].map(({ delayMs }) => delayMs),
    fire() {
      const [timer, other] = timers
      assert.ok(timer !== undefined && other === undefined)
      timer.run()
    },
  }
}

async function stop(listener: Listener): Promise<void> {
  const drained = listener.drain()
  listener.destroy()
  await drained
}

const pods = '/api/v1/namespaces/default/pods'

/** A handler that waits for its request's end; `entered` resolves once it runs. */
function waiting(): { handler: Handler; entered: Promise<void>; left: Promise<void> } {
  let enter = (): void => {}
  let leave = (): void => {}
  const entered = new Promise<void>((resolve) => (enter = resolve))
  const left = new Promise<void>((resolve) => (leave = resolve))
  const handler: Handler = async (_scope, { signal }, reply) => {
    enter()
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    reply.send(200, 'text/plain', 'too late')
    leave()
  }
  return { handler, entered, left }
}

const allotted = 'Timeout: request did not complete within the allotted timeout'
const cut = 'Timeout: request did not complete within requested timeout - context deadline exceeded'

const deadlines: readonly (readonly [
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  ms: number,
  text: string,
])[] = [
  ['GET', pods, 60_000, allotted],
  ['GET', `${pods}?timeout=5s`, 5_000, allotted],
  ['GET', `${pods}?timeout=10m`, 60_000, allotted],
  ['GET', `${pods}?timeout=0s`, 60_000, allotted],
  ['POST', pods, 34_000, cut],
  ['PUT', `${pods}/a`, 34_000, cut],
  ['PATCH', `${pods}/a?timeout=40s`, 34_000, cut],
  ['DELETE', pods, 34_000, cut],
  ['POST', `${pods}?timeout=1500ms`, 1_500, allotted],
]
for (const [method, path, ms, text] of deadlines) {
  test(`${method} ${path} is answered 504 after ${ms} ms, and its handler's late answer goes nowhere`, async (t) => {
    const { handler, entered, left } = waiting()
    const server = await serve(t, handler)
    const asked = call(server.base, method, path, method === 'GET' ? {} : { body: {} })
    await entered
    assert.deepEqual(server.delays(), [ms])
    server.fire()
    const answer = await asked
    await left
    assert.deepEqual(
      [answer.status, answer.json],
      [
        504,
        {
          kind: 'Status',
          apiVersion: 'v1',
          metadata: {},
          status: 'Failure',
          message: text,
          reason: 'Timeout',
          details: {},
          code: 504,
        },
      ],
    )
  })
}

test('--request-timeout bounds reads and writes; a watch has no deadline', async (t) => {
  const { handler, entered } = waiting()
  const server = await serve(t, handler, { requestTimeoutMs: 7_000 })
  const asked = call(server.base, 'POST', pods, { body: {} })
  await entered
  assert.deepEqual(server.delays(), [7_000])
  server.fire()
  assert.equal((await asked).json['message'], allotted)
  const watching = await serve(t, async (_scope, _request, reply) => {
    const stream = reply.stream(200, 'application/json')
    stream.flushHead()
    assert.deepEqual(watching.delays(), [])
    stream.end()
  })
  assert.equal((await call(watching.base, 'GET', `${pods}?watch=true&timeout=5s`)).status, 200)
})

test('a timeout that is no duration is 400', async (t) => {
  const server = await serve(t, waiting().handler)
  const { status, json } = await call(server.base, 'GET', `${pods}?timeout=soon`)
  assert.deepEqual(
    [status, json['message']],
    [400, 'invalid timeout specified in the request URL - time: invalid duration "soon"'],
  )
})

test('over the bound of requests in flight: 429 with Retry-After, reads and writes apart, masters and watches exempt', async (t) => {
  let user = jane
  const held: (() => void)[] = []
  const handler: Handler = async (_scope, { info }, reply) => {
    if (info.name !== 'held') return reply.send(200, 'text/plain', 'ok')
    await new Promise<void>((resolve) => held.push(resolve))
    reply.send(200, 'text/plain', 'ok')
  }
  const inFlight = new InFlight({ readsMax: 1, mutationsMax: 1 })
  const server = await serve(t, handler, { inFlight, user: () => user })
  const hold = (method: 'GET' | 'PUT'): Promise<{ status: number }> =>
    call(server.base, method, `${pods}/held`, method === 'GET' ? {} : { body: {} })
  const status = async (method: 'GET' | 'PUT', path: string): Promise<number> =>
    (await call(server.base, method, path, method === 'GET' ? {} : { body: {} })).status
  const reading = hold('GET')
  while (held.length < 1) await new Promise((resolve) => setImmediate(resolve))
  const full = await call(server.base, 'GET', pods)
  assert.equal(full.headers['retry-after'], '1')
  assert.deepEqual(
    [full.status, full.json],
    [
      429,
      {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'Too many requests, please try again later.',
        reason: 'TooManyRequests',
        details: { retryAfterSeconds: 1 },
        code: 429,
      },
    ],
  )
  assert.equal(await status('PUT', `${pods}/a`), 200)
  assert.equal(await status('GET', `${pods}?watch=1`), 200)
  const writing = hold('PUT')
  while (held.length < 2) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(await status('PUT', `${pods}/a`), 429)
  user = root
  assert.equal(await status('GET', pods), 200)
  user = jane
  for (const release of held) release()
  assert.deepEqual([(await reading).status, (await writing).status], [200, 200])
  assert.equal(await status('GET', pods), 200)
})

test('a handler that throws is a 500 Status, logged without what the client sent, and serving goes on', async (t) => {
  const handler: Handler = async (_scope, request, reply) => {
    const { info, headers } = request
    if (info.name === 'fine') return reply.send(200, 'text/plain', 'ok')
    if (info.name === 'parse') JSON.parse(Buffer.from(await request.body()).toString())
    if (info.name === 'async') await Promise.reject(new Error(`no handler for ${headers['accept']}`))
    if (info.name === 'nothing') return
    if (info.name === 'half') {
      const stream = reply.stream(200, 'text/plain')
      stream.write(Buffer.from('half'))
    }
    throw new TypeError('broken')
  }
  const server = await serve(t, handler)
  const headers = { authorization: 'Bearer sekret-header', accept: 'application/json', cookie: 'a=sekret-cookie' }
  for (const name of ['sync', 'async', 'parse', 'nothing']) {
    const path = `${pods}/${name}?token=sekret-query`
    const { status, json } = await call(server.base, 'PUT', path, { body: 'sekret-body', headers })
    assert.deepEqual([status, json.kind, json['reason'], json['code']], [500, 'Status', 'InternalError', 500], name)
  }
  // half an answer is broken off, so that nobody takes it for a whole one
  await assert.rejects(call(server.base, 'GET', `${pods}/half`))
  assert.equal((await call(server.base, 'GET', `${pods}/fine`)).text, 'ok')
  assert.ok(!server.log().includes('sekret'), server.log())
  const entries = server
    .log()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { message: string; path: string })
  assert.deepEqual(
    entries.map(({ message, path }) => [message, path.slice(pods.length)]),
    ['sync', 'async', 'parse', 'nothing', 'half'].map((name) => ['request failed', `/${name}`]),
  )
})

async function bare(t: TestContext, limits: Partial<ConnectionLimits>, secure = false): Promise<Listener> {
  const listener = await listen({ host: '127.0.0.1', port: 0, secure, limits })
  listener.serve(({ reply }) => reply.send(200, 'text/plain', 'ok'))
  if (secure) {
    const issuer = await createIssuer({
      nowMs: Date.now(),
      entropy: (length) => crypto.getRandomValues(new Uint8Array(length)),
    })
    const authority = await issuer.authority('ca')
    const names = [{ type: 'ip', value: '127.0.0.1' }] as const
    const { certificate, key } = await issuer.issue(authority, {
      commonName: 's',
      organizations: [],
      usage: 'server',
      names,
    })
    listener.setTls({ certificate, key, clientAuthority: authority.certificate })
  }
  t.after(() => stop(listener))
  return listener
}

/** All that comes back until the connection ends. */
function everything(socket: Socket): Promise<string> {
  let text = ''
  socket.setEncoding('utf8').on('data', (data: string) => (text += data))
  socket.on('error', () => {})
  return new Promise((resolve) => socket.on('close', () => resolve(text)))
}

test('bodies that come slowly hold a bounded amount together: who finds no room gets 429, and room comes back', async (t) => {
  const limits = { requestBodiesBytesMax: 300_000 }
  const listener = await listen({ host: '127.0.0.1', port: 0, secure: false, limits })
  t.after(() => stop(listener))
  let reading = 0
  let allReading = (): void => {}
  listener.serve((exchange) => {
    exchange.body().then(
      () => exchange.reply.send(200, 'text/plain', 'ok'),
      (error: { readonly code: number }) => exchange.reply.send(error.code, 'text/plain', ''),
    )
    reading += 1
    if (reading === 2) allReading()
  })
  const post = (bytes: number): Socket => {
    const socket = connect(listener.port)
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${bytes}\r\n\r\n`)
    return socket
  }
  const all = new Promise<void>((resolve) => (allReading = resolve))
  const slow = [post(140_001), post(140_001)]
  const answers = slow.map(everything)
  for (const socket of slow) await new Promise((resolve) => socket.write('x'.repeat(140_000), resolve))
  await all
  const ask = async (): Promise<string> => {
    const socket = post(100_000)
    socket.write('x'.repeat(100_000))
    return (await everything(socket)).slice(9, 12)
  }
  // what was sent may still be under way to the server
  let answer = await ask()
  for (; answer === '200'; answer = await ask());
  assert.equal(answer, '429')
  for (const socket of slow) socket.write('x')
  assert.deepEqual(
    (await Promise.all(answers)).map((text) => text.slice(9, 12)),
    ['200', '200'],
  )
  assert.equal(await ask(), '200')
})

test('a body that comes after its answer is read to its end, and the connection serves the next request', async (t) => {
  const listener = await listen({ host: '127.0.0.1', port: 0, secure: false })
  t.after(() => stop(listener))
  listener.serve((exchange) => {
    exchange.body().catch(() => {})
    exchange.reply.send(504, 'text/plain', exchange.target)
  })
  const socket = connect(listener.port)
  t.after(() => socket.destroy())
  let text = ''
  const has = (path: string): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!text.includes(path)) return
        socket.off('data', look)
        resolve()
      }
      socket.on('data', look)
      look()
    })
  socket.setEncoding('utf8').on('data', (data: string) => (text += data))
  socket.write('POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n')
  await has('/first')
  for (let sent = 0; sent < 200_000; sent += 50_000) {
    await new Promise((resolve) => socket.write('x'.repeat(50_000), resolve))
  }
  socket.write('GET /second HTTP/1.1\r\nHost: a\r\n\r\n')
  await has('/second')
})

test('headers of one MiB are the bound over HTTP/1.1, in the clear and over TLS', async (t) => {
  for (const secure of [false, true]) {
    const { port } = await bare(t, {}, secure)
    const ask = async (bytes: number): Promise<string> => {
      const socket = secure ? connectTls({ port, rejectUnauthorized: false }) : connect(port)
      const all = everything(socket)
      socket.write(`GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Long: ${'x'.repeat(bytes)}\r\n\r\n`)
      return (await all).slice(9, 12)
    }
    assert.deepEqual([await ask(900_000), await ask(1_100_000)], ['200', '431'], secure ? 'TLS' : 'plain')
  }
})

test('headers over HTTP/2 are bounded too: the stream ends, the connection and the process live', async (t) => {
  const { port } = await bare(t, {}, true)
  const client = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  t.after(() => client.destroy())
  client.on('error', () => {})
  const ask = (bytes: number): Promise<number> =>
    new Promise((resolve) => {
      const stream = client.request({ ':path': '/', 'x-long': 'x'.repeat(bytes) })
      stream.on('response', (headers) => resolve(Number(headers[constants.HTTP2_HEADER_STATUS])))
      stream.on('error', () => resolve(0))
      stream.resume()
    })
  assert.equal(await ask(40_000), 200)
  const refused = await ask(200_000)
  assert.ok(refused === 0 || refused === 431, String(refused))
  const other = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  t.after(() => other.destroy())
  assert.equal(
    await new Promise((resolve) => other.request({ ':path': '/' }).on('response', (h) => resolve(h[':status']))),
    200,
  )
})

test('a client that dribbles its headers is answered 408 and closed, over TLS too', async (t) => {
  for (const secure of [false, true]) {
    const { port } = await bare(t, { requestHeadersMsMax: 100, requestTimesCheckMs: 50 }, secure)
    const socket = secure ? connectTls({ port, rejectUnauthorized: false }) : connect(port)
    const all = everything(socket)
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ')
    assert.match(await all, /^HTTP\/1\.1 408 /, secure ? 'TLS' : 'plain')
  }
})

test('a client that never finishes its handshake is cut', async (t) => {
  const { port } = await bare(t, { handshakeMsMax: 100 }, true)
  assert.equal(await everything(connect(port)), '')
})

test('connections beyond the bound are closed at once, and there is room again when others go', async (t) => {
  const { port } = await bare(t, { connectionsMax: 2 })
  const ask = (socket: Socket): Promise<unknown> => {
    const answered = new Promise((resolve) => socket.once('data', () => resolve('answered')))
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    return Promise.race([answered, everything(socket)])
  }
  const [first, second] = [connect(port), connect(port)]
  assert.deepEqual([await ask(first), await ask(second)], ['answered', 'answered'])
  assert.equal(await ask(connect(port)), '')
  const gone = everything(first)
  first.end()
  await gone
  assert.equal(await ask(connect(port)), 'answered')
  second.destroy()
})

test('HTTP/2 connections are told how many streams they may open', async (t) => {
  const { port } = await bare(t, {}, true)
  const client = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  t.after(() => client.destroy())
  const settings = await new Promise<{ maxConcurrentStreams?: number | undefined }>((resolve) =>
    client.once('remoteSettings', resolve),
  )
  assert.equal(settings.maxConcurrentStreams, 250)
})

test('the rest of a body whose request was answered is read for a while, then the connection is cut', async (t) => {
  const { port } = await bare(t, { refusedBodyDrainMsMax: 100 })
  const socket = connect(port)
  const all = everything(socket)
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx')
  assert.match(await all, /^HTTP\/1\.1 200 /)
})
