/**
 * `npm run bench:api`: the API server under load over TLS, from a client process on the same machine.
 *
 * Creates, gets, lists of 5,000 pods of 2 KB, and the fan-out of writes to 1,000 watchers, each at 1, 16, 64 and 256
 * clients (CLIENTS=1,16 for fewer). Per line: rate, median and 99th percentile latency as the client sees them, CPU of
 * the server per request, and the server's event-loop delay. SECONDS (5) bounds every measurement.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'hdr-histogram-js'
import { Agent, request } from 'undici'
import { adminAgent, call, configMap, type ControlPlaneProcess, startProcess } from '../control-plane.ts'
import { benchPod } from './pods.ts'

const clientCounts = (process.env.CLIENTS ?? '1,16,64,256').split(',').map(Number)
const seconds = Number(process.env.SECONDS ?? 5)
const listedPods = Number(process.env.PODS ?? 5_000)
const watcherCount = Number(process.env.WATCHERS ?? 1_000)
const ticksPerSecond = 100

const folder = mkdtempSync(join(tmpdir(), 'trireme-bench-'))
const probeFile = join(folder, 'probe')
process.env.TRIREME_PROBE_FILE = probeFile
const probe = fileURLToPath(new URL('event-loop-probe.js', import.meta.url))

/** User and system CPU seconds of a process so far. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

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

const header = `${'what'.padEnd(30)}${'clients'.padStart(8)}${'per second'.padStart(12)}${'p50 ms'.padStart(9)}${'p99 ms'.padStart(9)}${'CPU µs'.padStart(9)}${'loop p99'.padStart(10)}${'loop max'.padStart(10)}\n`

async function measure(
  plane: ControlPlaneProcess,
  what: string,
  clients: number,
  once: (client: number, round: number) => Promise<void>,
): Promise<void> {
  const latencies = build({ highestTrackableValue: 60_000_000 })
  await eventLoopDelay(plane)
  const cpuBefore = cpuSeconds(plane.pid)
  const began = performance.now()
  const until = began + seconds * 1000
  let done = 0
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let round = 0; performance.now() < until; round++) {
        const sent = performance.now()
        await once(client, round)
        latencies.recordValue(Math.max(1, Math.round((performance.now() - sent) * 1000)))
        done += 1
      }
    }),
  )
  const elapsed = (performance.now() - began) / 1000
  const cpu = ((cpuSeconds(plane.pid) - cpuBefore) / done) * 1e6
  const loop = await eventLoopDelay(plane)
  const ms = (value: number): string => (value / 1000).toFixed(2)
  process.stdout.write(
    `${what.padEnd(30)}${String(clients).padStart(8)}${(done / elapsed).toFixed(0).padStart(12)}${ms(latencies.getValueAtPercentile(50)).padStart(9)}${ms(latencies.getValueAtPercentile(99)).padStart(9)}${cpu.toFixed(0).padStart(9)}${loop.p99.toFixed(1).padStart(10)}${loop.max.toFixed(1).padStart(10)}\n`,
  )
}

async function expectOk(answer: Awaited<ReturnType<typeof request>>): Promise<void> {
  const ok = answer.statusCode < 300
  if (!ok) throw new Error(`answered ${answer.statusCode}: ${await answer.body.text()}`)
  for await (const chunk of answer.body) void chunk
}

const plane = await startProcess({ nodeFlags: ['--import', probe] })
try {
  process.stdout.write(header)
  const collection = `${plane.server}/api/v1/namespaces/default/configmaps`
  let created = 0
  for (const clients of clientCounts) {
    const dispatcher = adminAgent(plane)
    await measure(plane, 'create ConfigMap', clients, async () => {
      const body = JSON.stringify(configMap(`bench-${(created += 1)}`, { key: 'value' }))
      await expectOk(
        await request(collection, {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json' },
          dispatcher,
        }),
      )
    })
    await dispatcher.close()
  }
  for (const clients of clientCounts) {
    const dispatcher = adminAgent(plane)
    await measure(plane, 'get ConfigMap', clients, async (client) => {
      await expectOk(await request(`${collection}/bench-${1 + (client % created)}`, { dispatcher }))
    })
    await dispatcher.close()
  }

  const loading = new Agent({ connections: 32 })
  let next = 0
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      while (next < listedPods) {
        const answer = await call(plane.http, 'POST', '/api/v1/namespaces/default/pods', {
          body: benchPod((next += 1)),
          dispatcher: loading,
        })
        if (answer.status !== 201) throw new Error(`creating a pod was answered ${answer.status}: ${answer.text}`)
      }
    }),
  )
  await loading.close()
  for (const clients of clientCounts.filter((count) => count <= 64)) {
    const dispatcher = adminAgent(plane)
    await measure(plane, `list ${listedPods} pods`, clients, async () => {
      await expectOk(await request(`${plane.server}/api/v1/namespaces/default/pods`, { dispatcher }))
    })
    await dispatcher.close()
  }

  await fanOut(plane)
} finally {
  await plane.stop()
  rmSync(folder, { recursive: true, force: true })
}

/** One write at a time to an object that WATCHERS watches see; a write counts when the last watcher has it. */
async function fanOut(plane: ControlPlaneProcess): Promise<void> {
  const namespace = '/api/v1/namespaces/kube-public/configmaps'
  const dispatcher = adminAgent(plane)
  const target = await call(plane.server, 'POST', namespace, { body: configMap('fan-out', { n: '0' }), dispatcher })
  if (target.status !== 201) throw new Error(target.text)
  const from = target.json.metadata.resourceVersion
  let arrived = 0
  let whenAll: (() => void) | undefined
  const ending = new AbortController()
  const watches = await Promise.all(
    Array.from({ length: watcherCount }, async () => {
      const answer = await request(`${plane.server}${namespace}?watch=true&resourceVersion=${from}`, {
        dispatcher,
        signal: ending.signal,
      })
      if (answer.statusCode !== 200) throw new Error(`a watch was answered ${answer.statusCode}`)
      const read = async (): Promise<void> => {
        try {
          for await (const chunk of answer.body as AsyncIterable<Buffer>) {
            for (const byte of chunk) if (byte === 0x0a) arrived += 1
            if (arrived >= watcherCount) whenAll?.()
          }
        } catch (error) {
          if (!ending.signal.aborted) throw error
        }
      }
      return { ended: read() }
    }),
  )
  await measure(plane, `write seen by ${watcherCount} watchers`, 1, async (_, round) => {
    arrived = 0
    const all = new Promise<void>((resolve) => (whenAll = resolve))
    const body = { data: { n: String(round + 1) } }
    const answer = await call(plane.server, 'PATCH', `${namespace}/fan-out`, {
      body,
      contentType: 'application/merge-patch+json',
      dispatcher,
    })
    if (answer.status !== 200) throw new Error(answer.text)
    await all
  })
  ending.abort()
  await Promise.all(watches.map(({ ended }) => ended))
  await dispatcher.destroy()
}
