/** `npm run mutations`: breaks a copy of the sources in each known way, and expects every one to be caught. */
import { Laboratory } from './laboratory.ts'
import { mutations } from './mutations.ts'

const words = process.argv.slice(2)
const laboratory = new Laboratory()
try {
  for (const mutation of mutations) {
    if (words.length > 0 && !words.some((word) => mutation.name.includes(word))) continue
    const { caught, seconds, by } = await laboratory.try(mutation)
    if (!caught) process.exitCode = 1
    const verdict = caught ? 'caught' : 'SURVIVED'
    process.stdout.write(`${verdict.padEnd(9)}${mutation.name.padEnd(38)}${seconds.toFixed(1).padStart(6)} s  ${by}\n`)
  }
} finally {
  laboratory.close()
}
