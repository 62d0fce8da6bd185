/**
 * `npm run bench:api`: the API server under load over TLS. This process is the load generator; the server is another.
 *
 * Creates and gets of pods of 2 KB, lists of 5,000 of them, and writes that 1,000 watchers see, each at 1, 16, 64 and
 * 256 clients with a connection of their own; watchers share connections, twenty on one over HTTP/2, as the informers
 * of one program do. Per line: rate, median and 99th percentile of the latency that clients see, CPU of the server per
 * request, and its event-loop delay. A write counts when its last watcher has it. Progress goes to standard error.
 *
 * SECONDS (5) of each measurement; CLIENTS=1,16, PODS, WATCHERS and ONLY=create,get,list,watch for less.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'hdr-histogram-js'
import { Agent, type Dispatcher, request } from 'undici'
import {
  adminAgent,
  adminCredentials,
  call,
  configMap,
  type ControlPlaneProcess,
  startProcess,
} from '../control-plane.ts'
import { benchPod } from './pods.ts'

const clientCounts = (process.env.CLIENTS ?? '1,16,64,256').split(',').map(Number)
const seconds = Number(process.env.SECONDS ?? 5)
const podCount = Number(process.env.PODS ?? 5_000)
const watcherCount = Number(process.env.WATCHERS ?? 1_000)
const only = process.env.ONLY?.split(',') ?? ['create', 'get', 'list', 'watch']
const nodeFlags = process.env.SERVER_NODE_FLAGS?.split(' ') ?? []
const watchesPerConnection = 20
const ticksPerSecond = 100

const pods = '/api/v1/namespaces/default/pods'
const created = '/api/v1/namespaces/bench/pods'
const watched = '/api/v1/namespaces/kube-public/configmaps'

const columns = [30, 9, 12, 10, 10, 10, 10, 10] as const
const row = (...cells: readonly string[]): void => {
  const text = cells.map((cell, at) => (at === 0 ? cell.padEnd(columns[0]) : cell.padStart(columns[at] ?? 0)))
  process.stdout.write(`${text.join('')}\n`)
}
const progress = (text: string): void => void process.stderr.write(`${text}\n`)

/** User and system CPU seconds of a process so far. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** What the probe in the server has seen since it was last asked. */
async function eventLoopDelay(plane: ControlPlaneProcess): Promise<{ readonly p99: number; readonly max: number }> {
  const lines = (): string[] => {
    try {
      return readFileSync(probeFile, 'utf8').trim().split('\n')
    } catch {
      return []
    }
  }
  const before = lines().length
  plane.process.kill('SIGUSR2')
  while (lines().length === before) await new Promise((resolve) => setTimeout(resolve, 5))
  return JSON.parse(lines().at(-1) as string) as { p99: number; max: number }
}

/** Runs `once` in a loop for every client and prints a line. */
async function measure(
  plane: ControlPlaneProcess,
  what: string,
  clients: number,
  once: (client: number) => Promise<void>,
): Promise<void> {
  progress(`${what}, ${clients} ${clients === 1 ? 'client' : 'clients'} …`)
  const latencies = build({ highestTrackableValue: 600_000_000 })
  await eventLoopDelay(plane)
  const cpuBefore = cpuSeconds(plane.pid)
  const began = performance.now()
  const until = began + seconds * 1000
  let done = 0
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      while (performance.now() < until) {
        const sent = performance.now()
        await once(client)
        latencies.recordValue(Math.max(1, Math.round((performance.now() - sent) * 1000)))
        done += 1
      }
    }),
  )
  const elapsed = (performance.now() - began) / 1000
  const cpuMs = ((cpuSeconds(plane.pid) - cpuBefore) / done) * 1000
  const loop = await eventLoopDelay(plane)
  const ms = (microseconds: number): string => (microseconds / 1000).toFixed(2)
  row(
    what,
    String(clients),
    (done / elapsed).toFixed(done / elapsed < 100 ? 1 : 0),
    ms(latencies.getValueAtPercentile(50)),
    ms(latencies.getValueAtPercentile(99)),
    cpuMs.toFixed(2),
    loop.p99.toFixed(1),
    loop.max.toFixed(1),
  )
}

async function expectOk(answer: Dispatcher.ResponseData): Promise<void> {
  if (answer.statusCode >= 300) throw new Error(`answered ${answer.statusCode}: ${await answer.body.text()}`)
  for await (const chunk of answer.body) void chunk
}

async function post(plane: ControlPlaneProcess, path: string, body: object, dispatcher: Dispatcher): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  await expectOk(
    await request(`${plane.server}${path}`, { method: 'POST', body: JSON.stringify(body), headers, dispatcher }),
  )
}

async function loadPods(plane: ControlPlaneProcess): Promise<void> {
  progress(`creating ${podCount} pods …`)
  const dispatcher = adminAgent(plane)
  let next = 0
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      while (next < podCount) await post(plane, pods, benchPod((next += 1)), dispatcher)
    }),
  )
  await dispatcher.close()
}

