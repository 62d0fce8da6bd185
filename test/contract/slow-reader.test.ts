/**
 * Readers that are slow, that stop, and that leave: over a real process, HTTP/2 and HTTP/1.1 over TLS.
 *
 * Memory is asserted as the peak of the server's resident set above what it was before, against the bounds in
 * apiserver/limits.ts; nothing here asserts on time. B10: etcd-io/etcd#15402. B11: etcd-io/etcd#16839.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { after, before, test, type TestContext } from 'node:test'
import { Agent } from 'undici'
import { listBufferedBytesMax, listChunkBytes, watchBufferedBytesMax, windowBytesMax } from '../../apiserver/limits.ts'
import {
  adminAgent,
  adminCredentials,
  call,
  configMap,
  type ControlPlaneProcess,
  type Credentials,
  type KubeObject,
  startProcess,
  type WatchLine,
} from '../control-plane.ts'

const megabyte = 1024 * 1024
const bigObjects = 200
const bigBytes = 100 * 1024
/** Twenty megabytes of ConfigMaps lie here. */
const big = '/api/v1/namespaces/default/configmaps'
/** Small ConfigMaps that watches look at come and go here. */
const small = '/api/v1/namespaces/kube-public/configmaps'
/** Bytes of one stream that a client takes before it says that it wants more: HTTP/2's own default. */
const windowBytes = 65_535

/** What one list holds at most: its bound, the piece that passed it and the next one, and as much in the TLS layer. */
const listHeldBytes = 2 * (listBufferedBytesMax + 2 * listChunkBytes)
/** What V8 may leave uncollected, and requests beside the measured ones: not per reader. */
const slackBytes = 96 * megabyte

/** For what is not measured: the plain port. */
const writers = new Agent({ connections: 16 })
let plane: ControlPlaneProcess
let credentials: Credentials

before(async () => {
  plane = await startProcess()
  credentials = adminCredentials(plane)
  const text = 'x'.repeat(bigBytes)
  await inParallel(4, bigObjects, async (index) => {
    await put(big, configMap(`big-${String(index).padStart(3, '0')}`, { text }))
  })
})

after(async () => {
  await writers.close()
  assert.equal(await plane.stop(), 0)
})

test('one HTTP/2 connection: 200 watches and ten 20 MB lists to a slow reader are answered in full, in bounded memory (B10)', async (context) => {
  const connection = openConnection()
  const other = adminAgent(plane)
  const from = (await call(plane.http, 'GET', small)).json.metadata.resourceVersion
  const watches = Array.from({ length: 200 }, () =>
    readWatch(connection, `${small}?watch=true&resourceVersion=${from}`),
  )
  await Promise.all(watches.map((watch) => watch.opened))

  const memory = measureMemory()
  const lists = Array.from({ length: 10 }, () => new SlowBody(connection.request({ ':path': big })))
  await Promise.all(lists.map((list) => list.begun))

  // Nobody reads: everybody else is served, on this connection and on another one.
  const written: string[] = []
  for (let round = 0; round < 20; round++) {
    written.push(await create(`held-${round}`))
    const beside = await askOver(connection, `${small}/held-${round}`)
    assert.equal(beside.metadata.name, `held-${round}`)
    const elsewhere = await call(plane.server, 'GET', `${small}/held-${round}`, { dispatcher: other })
    assert.equal(elsewhere.status, 200)
  }
  await Promise.all(watches.map((watch) => watch.reached(written.length)))
  assert.ok(
    lists.every((list) => !list.ended),
    'the lists are still held back',
  )

  // Now they are read slowly, one write for every two megabytes: marks beside the big objects, and what the watches
  // look at. Half of the lists begin among the writes: what they show must be of one revision all the same.
  const marks: { readonly name: string; readonly created: number }[] = []
  const progress = new Progress()
  const reading = [
    ...lists,
    ...Array.from({ length: 10 }, () => new SlowBody(connection.request({ ':path': big }))),
  ].map((list) => list.readSlowly((bytes) => progress.add(bytes)))
  const listedBytes = reading.length * bigObjects * bigBytes
  const writes = Math.floor(listedBytes / (2 * megabyte))
  /** Bytes of lists that came between a write and its event, at most. */
  let aheadMost = 0
  for (let write = 0; write < writes; write++) {
    await progress.reached(write * 2 * megabyte)
    if (write % 2 === 0) {
      const name = `mark-${String(write).padStart(5, '0')}`
      marks.push({ name, created: Number(await put(big, configMap(name))) })
    } else {
      written.push(await create(`read-${write}`))
      const ahead = progress.bytes
      await Promise.all(watches.map((watch) => watch.reached(written.length)))
      aheadMost = Math.max(aheadMost, progress.bytes - ahead)
      await askOver(connection, `${small}/read-${write}`)
    }
  }
  const bodies = await Promise.all(reading)
  memory.assertBounded(context, 20 * listHeldBytes)
  context.diagnostic(`${mb(aheadMost)} of ${mb(listedBytes)} of lists came between a write and its event`)
  assert.ok(aheadMost < listedBytes / 8, 'events wait behind lists')

  for (const body of bodies) {
    const list = JSON.parse(body.toString('utf8')) as KubeObject
    const revision = Number(list.metadata.resourceVersion)
    const names = list.items.map((item) => item.metadata.name)
    assert.equal(names.filter((name) => name.startsWith('big-')).length, bigObjects)
    assert.deepEqual(
      names.filter((name) => name.startsWith('mark-')),
      marks.filter((mark) => mark.created <= revision).map((mark) => mark.name),
      `a list at revision ${revision}`,
    )
    for (const item of list.items) assert.ok(Number(item.metadata.resourceVersion) <= revision)
  }
  for (const watch of watches) assert.deepEqual(watch.seen, written)
  connection.destroy()
  await other.destroy()
})

