/** `npm run sim`: simulated clusters through crash points; see --help and README.md beside this file. */
import { Command, InvalidArgumentError } from 'commander'
import { LifeError, live, type LifeResult } from './life.ts'

interface Flags {
  readonly points: number
  readonly from: number
  readonly seed?: number
  readonly pointsPerSeed: number
  readonly sweep: boolean
}

const progressMs = 10_000

const sums = ['points', 'acknowledged', 'unknown', 'reads', 'watched', 'changes'] as const
type Sums = Record<(typeof sums)[number], number>

function count(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('it must be a whole number from 1 on.')
  return Number(text)
}

const command = new Command('npm run sim --')
  .description('crash simulated clusters, disks and networks; every run can be played again from its seed')
  .option('--points <count>', 'crash points to go through', count, 1000)
  .option('--from <seed>', 'the first seed', count, 1)
  .option('--seed <seed>', 'only this one, and print all of its result', count)
  .option('--points-per-seed <count>', 'crash points of one seed', count, 10)
  .option('--sweep', 'one seed (--from), with power lost at each change of its disks in turn', false)
  .allowExcessArguments(false)
  .parse()

const flags: Flags = command.opts()

try {
  if (flags.seed === undefined) await many(flags)
  else print(JSON.stringify(await live({ seed: flags.seed, points: flags.pointsPerSeed }), undefined, 2))
} catch (error) {
  if (!(error instanceof LifeError)) throw error
  print(`FOUND    ${error.message}`)
  print(`replay   npm run sim -- --seed ${error.seed} --points-per-seed ${flags.pointsPerSeed}`)
  process.exitCode = 1
}

async function many({ points, from, pointsPerSeed, sweep }: Flags): Promise<void> {
  const begun = performance.now()
  const total: Sums = { points: 0, acknowledged: 0, unknown: 0, reads: 0, watched: 0, changes: 0 }
  const marks: Record<string, number> = {}
  let reported = begun
  let seed = from
  for (; total.points < points; seed++) {
    const which = sweep ? { seed: from, firstChange: seed - from + 1 } : { seed }
    const result: LifeResult = await live({ ...which, points: pointsPerSeed })
    for (const name of sums) total[name] += result[name]
    for (const [name, times] of Object.entries(result.marks)) marks[name] = (marks[name] ?? 0) + times
    if (performance.now() - reported < progressMs) continue
    reported = performance.now()
    print(`${String(total.points).padStart(8)} of ${points} crash points, ${secondsSince(begun)} s`)
  }
  const seeds = sweep ? `seed ${from}, changes 1 to ${seed - from}` : `seeds ${from} to ${seed - 1}`
  print(`passed: ${total.points} crash points without a finding in ${secondsSince(begun)} s (${seeds})`)
  for (const [name, times] of Object.entries({ ...total, ...marks })) {
    if (name !== 'points') print(`  ${words(name).padEnd(20)}${String(times).padStart(9)}`)
  }
}

function secondsSince(begun: number): string {
  return ((performance.now() - begun) / 1000).toFixed(0)
}

/** "recoveryCrashes" -> "recovery crashes" */
function words(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
