/** The Go modules that client-go/go.mod names: for its program, and for what else they bring. */
import { join } from 'node:path'
import { findProgram } from '../external.ts'
import { repositoryRoot } from '../repository.ts'
import { type Outcome, runCommand } from './client-program.ts'

export const go = findProgram('go')
export const installGo = 'install Go 1.26 or newer as go'
export const goDirectory = join(repositoryRoot(), 'test/compat/client-go')

const limitMs = 8 * 60_000

/** In that directory, with the toolchain and the versions that are there. Fails where go is missing. */
export function runGo(args: readonly string[]): Promise<Outcome> {
  const variables = { GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly' }
  return runCommand(go ?? 'go', args, { directory: goDirectory, variables, limitMs })
}