test('HTTP/1.1: ten slow list readers are answered in full, in bounded memory, beside others', async (context) => {
  const other = adminAgent(plane)
  const memory = measureMemory()
  const lists = await Promise.all(Array.from({ length: 10 }, async () => new SlowBody(await askHttp1(big))))
  await Promise.all(lists.map((list) => list.begun))
  for (let round = 0; round < 20; round++) {
    const answer = await call(plane.server, 'GET', `${big}/big-000`, { dispatcher: other })
    assert.equal(answer.status, 200)
  }
  assert.ok(lists.every((list) => !list.ended))
  const bodies = await Promise.all(lists.map((list) => list.readSlowly()))
  memory.assertBounded(context, 10 * listHeldBytes)
  for (const body of bodies) {
    const list = JSON.parse(body.toString('utf8')) as KubeObject
    assert.equal(list.items.filter((item) => item.metadata.name.startsWith('big-')).length, bigObjects)
  }
  await other.destroy()
})

test('a watcher that never reads is ended, holds nothing, and goes on where it was when it comes back', async (context) => {
  const events = 10_000
  const stalledPerProtocol = 20
  const text = 'y'.repeat(2_000)
  const write = (index: number): Promise<void> => replace(`busy-${index % 16}`, { text, n: String(index) })
  for (let index = 0; index < 16; index++) await create(`busy-${index}`)
  // What writing alone makes the server's heap grow by is not to be counted.
  await inParallel(16, events / 2, write)
  const from = (await call(plane.http, 'GET', small)).json.metadata.resourceVersion
  const path = `${small}?watch=true&resourceVersion=${from}`
  const connection = openConnection()
  const overHttp1 = await Promise.all(Array.from({ length: stalledPerProtocol }, () => askHttp1(path)))
  const overHttp2 = [
    ...Array.from({ length: stalledPerProtocol }, () => path),
    // Stops among its initial events.
    `${big}?watch=true`,
    // Ends by itself, with bytes that nobody takes.
    `${big}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dbig-000`,
  ].map((stalled) => connection.request({ ':path': stalled }))
  const ends = overHttp2.map((stream) => closed(stream))
  await Promise.all(overHttp2.map((stream) => new Promise((resolve) => stream.once('response', resolve))))
  const reader = readWatch(connection, path)
  await reader.opened

  const memory = measureMemory()
  await inParallel(16, events, (index) => write(events + index))
  await reader.reached(events)

  // The log, the store and the window hold what was written; watchers hold their bound, once more in the TLS layer.
  const heldByWrites = windowBytesMax + 3 * events * text.length
  memory.assertBounded(context, heldByWrites + ends.length * 2 * 2 * watchBufferedBytesMax)
  for (const code of await Promise.all(ends)) assert.equal(code, constants.NGHTTP2_INTERNAL_ERROR)
  // One is left, that of the watchers over HTTP/2.
  await until(() => openConnections() === 1)

  // The connection of the HTTP/1.1 watchers is gone, without the last chunk that would say "ended as planned".
  const [first] = overHttp1
  assert.ok(first !== undefined)
  const seen: string[] = []
  await assert.rejects(followWatch(first, seen))
  assert.ok(seen.length < events, `was sent ${seen.length} events`)
  const last = seen.at(-1)?.split(' ')[2] ?? from
  const rest = readWatch(connection, `${small}?watch=true&resourceVersion=${last}`)
  await rest.reached(events - seen.length)
  assert.deepEqual([...seen, ...rest.seen], reader.seen)
  for (const message of overHttp1) message.destroy()
  connection.destroy()
})

