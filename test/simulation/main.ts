/**
 * `npm run sim -- --points 10000`: goes through that many crash points, from `--from` (a seed, default 1) on.
 * `npm run sim -- --seed N`: one run again. `--sweep`: every change on disk of one small run, one after the other.
 */
import { parseArgs } from 'node:util'
import { live, type LifeResult } from './life.ts'

const { values } = parseArgs({
  options: {
    points: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    'points-per-seed': { type: 'string', default: '10' },
    sweep: { type: 'boolean', default: false },
  },
})
const pointsPerSeed = Number(values['points-per-seed'])

if (values.seed !== undefined) {
  process.stdout.write(
    `${JSON.stringify(await live({ seed: Number(values.seed), points: pointsPerSeed }), undefined, 2)}\n`,
  )
} else {
  await many(Number(values.points), Number(values.from))
}

async function many(points: number, from: number): Promise<void> {
  const begun = performance.now()
  const sums = { points: 0, acknowledged: 0, unknown: 0, reads: 0, watched: 0, changes: 0 }
  const marks: Record<string, number> = {}
  let reported = begun
  let seed = from
  for (; sums.points < points; seed++) {
    const options = values.sweep ? { seed: from, firstChange: seed - from + 1 } : { seed }
    const result: LifeResult = await live({ ...options, points: pointsPerSeed })
    for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += result[key]
    for (const [name, count] of Object.entries(result.marks)) marks[name] = (marks[name] ?? 0) + count
    const now = performance.now()
    if (now - reported < 10_000 && sums.points < points) continue
    reported = now
    const seconds = (now - begun) / 1000
    const rate = (sums.points / seconds).toFixed(0)
    process.stdout.write(
      `seeds ${from}..${seed}, ${seconds.toFixed(0)} s, ${rate} points/s: ${JSON.stringify({ ...sums, ...marks })}\n`,
    )
  }
}
