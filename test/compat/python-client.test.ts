/** The official Python client, unmodified: typed and dynamic objects, pages, watches, errors. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { findProgram } from '../external.ts'
import { repositoryRoot } from '../repository.ts'
import { runCommand, testSteps } from './client-program.ts'

const directory = join(repositoryRoot(), 'test/compat/python-client')
const installLimitMs = 5 * 60_000
const requirements = readFileSync(join(directory, 'requirements.txt'), 'utf8')
const environment = mkdtempSync(join(tmpdir(), 'trireme-python-'))
const python = findProgram('python3')

after(() => rmSync(environment, { recursive: true, force: true }))

/** An environment of its own: nothing of this machine's Python is changed. */
async function hindrance(): Promise<string | undefined> {
  if (python === undefined) return undefined
  const options = { directory, limitMs: installLimitMs }
  const made = await runCommand(python, ['-m', 'venv', environment], options)
  if (made.failed) return `python3 cannot make a virtual environment: ${made.output.trim().split('\n').at(-1)}`
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', 'requirements.txt']
  const installed = await runCommand(join(environment, 'bin/python'), pip, options)
  return installed.failed ? `the client cannot be installed: ${installed.output.trim().split('\n').at(-1)}` : undefined
}

const unusable = await hindrance()

testSteps({
  program: {
    name: 'Python client',
    path: python,
    version: /^kubernetes==(\S+)/m.exec(requirements)?.[1] ?? '',
    install: 'install python3 with venv',
    ...(unusable !== undefined && { unusable }),
  },
  directory,
  steps: [...readFileSync(join(directory, 'client.py'), 'utf8').matchAll(/^@step\("([^"]+)"\)/gm)].map(
    ([, name]) => name ?? '',
  ),
  prepare: () => Promise.resolve({ command: join(environment, 'bin/python'), args: ['client.py'] }),
})
