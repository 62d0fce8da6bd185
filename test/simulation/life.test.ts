import assert from 'node:assert/strict'
import test from 'node:test'
import { live } from './life.ts'

const seed = Number(process.env['SEED'] ?? 1)

test(`clusters go through crash points without a contradiction (from seed ${seed})`, async (context) => {
  const sums = { points: 0, acknowledged: 0, unknown: 0, reads: 0, watched: 0 }
  const marks = new Map<string, number>()
  for (let i = 0; sums.points < 500; i++) {
    const result = await live({ seed: seed + i, points: 10 })
    for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += result[key]
    for (const [name, count] of Object.entries(result.marks)) marks.set(name, (marks.get(name) ?? 0) + count)
  }
  context.diagnostic(JSON.stringify({ ...sums, ...Object.fromEntries(marks) }))
  // A run in which nothing happens proves nothing.
  assert.ok(sums.acknowledged > 1000 && sums.unknown > 20 && sums.reads > 500 && sums.watched > 1000)
  for (const [name, count] of marks) assert.ok(count > 0, `${name} did not happen once`)
})

for (const [name, parameters] of [
  ['one replica alone', { layout: 'together', replicas: 1 }],
  ['three replicas of one process', { layout: 'together', replicas: 3 }],
  ['three replicas on machines of their own', { layout: 'apart', replicas: 3 }],
] as const) {
  test(`${name}: a loss of power at each of the first changes on disk`, async () => {
    for (let firstChange = 1; firstChange <= 60; firstChange++) {
      await live({ seed, points: 1, firstChange, parameters })
    }
  })
}

test('the same seed gives the same trace, another seed another', async () => {
  const options = { points: 10, parameters: { layout: 'apart', replicas: 3 } } as const
  const once = await live({ ...options, seed })
  assert.deepEqual(await live({ ...options, seed }), once)
  assert.notEqual((await live({ ...options, seed: seed + 1 })).hash, once.hash)
})
