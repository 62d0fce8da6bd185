/**
 * Proposals through three members in this process on the real disk, in-process transport.
 * Run: node dist/test/bench/raft.js [directory]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMemoryHub, createNodeEnv, createRaftNode, openWal } from '../../raft/index.ts'
import { silentLogger } from '../../raft/env.ts'
import { ListMachine } from '../raft/list-machine.ts'

const directory = mkdtempSync(join(process.argv[2] ?? tmpdir(), 'raft-bench-'))
const hub = createMemoryHub()
const voters = [1n, 2n, 3n]
const nodes = await Promise.all(
  voters.map(async (id) => {
    const env = createNodeEnv({ log: silentLogger })
    const wal = await openWal({
      disk: env.disk,
      directory: join(directory, `${id}`, 'wal'),
      log: silentLogger,
      random: env.random,
      metadata: { clusterId: 1n, memberId: id },
      initial: {
        hardState: { term: 0, vote: 0n, commit: 0 },
        snapshot: { index: 0, term: 0, membership: { voters, learners: [] } },
      },
    })
    const stateMachine = await ListMachine.open(env.disk, join(directory, `${id}`, 'state'))
    const options = { checkpointEntries: 1e9, checkpointWalBytes: 1e12 }
    return createRaftNode({ id, env, wal, stateMachine, transport: hub.transport(id), ...options })
  }),
)
const leader = nodes[0]!
const led = new Promise<void>((resolve) => leader.onStatusChange((it) => it.role === 'leader' && resolve()))
leader.campaign()
await led
const data = Buffer.alloc(200, 'x')
for (const [concurrency, total] of [
  [1, 2000],
  [1, 2000],
  [16, 10_000],
  [64, 30_000],
] as const) {
  const latencies: number[] = []
  let left = total
  const cpu = process.cpuUsage()
  const begin = performance.now()
  const client = async () => {
    while (left-- > 0) {
      const from = performance.now()
      await leader.propose(data, { signal: new AbortController().signal })
      latencies.push(performance.now() - from)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, client))
  const seconds = (performance.now() - begin) / 1000
  const { user, system } = process.cpuUsage(cpu)
  latencies.sort((a, b) => a - b)
  const at = (part: number) => latencies[Math.floor(latencies.length * part)]?.toFixed(2)
  console.log(
    `${concurrency} at once: ${Math.round(total / seconds)}/s, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ` +
      `${Math.round((user + system) / total)} us CPU each`,
  )
}
await Promise.all(nodes.map((node) => node.stop()))
rmSync(directory, { recursive: true })