test('readers that never read and leave: everything they held is freed', async (context) => {
  const rounds = 25
  const abandon = async (): Promise<void> => {
    const connection = openConnection()
    const from = (await call(plane.http, 'GET', small)).json.metadata.resourceVersion
    const streams = [
      ...Array.from({ length: 10 }, () => connection.request({ ':path': big })),
      ...Array.from({ length: 20 }, () => connection.request({ ':path': `${big}?watch=true` })),
      ...Array.from({ length: 20 }, () =>
        connection.request({ ':path': `${small}?watch=true&resourceVersion=${from}` }),
      ),
    ]
    for (const stream of streams) stream.on('error', () => {})
    await Promise.all(streams.map((stream) => new Promise((resolve) => stream.once('response', resolve))))
    const messages = await Promise.all(Array.from({ length: 5 }, () => askHttp1(big)))
    await create(`left-${Math.random()}`)
    for (const message of messages) message.destroy()
    connection.destroy()
  }
  for (let round = 0; round < 5; round++) await abandon()
  const memory = measureMemory()
  for (let round = 0; round < rounds; round++) await abandon()
  await until(() => openConnections() === 0)
  // One round at a time: were one round's bytes kept, this would be passed many times over.
  memory.assertBounded(context, 15 * listHeldBytes + 40 * watchBufferedBytesMax)
  assert.equal((await call(plane.http, 'GET', `${big}/big-000`)).status, 200)
})

test('a thousand blocked watchers share what they wait for (B11)', async (context) => {
  const connections = Array.from({ length: 5 }, openConnection)
  const other = adminAgent(plane)
  const from = (await call(plane.http, 'GET', small)).json.metadata.resourceVersion
  const path = `${small}?watch=true&resourceVersion=${from}`
  const streams = connections.flatMap((connection) =>
    Array.from({ length: 200 }, () => connection.request({ ':path': path })),
  )
  for (const stream of streams) stream.on('error', () => {})
  await Promise.all(streams.map((stream) => new Promise((resolve) => stream.once('response', resolve))))
  const reader = readWatch(openConnection(), path)
  await reader.opened
  const memory = measureMemory()
  const text = 'z'.repeat(50_000)
  await create('wide')
  for (let round = 0; round < 200; round++) await replace('wide', { text, n: String(round) })
  await reader.reached(200)
  memory.assertBounded(context, 0)
  for (const connection of connections) connection.destroy()
  await other.destroy()
})

/** An HTTP/2 connection with the administrator's certificate and small windows. */
function openConnection(): ClientHttp2Session {
  const session = connect(plane.server, { ...credentials, settings: { initialWindowSize: windowBytes } })
  session.on('error', () => {})
  return session
}

function askHttp1(path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(`${plane.server}${path}`, { ...credentials, agent: false }, (message) => {
      assert.equal(message.statusCode, 200)
      resolve(message)
    })
    request.on('error', reject).end()
  })
}

async function askOver(connection: ClientHttp2Session, path: string): Promise<KubeObject> {
  const stream = connection.request({ ':path': path })
  let text = ''
  for await (const piece of stream.setEncoding('utf8') as AsyncIterable<string>) text += piece
  return JSON.parse(text) as KubeObject
}

/** Resolves with the error code that the stream ended with. */
function closed(stream: ClientHttp2Stream): Promise<number> {
  stream.on('error', () => {})
  return new Promise((resolve) => stream.once('close', () => resolve(stream.rstCode)))
}

/** An answer that is not read until asked to, and then one piece at a time. */
class SlowBody {
  /** The head is there. */
  readonly begun: Promise<void>
  ended = false
  readonly #source: ClientHttp2Stream | IncomingMessage

  constructor(source: ClientHttp2Stream | IncomingMessage) {
    this.#source = source
    source.pause()
    source.once('end', () => (this.ended = true))
    this.begun =
      'session' in source ? new Promise((resolve) => source.once('response', () => resolve())) : Promise.resolve()
  }

  async readSlowly(onRead: (bytes: number) => void = () => {}): Promise<Buffer> {
    const pieces: Buffer[] = []
    const source: AsyncIterable<Buffer> = this.#source
    for await (const piece of source) {
      pieces.push(piece)
      onRead(piece.length)
      await new Promise((resolve) => setImmediate(resolve))
    }
    return Buffer.concat(pieces)
  }
}

/** Bytes read so far, to be waited for. */
class Progress {
  #bytes = 0
  readonly #waiters = new Set<{ readonly bytes: number; resolve(): void }>()

  get bytes(): number {
    return this.#bytes
  }

