import assert from 'node:assert/strict'
import { connect, type ClientHttp2Session, constants } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect as connectTls } from 'node:tls'
import { gzipSync } from 'node:zlib'
import test, { after, before } from 'node:test'
import { createIssuer, type KeyPair } from '../../../apiserver/certificates/issuer-node.ts'
import type { Exchange } from '../../../apiserver/exchange.ts'
import { type Listener, listen, ListenError } from '../../../apiserver/http-server.ts'
import { requestBodyBytesMax } from '../../../apiserver/http-limits.ts'
import { apiErrorOf } from '../../../apiserver/status.ts'
import { writeStatus } from '../../../apiserver/status-reply.ts'
import type { ByteStream } from '../../../apiserver/types.ts'

let authority: KeyPair
let serverPair: KeyPair
let clientPair: KeyPair
let strangerPair: KeyPair
let secure: Listener
let plain: Listener
/** What the next requests do. */
let handle: (exchange: Exchange) => void

before(async () => {
  const issuer = await createIssuer({
    nowMs: Date.now(),
    entropy: (length) => crypto.getRandomValues(new Uint8Array(length)),
  })
  authority = await issuer.authority('test-ca')
  serverPair = await issuer.issue(authority, {
    commonName: 'server',
    organizations: [],
    usage: 'server',
    names: [{ type: 'ip', value: '127.0.0.1' }],
  })
  const client = { commonName: 'jane', organizations: ['dev', 'ops'], usage: 'client', names: [] } as const
  clientPair = await issuer.issue(authority, client)
  strangerPair = await issuer.issue(await issuer.authority('other-ca'), client)
  secure = await listen({ host: '127.0.0.1', port: 0, secure: true })
  secure.setTls({
    certificate: serverPair.certificate,
    key: serverPair.key,
    clientAuthority: authority.certificate,
  })
  plain = await listen({ host: '127.0.0.1', port: 0, secure: false })
  const serve = (exchange: Exchange): void => handle(exchange)
  secure.serve(serve)
  plain.serve(serve)
})

after(async () => {
  const drained = [secure.drain(), plain.drain()]
  secure.destroy()
  plain.destroy()
  await Promise.all(drained)
})

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

function overHttp1(options: {
  readonly method?: string
  readonly path?: string
  readonly body?: Uint8Array
  readonly headers?: Record<string, string>
  readonly pair?: KeyPair
  readonly to?: 'plain'
}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const shared = {
      host: '127.0.0.1',
      method: options.method ?? 'GET',
      path: options.path ?? '/',
      headers: options.headers ?? {},
      agent: false as const,
    }
    const onAnswer = (response: IncomingMessage): void => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }))
      response.on('error', reject)
    }
    const request =
      options.to === 'plain'
        ? httpRequest({ ...shared, port: plain.port }, onAnswer)
        : httpsRequest(
            {
              ...shared,
              port: secure.port,
              ca: authority.certificate,
              ...(options.pair && { cert: options.pair.certificate, key: options.pair.key }),
            },
            onAnswer,
          )
    request.on('error', reject)
    request.end(options.body)
  })
}

function session(pair?: KeyPair, settings?: object): ClientHttp2Session {
  return connect(`https://127.0.0.1:${secure.port}`, {
    ca: authority.certificate,
    ...(pair && { cert: pair.certificate, key: pair.key }),
    ...settings,
  })
}

function overHttp2(client: ClientHttp2Session, headers: Record<string, string>, body?: Uint8Array): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = client.request(headers, { endStream: body === undefined })
    let status = 0
    let seen: Record<string, unknown> = {}
    let text = ''
    stream.on('response', (answer) => {
      status = Number(answer[constants.HTTP2_HEADER_STATUS])
      seen = answer
    })
    stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    stream.on('end', () => resolve({ status, headers: seen, body: text }))
    stream.on('error', reject)
    if (body !== undefined) stream.end(body)
  })
}

const echoBody = (exchange: Exchange): void => {
  exchange
    .body()
    .then((body) => exchange.reply.send(200, 'text/plain', String(body.length)))
    .catch((error: unknown) => writeStatus(exchange, apiErrorOf(error)))
}

test('one port serves HTTP/1.1 and HTTP/2, and shows the client certificate', async () => {
  handle = (exchange) => {
    const { method, target, peer, listener } = exchange
    exchange.reply.send(200, 'application/json', JSON.stringify({ method, target, peer, listener }))
  }
  const peer = { commonName: 'jane', organizations: ['dev', 'ops'], trusted: true }
  const wanted = { method: 'GET', target: '/a%2Fb?c=d%20e', peer, listener: 'secure' }
  const first = await overHttp1({ path: '/a%2Fb?c=d%20e', pair: clientPair })
  assert.deepEqual(JSON.parse(first.body), wanted)
  const client = session(clientPair)
  const second = await overHttp2(client, { ':path': '/a%2Fb?c=d%20e' })
  client.close()
  assert.deepEqual(JSON.parse(second.body), wanted)
})

