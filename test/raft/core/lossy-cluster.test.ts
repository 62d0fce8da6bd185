import assert from 'node:assert/strict'
import test from 'node:test'
import { LossyCluster } from './lossy-cluster.ts'
import type { LossyClusterOptions } from './lossy-cluster.ts'
import { seeds } from './random-source.ts'

const stepsPerRun = 8_000

interface Sum {
  elections: number
  reads: number
  snapshots: number
  committed: number
  changes: number
}

function run(options: LossyClusterOptions, sum: Sum): void {
  const cluster = new LossyCluster(options)
  for (let step = 0; step < stepsPerRun; step++) {
    cluster.step({ faults: true })
    if (step % 500 === 499) cluster.checkLogs()
  }
  const before = cluster.committed
  cluster.heal(300)
  assert.ok(cluster.committed > before, `nothing commits after healing, SEED=${options.seed}`)
  cluster.checkLogs()
  cluster.checkConverged()
  sum.elections += cluster.elections
  sum.reads += cluster.readsConfirmed
  sum.snapshots += cluster.snapshots
  sum.committed += cluster.committed
  sum.changes += cluster.changes
}

const shapes: readonly { name: string; runs: number; options: Omit<LossyClusterOptions, 'seed'> }[] = [
  { name: 'one member', runs: 20, options: { voters: 1 } },
  { name: 'three members', runs: 120, options: { voters: 3 } },
  {
    name: 'three members without PreVote and CheckQuorum',
    runs: 60,
    options: { voters: 3, preVote: false, checkQuorum: false },
  },
  { name: 'three members and a learner', runs: 30, options: { voters: 3, learners: 1 } },
  {
    name: 'three members with tiny bounds',
    runs: 40,
    options: {
      voters: 3,
      limits: { inflightMessagesMax: 2, appendBytesMax: 40, committedBytesMax: 40, uncommittedBytesMax: 200 },
    },
  },
  { name: 'five members that come and go', runs: 60, options: { voters: 3, learners: 2, membershipChanges: true } },
  { name: 'five members', runs: 40, options: { voters: 5 } },
]

for (const { name, runs, options } of shapes) {
  test(`${name} on a lossy network stay safe and recover`, (context) => {
    const sum: Sum = { elections: 0, reads: 0, snapshots: 0, committed: 0, changes: 0 }
    for (const seed of seeds(runs)) run({ ...options, seed }, sum)
    context.diagnostic(`${JSON.stringify(sum)}; replay one run with SEED=<n>`)
    // The runs must have been worth something.
    assert.ok(sum.elections > 0 && sum.reads > 0 && sum.committed > 0)
    if (options.voters > 1) assert.ok(sum.snapshots > 0)
    if (options.membershipChanges === true) assert.ok(sum.changes > 0)
  })
}

test('equal seeds give equal runs', () => {
  const trace = (): string => {
    const cluster = new LossyCluster({ voters: 3, seed: 7 })
    for (let step = 0; step < 2_000; step++) cluster.step({ faults: true })
    const statuses = cluster.up.map((member) => ({ ...member.core.status(), progress: undefined }))
    return JSON.stringify(statuses, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
  }
  assert.equal(trace(), trace())
})
