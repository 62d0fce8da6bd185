/** Tests against programs that are not part of this package: found on PATH, or skipped with the reason said. */
import { accessSync, appendFileSync, constants, realpathSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import test, { type TestContext } from 'node:test'

/** Names a directory; each test process appends its lines to a file of its own there (see test/run.ts). */
export const externalReportVariable = 'TRIREME_EXTERNAL_REPORT'

export interface ExternalUse {
  readonly program: string
  readonly test: string
  readonly version?: string
  readonly skipped?: string
}

/** Absolute path of a program on PATH, or beside another program that is (`kubectl.1.27` lies beside `kubectl`). */
export function findProgram(name: string, beside?: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  for (const folder of folders) {
    const path = join(folder, name)
    if (executable(path)) return path
  }
  if (beside === undefined) return undefined
  const neighbour = findProgram(beside)
  if (neighbour === undefined) return undefined
  const path = join(dirname(realpathSync(neighbour)), name)
  return executable(path) ? path : undefined
}

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * A test that needs an external program. Without it the test is skipped, and both the test's own line and the summary
 * of the run say what is missing and how to get it.
 */
export function testWith(
  program: {
    readonly name: string
    readonly path: string | undefined
    readonly version?: string
    readonly install: string
    /** Why a program that is there is of no use. */
    readonly unusable?: string
  },
  name: string,
  run: (path: string, context: TestContext) => Promise<void>,
): void {
  const { path, version } = program
  const skipped = path === undefined ? `${program.name} is not on PATH (${program.install})` : program.unusable
  report({
    program: program.name,
    test: name,
    ...(version !== undefined && { version }),
    ...(skipped !== undefined && { skipped }),
  })
  test(name, { skip: skipped ?? false }, (context) => run(path as string, context))
}

/** For the summary at the end of a run; without one, nothing. */
export function report(use: ExternalUse): void {
  const directory = process.env[externalReportVariable]
  if (directory !== undefined) appendFileSync(join(directory, `${process.pid}.jsonl`), `${JSON.stringify(use)}\n`)
}