test('a client without certificate has no peer; one of another authority is not trusted', async () => {
  handle = ({ peer, reply }) => reply.send(200, 'application/json', JSON.stringify({ peer }))
  assert.deepEqual(JSON.parse((await overHttp1({})).body), {})
  const { body } = await overHttp1({ pair: strangerPair })
  assert.equal((JSON.parse(body) as { peer: { trusted: boolean } }).peer.trusted, false)
})

test('HEAD has the headers of GET and no body', async () => {
  handle = ({ reply }) => reply.send(200, 'text/plain', 'hello')
  const answer = await overHttp1({ method: 'HEAD' })
  assert.deepEqual([answer.status, answer.headers['content-length'], answer.body], [200, '5', ''])
  const client = session()
  const second = await overHttp2(client, { ':path': '/', ':method': 'HEAD' })
  client.close()
  assert.deepEqual([second.status, second.headers['content-length'], second.body], [200, '5', ''])
})

test('a body of exactly 3 MiB is read; one byte more is 413 and the client gets to read the answer', async () => {
  handle = echoBody
  const most = new Uint8Array(requestBodyBytesMax)
  const over = new Uint8Array(requestBodyBytesMax + 1)
  assert.equal((await overHttp1({ method: 'POST', body: most })).body, String(requestBodyBytesMax))
  const client = session()
  assert.equal((await overHttp2(client, { ':path': '/', ':method': 'POST' }, most)).body, String(requestBodyBytesMax))
  const answers = [
    await overHttp1({ method: 'POST', body: over }),
    await overHttp1({ method: 'POST', body: over, headers: { 'transfer-encoding': 'chunked' } }),
    await overHttp1({ method: 'POST', body: new Uint8Array(20 * 1024 * 1024), to: 'plain' }),
    await overHttp2(client, { ':path': '/', ':method': 'POST' }, over),
  ]
  client.close()
  for (const { status, body } of answers) {
    assert.equal(status, 413)
    const parsed = JSON.parse(body) as { message: string; reason: string }
    assert.deepEqual(
      [parsed.message, parsed.reason],
      ['Request entity too large: limit is 3145728', 'RequestEntityTooLarge'],
    )
  }
})

test('a gzip body is bounded after inflation too, and a broken one is 400', async () => {
  handle = echoBody
  const headers = { 'content-encoding': 'gzip' }
  const small = await overHttp1({ method: 'POST', headers, body: gzipSync(Buffer.alloc(1000)) })
  assert.equal(small.body, '1000')
  const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024))
  assert.equal((await overHttp1({ method: 'POST', headers, body: bomb })).status, 413)
  assert.equal((await overHttp1({ method: 'POST', headers, body: Buffer.from('not gzip') })).status, 400)
  const unknown = await overHttp1({ method: 'POST', headers: { 'content-encoding': 'br' }, body: Buffer.from('x') })
  assert.equal(unknown.status, 415)
})

test('the signal aborts when the client goes away', async () => {
  const gone = new Promise<void>((resolve) => {
    handle = (exchange) => {
      exchange.signal.addEventListener('abort', () => resolve())
      exchange.reply.stream(200, 'text/plain').write(Buffer.from('first'))
    }
  })
  const client = session()
  const stream = client.request({ ':path': '/' })
  stream.once('data', () => stream.close())
  await gone
  client.close()
})

test('a stream counts what a slow reader has not taken, and wakes when it has', async () => {
  const opened = new Promise<ByteStream>((resolve) => {
    handle = ({ reply }) => resolve(reply.stream(200, 'text/plain'))
  })
  const client = session()
  const stream = client.request({ ':path': '/' })
  const bytes = await opened
  const chunk = Buffer.alloc(256 * 1024)
  bytes.flushHead()
  for (let written = 0; written < 8; written += 1) bytes.write(chunk)
  assert.ok(bytes.bufferedBytes > 1024 * 1024, `${bytes.bufferedBytes} bytes wait`)
  let received = 0
  const drained = new Promise<void>((resolve) => bytes.onDrain(resolve))
  stream.on('data', (data: Buffer) => (received += data.length))
  await drained
  assert.ok(bytes.bufferedBytes <= 64 * 1024)
  const ended = new Promise((resolve) => stream.on('end', resolve))
  bytes.end()
  await ended
  assert.equal(received, 8 * chunk.length)
  assert.ok(bytes.closed)
  client.close()
})