/** Each client count with fresh connections. */
async function atEachCount(
  plane: ControlPlaneProcess,
  what: string,
  once: (dispatcher: Dispatcher, client: number) => Promise<void>,
): Promise<void> {
  for (const clients of clientCounts) {
    const dispatcher = adminAgent(plane)
    // All connections are open before the clock starts.
    await Promise.all(
      Array.from({ length: clients }, async () => {
        await expectOk(await request(`${plane.server}/version`, { dispatcher }))
      }),
    )
    await measure(plane, what, clients, (client) => once(dispatcher, client))
    await dispatcher.close()
  }
}

/** Who waits for a write to be seen, by the number in the name of its object. */
class Arrivals {
  readonly #waiting = new Map<number, { left: number; readonly done: () => void }>()

  expect(object: number): Promise<void> {
    return new Promise((done) => this.#waiting.set(object, { left: watcherCount, done }))
  }

  count(object: number): void {
    const waiting = this.#waiting.get(object)
    if (waiting === undefined || (waiting.left -= 1) > 0) return
    this.#waiting.delete(object)
    waiting.done()
  }
}

const watchedName = (client: number): string => `fan-out-${String(client).padStart(3, '0')}`
/** Where the digits of that name stand in an event. */
const digitsAt = '{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"fan-out-'.length

function openWatch(session: ClientHttp2Session, from: string, arrivals: Arrivals): Promise<void> {
  const stream = session.request({ ':path': `${watched}?watch=true&resourceVersion=${from}` })
  let rest: Buffer = Buffer.alloc(0)
  stream.on('data', (chunk: Buffer) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let start = 0
    for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, start)) {
      arrivals.count(Number(bytes.toString('latin1', start + digitsAt, start + digitsAt + 3)))
      start = end + 1
    }
    rest = bytes.subarray(start)
  })
  stream.on('error', () => {})
  return new Promise((resolve) => stream.once('response', () => resolve()))
}

async function fanOut(plane: ControlPlaneProcess): Promise<void> {
  progress(`opening ${watcherCount} watches …`)
  const dispatcher = adminAgent(plane)
  const writers = Math.max(...clientCounts)
  for (let client = 0; client < writers; client++) {
    await post(plane, watched, configMap(watchedName(client), { n: '0' }), dispatcher)
  }
  const from = (await call(plane.server, 'GET', watched, { dispatcher })).json.metadata.resourceVersion
  const arrivals = new Arrivals()
  const sessions: ClientHttp2Session[] = []
  for (let watcher = 0; watcher < watcherCount; watcher++) {
    if (watcher % watchesPerConnection === 0) sessions.push(connect(plane.server, adminCredentials(plane)))
    await openWatch(sessions.at(-1) as ClientHttp2Session, from, arrivals)
  }
  let written = 0
  await atEachCount(plane, `write seen by ${watcherCount} watchers`, async (agent, client) => {
    const seen = arrivals.expect(client)
    await expectOk(
      await request(`${plane.server}${watched}/${watchedName(client)}`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/merge-patch+json' },
        body: JSON.stringify({ data: { n: String((written += 1)) } }),
        dispatcher: agent,
      }),
    )
    await seen
  })
  for (const session of sessions) session.destroy()
  await dispatcher.close()
}

const folder = mkdtempSync(join(tmpdir(), 'trireme-bench-'))
const probeFile = join(folder, 'probe')
process.env.TRIREME_PROBE_FILE = probeFile
const probe = fileURLToPath(new URL('event-loop-probe.js', import.meta.url))
const began = performance.now()
const plane = await startProcess({ nodeFlags: [...nodeFlags, '--import', probe] })
try {
  const loading = new Agent()
  await call(plane.http, 'POST', '/api/v1/namespaces', { body: { metadata: { name: 'bench' } }, dispatcher: loading })
  await loading.close()
  await loadPods(plane)
  row('milliseconds but for the rate', 'clients', 'per second', 'p50', 'p99', 'CPU', 'loop p99', 'loop max')
  let named = podCount
  if (only.includes('create')) {
    await atEachCount(plane, 'create a pod', (dispatcher) => {
      return post(plane, created, benchPod((named += 1), 'bench'), dispatcher)
    })
  }
  if (only.includes('get')) {
    const names = Array.from({ length: 256 }, (_, at) => benchPod(at + 1).metadata.name)
    await atEachCount(plane, 'get a pod', async (dispatcher, client) => {
      await expectOk(await request(`${plane.server}${pods}/${names[client % names.length]}`, { dispatcher }))
    })
  }
  if (only.includes('list')) {
    await atEachCount(plane, `list ${podCount} pods`, async (dispatcher) => {
      await expectOk(await request(`${plane.server}${pods}`, { dispatcher }))
    })
  }
  if (only.includes('watch')) await fanOut(plane)
} finally {
  await plane.stop()
  rmSync(folder, { recursive: true, force: true })
}
const machine = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}`
process.stdout.write(`${machine}, ${((performance.now() - began) / 1000).toFixed(0)} s in all\n`)
