import assert from 'node:assert/strict'
import test from 'node:test'
import { type Disk, silentLogger } from '../../../raft/env.ts'
import { createRaftNode } from '../../../raft/node.ts'
import { openWal } from '../../../raft/wal/index.ts'
import { ListMachine } from '../../raft/list-machine.ts'
import { SimNetwork, SimNode, createSimulation } from './index.ts'

const seed = Number(process.env['SEED'] ?? 1)

/** Three members, a bad network, crashes: how it ended, and the hash of all that happened. */
async function life(atSeed: number): Promise<{ hash: string; values: readonly string[] }> {
  const simulation = createSimulation(atSeed)
  const network = new SimNetwork(simulation)
  Object.assign(network.weather, { drop: 0.05, duplicate: 0.05, latencyMsMax: 20 })
  const voters = [1n, 2n, 3n]
  const machines = voters.map((id) => new SimNode(simulation, `n${id}`, { drift: 1 + Number(id) / 100 }))
  const boot = async (i: number) => {
    const machine = machines[i]!
    const id = voters[i]!
    const env = machine.boot()
    const wal = await openWal({
      disk: env.disk,
      directory: 'wal',
      log: silentLogger,
      random: env.random,
      metadata: { clusterId: 1n, memberId: id },
      initial: {
        hardState: { term: 0, vote: 0n, commit: 0 },
        snapshot: { index: 0, term: 0, membership: { voters, learners: [] } },
      },
      firstSegmentBytes: 4096,
      segmentBytes: 8192,
    })
    const stateMachine = await ListMachine.open(env.disk, 'state')
    const transport = network.transport(id, machine)
    const options = { checkpointEntries: 30, catchUpEntries: 5 }
    return { node: await createRaftNode({ id, env, wal, stateMachine, transport, ...options }), stateMachine }
  }
  const members = await simulation.finish(Promise.all(voters.map((_, i) => boot(i))))
  const acknowledged: string[] = []
  let proposed = 0
  for (let round = 0; round < 60; round++) {
    for (const { node } of members) {
      const text = `v${proposed++}`
      node.propose(Buffer.from(text), { signal: new AbortController().signal }).then(
        () => acknowledged.push(text),
        () => undefined,
      )
    }
    if (round % 9 === 5) network.isolate(voters[simulation.random.between(0, 2)]!)
    if (round % 9 === 8) network.heal()
    if (round % 7 === 6) {
      const victim = simulation.random.between(0, 2)
      machines[victim]!.crash()
      members[victim] = await simulation.finish(boot(victim))
    }
    if (round % 11 === 10) machines[simulation.random.between(0, 2)]!.pause(700)
    await simulation.run(simulation.now + 300)
  }
  network.heal()
  Object.assign(network.weather, { drop: 0, duplicate: 0 })
  const applied = () => members.map(({ stateMachine }) => stateMachine.appliedIndex)
  await simulation.run(simulation.now + 10_000)
  await simulation.run(() => new Set(applied()).size === 1)
  const [first, ...others] = members.map(({ stateMachine }) => stateMachine.values)
  assert.ok(first && first.length > 20, `seed ${atSeed}: only ${first?.length} values`)
  for (const other of others) assert.deepEqual(other, first, `seed ${atSeed}`)
  assert.equal(new Set(first).size, first.length, `seed ${atSeed}: a value twice`)
  for (const text of acknowledged) assert.ok(first.includes(text), `seed ${atSeed}: acknowledged ${text} is lost`)
  return { hash: simulation.traceHash(), values: first }
}

test(`a cluster under loss, partitions, stalls and crashes keeps what it acknowledged (from seed ${seed})`, async () => {
  for (let i = 0; i < 5; i++) await life(seed + i)
})

test('the same seed gives the same trace', async () => {
  const once = await life(seed)
  const twice = await life(seed)
  assert.deepEqual(twice, once)
  assert.notEqual((await life(seed + 1)).hash, once.hash)
})

test('an unsynced name or sector may be lost in a crash, a synced one never is', async () => {
  let lostNames = 0
  let lostSectors = 0
  for (let i = 0; i < 40; i++) {
    const simulation = createSimulation(seed * 50 + i)
    const node = new SimNode(simulation, 'n')
    const { disk } = node.boot()
    await simulation.finish(disk.makeDirectory('d'))
    const kept = await simulation.finish(disk.open('d/kept', 'create'))
    await simulation.finish(kept.write([Buffer.alloc(2048, 1)], 0))
    await simulation.finish(kept.sync())
    await simulation.finish(disk.syncDirectory('d'))
    await simulation.finish(kept.write([Buffer.alloc(2048, 2)], 0))
    await simulation.finish(disk.open('d/new', 'create'))
    node.crash()
    const bytes = await simulation.finish(node.boot().disk.readFile('d/kept'))
    assert.equal(bytes.length, 2048)
    if (bytes.includes(1)) lostSectors++
    if (!node.disk.paths().includes('d/new')) lostNames++
  }
  assert.ok(lostNames > 5 && lostNames < 35 && lostSectors > 20)
})

test('a rename that outlives a crash moved its own file, never an older one of the same name', async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const simulation = createSimulation(seed)
    const node = new SimNode(simulation, 'n1')
    const write = async (disk: Disk, path: string, value: number): Promise<void> => {
      const file = await disk.open(path, 'create')
      await file.write([Buffer.alloc(10, value)], 0)
      await file.sync()
    }
    const { disk } = node.boot()
    await simulation.finish(disk.makeDirectory('d'))
    await simulation.finish(disk.open('d/file.tmp', 'create'))
    await simulation.finish(disk.syncDirectory('d'))
    await simulation.finish(disk.removeTree('d/file.tmp'))
    await simulation.finish(write(disk, 'd/file.tmp', 7))
    await simulation.finish(disk.rename('d/file.tmp', 'd/file'))
    node.crash()
    if (!node.disk.paths().includes('d/file')) continue
    const bytes = await simulation.finish(node.boot().disk.readFile('d/file'))
    assert.deepEqual(Buffer.from(bytes), Buffer.alloc(10, 7), `seed ${seed}`)
  }
})