test('an answer that is cut looks broken to its reader, also when its end was already written', async () => {
  for (const endFirst of [false, true]) {
    for (const protocol of ['HTTP/1.1', 'HTTP/2']) {
      const cut = new Promise<Exchange['reply']>((resolve) => {
        handle = ({ reply }) => {
          const stream = reply.stream(200, 'text/plain')
          // More than connections hold for a reader that does not read.
          for (let written = 0; written < 64; written += 1) stream.write(Buffer.alloc(1024 * 1024))
          if (endFirst) stream.end()
          resolve(reply)
        }
      })
      const client = protocol === 'HTTP/2' ? session() : undefined
      const source =
        client?.request({ ':path': '/' }) ??
        (await new Promise<IncomingMessage>((resolve) => {
          httpRequest({ host: '127.0.0.1', port: plain.port, agent: false }, resolve).end()
        }))
      const reply = await cut
      const finished = new Promise<void>((resolve) => reply.onFinished(resolve))
      reply.destroy()
      await finished
      const read = async (): Promise<void> => {
        for await (const piece of source) void piece
      }
      await assert.rejects(read(), `${protocol}, ${endFirst ? 'ended' : 'not ended'}`)
      client?.destroy()
    }
  }
})

test('200 watches and ten 20 MB answers on one HTTP/2 connection to a slow reader are all answered', async () => {
  const answerBytes = 20 * 1024 * 1024
  const chunk = Buffer.alloc(128 * 1024, 'x')
  let bufferedMost = 0
  handle = ({ target, reply }) => {
    const stream = reply.stream(200, 'text/plain')
    if (target.startsWith('/watch')) {
      stream.write(Buffer.from('event'))
      return
    }
    let left = answerBytes
    const pump = (): void => {
      while (left > 0 && stream.bufferedBytes <= 64 * 1024 && !stream.closed) {
        stream.write(chunk)
        left -= chunk.length
        bufferedMost = Math.max(bufferedMost, stream.bufferedBytes)
      }
      if (left <= 0) stream.end()
      else stream.onDrain(pump)
    }
    pump()
  }
  const client = session(undefined, { maxSessionMemory: 1000 })
  const watches = Array.from({ length: 200 }, (_, place) => client.request({ ':path': `/watch/${place}` }))
  await Promise.all(watches.map((watch) => new Promise((resolve) => watch.once('data', resolve))))
  const before = process.memoryUsage().arrayBuffers
  const lists = Array.from({ length: 10 }, () => client.request({ ':path': '/list' }))
  let memoryMost = 0
  const sizes = await Promise.all(
    lists.map(
      (list) =>
        new Promise<number>((resolve, reject) => {
          let size = 0
          list.on('data', (data: Buffer) => {
            size += data.length
            memoryMost = Math.max(memoryMost, process.memoryUsage().arrayBuffers - before)
            // slow: one turn of the event loop a chunk
            list.pause()
            setImmediate(() => list.resume())
          })
          list.on('end', () => resolve(size))
          list.on('error', reject)
        }),
    ),
  )
  assert.deepEqual(new Set(sizes), new Set([answerBytes]))
  assert.ok(bufferedMost <= 64 * 1024 + chunk.length, `${bufferedMost} bytes waited in one stream`)
  assert.ok(memoryMost < 64 * 1024 * 1024, `${memoryMost} bytes of buffers for 200 MB of answers`)
  // a new request is still welcome beside them
  handle = ({ reply }) => reply.send(200, 'text/plain', 'still here')
  assert.equal((await overHttp2(client, { ':path': '/' })).body, 'still here')
  client.destroy()
})

test('a port in use is refused with one clear line', async () => {
  await assert.rejects(listen({ host: '127.0.0.1', port: secure.port, secure: true }), (error: unknown) => {
    assert.ok(error instanceof ListenError)
    assert.deepEqual(
      [error.code, error.message],
      [
        'EADDRINUSE',
        `port ${secure.port} on 127.0.0.1 is in use: stop what listens there, or choose another port (0 = any free one)`,
      ],
    )
    return true
  })
})

test('draining closes idle connections at once and busy ones after their answer', async () => {
  const own = await listen({ host: '127.0.0.1', port: 0, secure: false })
  let finish: (() => void) | undefined
  const arrived = new Promise<void>((resolve) => {
    own.serve(({ reply }) => {
      finish = () => reply.send(200, 'text/plain', 'done')
      resolve()
    })
  })
  const answered = new Promise<string>((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port: own.port }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.on('end', () => resolve(body))
    })
    request.on('error', reject)
    request.end()
  })
  await arrived
  const drained = own.drain()
  finish?.()
  assert.equal(await answered, 'done')
  await drained
})

test('a client that connects before there is a certificate waits for it, and is served', async (t) => {
  const listener = await listen({ host: '127.0.0.1', port: 0, secure: true })
  t.after(async () => {
    listener.destroy()
    await listener.drain()
  })
  const early = connectTls({ port: listener.port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
  t.after(() => early.destroy())
  await new Promise((resolve) => early.once('connect', resolve))
  const answered = new Promise<string>((resolve, reject) => {
    early.once('data', (data: Buffer) => resolve(data.toString()))
    early.once('error', reject)
  })
  early.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  const { certificate, key } = serverPair
  listener.setTls({ certificate, key, clientAuthority: authority.certificate })
  listener.serve(({ reply }) => reply.send(200, 'text/plain', 'waited'))
  assert.match(await answered, /^HTTP\/1\.1 200 /)
})
