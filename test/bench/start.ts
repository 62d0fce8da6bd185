/**
 * `npm run bench:start`: how long from spawning the built command to a successful write, and the memory it then holds.
 *
 * First start (certificates made), later starts on the same directory, and starts with 10,000 pods of 2 KB on disk;
 * median of RUNS (5). Memory is the resident set 10 s after ready.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent } from 'undici'
import { call, configMap, type ControlPlaneProcess, startProcess } from '../control-plane.ts'
import { benchPod } from './pods.ts'

const runs = Number(process.env.RUNS ?? 5)
const pods = Number(process.env.PODS ?? 10_000)
let writes = 0

async function timedStart(
  dataDir: string,
): Promise<{ readonly plane: ControlPlaneProcess; readonly milliseconds: number }> {
  const began = performance.now()
  const plane = await startProcess({ dataDir })
  const answer = await call(plane.http, 'POST', '/api/v1/namespaces/default/configmaps', {
    body: configMap(`started-${(writes += 1)}`),
  })
  if (answer.status !== 201) throw new Error(`the first write was answered ${answer.status}: ${answer.text}`)
  return { plane, milliseconds: performance.now() - began }
}

function residentMegabytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1]) / 1000
}

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))
const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number

function print(what: string, values: readonly number[], unit: string, bar: number): void {
  const all = values.map((value) => value.toFixed(0)).join(' ')
  process.stdout.write(
    `${what.padEnd(34)} median ${median(values).toFixed(0).padStart(5)} ${unit}   bar ${bar} ${unit}   (${all})\n`,
  )
}

const first: number[] = []
const later: number[] = []
for (let run = 0; run < runs; run++) {
  const dataDir = mkdtempSync(join(tmpdir(), 'trireme-bench-'))
  const fresh = await timedStart(dataDir)
  first.push(fresh.milliseconds)
  await fresh.plane.stop()
  const again = await timedStart(dataDir)
  later.push(again.milliseconds)
  await again.plane.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
print('first start', first, 'ms', 1000)
print('later start', later, 'ms', 800)

const dataDir = mkdtempSync(join(tmpdir(), 'trireme-bench-'))
const empty = await timedStart(dataDir)
await sleep(10_000)
print('resident memory, empty', [residentMegabytes(empty.plane.pid)], 'MB', 150)

const dispatcher = new Agent({ connections: 32 })
let next = 0
await Promise.all(
  Array.from({ length: 32 }, async () => {
    while (next < pods) {
      const answer = await call(empty.plane.http, 'POST', '/api/v1/namespaces/default/pods', {
        body: benchPod((next += 1)),
        dispatcher,
      })
      if (answer.status !== 201) throw new Error(`creating a pod was answered ${answer.status}: ${answer.text}`)
    }
  }),
)
await dispatcher.close()
await empty.plane.stop()

const loaded: number[] = []
const resident: number[] = []
for (let run = 0; run < runs; run++) {
  const start = await timedStart(dataDir)
  loaded.push(start.milliseconds)
  if (run === runs - 1) {
    await sleep(10_000)
    resident.push(residentMegabytes(start.plane.pid))
  }
  await start.plane.stop()
}
rmSync(dataDir, { recursive: true, force: true })
print(`start with ${pods} pods of 2 KB`, loaded, 'ms', 2000)
print(`resident memory, ${pods} pods`, resident, 'MB', 220)
