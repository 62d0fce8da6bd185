/**
 * `node dist/test/bench/embedded-open.js`: how long opening the embedded store takes, each time in a process of its own:
 * a first start, and starts on ROWS (10,000) rows of 2 KB after a close and after kill -9. Median of RUNS (7).
 */
import { spawn } from 'node:child_process'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createNodeEnv } from '../../raft/env-node.ts'
import { silentLogger } from '../../raft/env.ts'
import { openEmbeddedStore } from '../../storage/embedded.ts'

const rows = Number(process.env.ROWS ?? 10_000)
const runs = Number(process.env.RUNS ?? 7)
const replicas = process.env.REPLICAS === '1' ? 1 : 3
const call = () => ({ signal: new AbortController().signal })
const [step, directory = ''] = process.argv.slice(2)

if (step === undefined) await main()
else await child(step)

async function main(): Promise<void> {
  const top = await mkdtemp(join(tmpdir(), 'trireme-bench-'))
  try {
    const first: Opened[] = []
    for (let run = 0; run < runs; run++) {
      first.push(await opened(join(top, 'first')))
      await rm(join(top, 'first'), { recursive: true })
    }
    report(`first start, ${replicas} replicas`, first)
    for (const [what, end] of [
      ['after a close', 'close'],
      ['after kill -9', 'kill'],
    ] as const) {
      const filled = join(top, end)
      await run(`fill-${end}`, filled)
      const again: Opened[] = []
      for (let i = 0; i < runs; i++) {
        await cp(filled, join(top, 'copy'), { recursive: true })
        again.push(await opened(join(top, 'copy')))
        await rm(join(top, 'copy'), { recursive: true })
      }
      report(`${rows} rows, ${what}`, again)
    }
  } finally {
    await rm(top, { recursive: true, force: true })
  }
}

interface Opened {
  readonly milliseconds: number
  readonly cpu: number
  readonly megabytes: number
}

async function opened(where: string): Promise<Opened> {
  return JSON.parse(await run('open', where)) as Opened
}

function report(what: string, found: readonly Opened[]): void {
  const median = (of: (opened: Opened) => number) => {
    const values = found.map(of).sort((a, b) => a - b)
    return values[values.length >> 1]?.toFixed(0)
  }
  const all = found.map(({ milliseconds }) => milliseconds.toFixed(0)).join(' ')
  console.log(
    `${what.padEnd(28)} median ${median((it) => it.milliseconds)} ms, CPU ${median((it) => it.cpu)} ms, ` +
      `resident ${median((it) => it.megabytes)} MB (${all})`,
  )
}

/** What it printed. */
function run(what: string, where: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const started = spawn(process.execPath, [fileURLToPath(import.meta.url), what, where], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    started.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    started.on('close', (code, signal) => {
      if (code === 0 || (what === 'fill-kill' && signal === 'SIGKILL')) resolve(output)
      else reject(new Error(`${what} ended with ${code ?? signal}`))
    })
  })
}

async function child(what: string): Promise<void> {
  const keep = setInterval(() => undefined, 1_000)
  const env = createNodeEnv({ log: silentLogger })
  const begun = performance.now()
  const { user, system } = process.cpuUsage()
  const store = await openEmbeddedStore({ directory, env, replicas })
  const milliseconds = performance.now() - begun
  const used = process.cpuUsage({ user, system })
  const cpu = (used.user + used.system) / 1000
  if (what === 'open') {
    const megabytes = process.memoryUsage.rss() / 1e6
    process.stdout.write(JSON.stringify({ milliseconds, cpu, megabytes } satisfies Opened))
  } else {
    for (let i = 0; i < rows; i += 64) {
      await Promise.all(Array.from({ length: Math.min(64, rows - i) }, (_, j) => store.txn(put(i + j), call())))
    }
    if (what === 'fill-kill') process.kill(process.pid, 'SIGKILL')
  }
  await store.close()
  clearInterval(keep)
}

function put(i: number) {
  const value = Buffer.from(JSON.stringify({ i, text: `${i % 97} `.repeat(700) }).slice(0, 2048))
  const success = [{ type: 'put' as const, key: Buffer.from(`/registry/pods/default/pod-${i}`), value }]
  return { compare: [], success, failure: [] }
}
