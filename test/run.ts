/**
 * Runs the tests: `npm test`, or `npm test -- storage wal` for the files whose path holds one of the words.
 *
 * Every file runs in its own process, slow ones first. At the end stands what ran against which external program, and
 * what was skipped and why: tests that need one report through test/external.ts.
 */
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { externalReportVariable, type ExternalUse } from './external.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const words = process.argv.slice(2)

/** Folders whose files take longest start first, so that the last core is not left with one long file. */
const slowFirst = ['compat/', 'chaos/', 'simulation/', 'contract/']

const rank = (file: string): number => {
  const position = slowFirst.findIndex((folder) => file.startsWith(folder))
  return position === -1 ? slowFirst.length : position
}

const files = readdirSync(here, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.js') && (words.length === 0 || words.some((word) => file.includes(word))))
  .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
  .map((file) => join(here, file))

if (files.length === 0) {
  process.stderr.write(`no test file holds ${words.join(' or ')} in its path\n`)
  process.exit(1)
}

const reports = mkdtempSync(join(tmpdir(), 'trireme-test-'))
process.env[externalReportVariable] = reports

let failed = 0
const stream = run({ files, concurrency: 2, timeout: 15 * 60_000 })
stream.on('test:fail', () => {
  failed += 1
})
const report = stream.pipe(new spec())
report.pipe(process.stdout, { end: false })
report.on('end', () => {
  process.stdout.write(externalSummary(reports))
  rmSync(reports, { recursive: true, force: true })
  process.exitCode = failed === 0 ? 0 : 1
})

function externalSummary(directory: string): string {
  const uses = readdirSync(directory)
    .flatMap((file) => readFileSync(join(directory, file), 'utf8').split('\n'))
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ExternalUse)
  const programs = new Map<string, { ran: number; skipped: number; reasons: Set<string>; version: string }>()
  for (const use of uses) {
    const entry = programs.get(use.program) ?? { ran: 0, skipped: 0, reasons: new Set<string>(), version: '' }
    if (use.skipped === undefined) entry.ran += 1
    else {
      entry.skipped += 1
      entry.reasons.add(use.skipped)
    }
    if (use.version !== undefined) entry.version = use.version
    programs.set(use.program, entry)
  }
  const lines = ['', 'External clients and peers:']
  for (const [program, entry] of [...programs].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const what = `${program}${entry.version === '' ? '' : ` ${entry.version}`}`.padEnd(28)
    const skipped = entry.skipped === 0 ? '' : `, ${entry.skipped} skipped: ${[...entry.reasons].join('; ')}`
    lines.push(`  ${what} ${entry.ran} tests ran${skipped}`)
  }
  if (programs.size === 0) lines.push('  none in this run')
  return `${lines.join('\n')}\n`
}