  add(bytes: number): void {
    this.#bytes += bytes
    for (const waiter of this.#waiters) {
      if (waiter.bytes > this.#bytes) continue
      this.#waiters.delete(waiter)
      waiter.resolve()
    }
  }

  reached(bytes: number): Promise<void> {
    if (this.#bytes >= bytes) return Promise.resolve()
    return new Promise((resolve) => this.#waiters.add({ bytes, resolve }))
  }
}

interface WatchReading {
  readonly opened: Promise<void>
  /** "ADDED name resourceVersion" of every event, in order. */
  readonly seen: readonly string[]
  /** Resolves when that many events are there; rejects when the watch ends before. */
  reached(count: number): Promise<void>
}

function readWatch(connection: ClientHttp2Session, path: string): WatchReading {
  const stream = connection.request({ ':path': path })
  const seen: string[] = []
  const waiters = new Set<{ readonly count: number; resolve(): void; reject(error: Error): void }>()
  const opened = new Promise<void>((resolve) => stream.once('response', () => resolve()))
  const onEvent = (): void => {
    for (const waiter of waiters) if (seen.length >= waiter.count) waiter.resolve()
  }
  const fail = (error: unknown): void => {
    for (const waiter of waiters)
      waiter.reject(new Error(`the watch ended behind ${seen.length} events`, { cause: error }))
  }
  void followWatch(stream, seen, onEvent).then(fail, fail)
  return {
    opened,
    seen,
    reached: (count) =>
      seen.length >= count
        ? Promise.resolve()
        : new Promise((resolve, reject) => waiters.add({ count, resolve, reject })),
  }
}

/** Reads a watch to its end; rejects when it was cut. */
async function followWatch(
  source: ClientHttp2Stream | IncomingMessage,
  seen: string[],
  onEvent: () => void = () => {},
): Promise<void> {
  let rest = ''
  for await (const piece of source.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() as string
    for (const line of lines) {
      const { type, object } = JSON.parse(line) as WatchLine
      assert.notEqual(type, 'ERROR', line)
      seen.push(`${type} ${object.metadata.name} ${object.metadata.resourceVersion}`)
      onEvent()
    }
  }
}

/** Returns what a watch should say of it. */
async function create(name: string): Promise<string> {
  return `ADDED ${name} ${await put(small, configMap(name))}`
}

/**
 * Creates an object and returns its resourceVersion. On a crowded machine the server may have to say that it does not
 * know what became of a write; then it is looked up.
 */
async function put(collection: string, object: { readonly metadata: { readonly name: string } }): Promise<string> {
  for (;;) {
    const answer = await call(plane.http, 'POST', collection, { body: object, dispatcher: writers })
    if (answer.status === 201) return answer.json.metadata.resourceVersion
    if (answer.status === 409) {
      const there = await call(plane.http, 'GET', `${collection}/${object.metadata.name}`, { dispatcher: writers })
      assert.equal(there.status, 200, there.text)
      return there.json.metadata.resourceVersion
    }
    assert.equal(answer.status, 504, answer.text)
  }
}

/** Repeats a PUT whose outcome the server does not know: once more changes nothing. */
async function replace(name: string, data: Record<string, string>): Promise<void> {
  for (;;) {
    const body = configMap(name, data)
    const answer = await call(plane.http, 'PUT', `${small}/${name}`, { body, dispatcher: writers })
    if (answer.status === 200) return
    assert.equal(answer.status, 504, answer.text)
  }
}

async function inParallel(clients: number, count: number, run: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (next < count) await run(next++)
    }),
  )
}

/** Waits, by looking again. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 100))
}

/** Connections to the secure port that the server's process still has open (proc(5), net/tcp). */
function openConnections(): number {
  const port = Number(new URL(plane.server).port).toString(16).toUpperCase().padStart(4, '0')
  const folder = `/proc/${plane.pid}/fd`
  const links = new Set(
    readdirSync(folder).map((entry) => {
      try {
        return readlinkSync(`${folder}/${entry}`)
      } catch {
        return 'closed meanwhile'
      }
    }),
  )
  return readFileSync(`/proc/${plane.pid}/net/tcp`, 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state, , , , , , inode]) => {
      const listens = state === '0A'
      return local?.endsWith(`:${port}`) === true && !listens && links.has(`socket:[${inode}]`)
    }).length
}

function residentBytes(field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${plane.pid}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024
}

function measureMemory(): { assertBounded(context: TestContext, heldBytes: number): void } {
  // The peak counts from here on (proc(5), clear_refs).
  writeFileSync(`/proc/${plane.pid}/clear_refs`, '5')
  const start = residentBytes('VmRSS')
  return {
    assertBounded(context, heldBytes) {
      const grown = residentBytes('VmHWM') - start
      const boundBytes = heldBytes + slackBytes
      context.diagnostic(`memory grew by ${mb(grown)} from ${mb(start)}, bound ${mb(boundBytes)}`)
      assert.ok(grown <= boundBytes, `memory grew by ${mb(grown)} from ${mb(start)}, more than ${mb(boundBytes)}`)
    },
  }
}

const mb = (bytes: number): string => `${(bytes / megabyte).toFixed(0)} MB`
