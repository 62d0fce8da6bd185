/**
 * The client library of controllers, unmodified: typed clients in JSON and protobuf, shared and dynamic informers, pages,
 * retry on conflict, leader election. The program beside this file does the work; here each of its steps is a test.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { type ControlPlaneProcess, startProcess } from '../control-plane.ts'
import { findProgram, testWith } from '../external.ts'
import { repositoryRoot } from '../repository.ts'

const sources = join(repositoryRoot(), 'test/compat/client-go')
const buildLimitMs = 8 * 60_000
const runLimitMs = 4 * 60_000

interface Outcome {
  readonly failed: boolean
  readonly output: string
}

function run(command: string, args: readonly string[], timeout: number): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(
      command,
      args,
      { cwd: sources, timeout, env: { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly' } },
      (error, stdout, stderr) => resolve({ failed: error !== null, output: `${stdout}${stderr}` }),
    )
  })
}

const go = findProgram('go')

/** The newest client-go wants a recent Go, and its modules a way to a module proxy (or to be on this machine already). */
async function hindrance(): Promise<string | undefined> {
  if (go === undefined) return undefined
  const download = await run(go, ['mod', 'download'], buildLimitMs)
  if (!download.failed) return undefined
  return `its modules cannot be had: ${download.output.trim().split('\n').at(-1)}`
}

const unusable = await hindrance()
const program = {
  name: 'client-go',
  path: go,
  version: /k8s\.io\/client-go (\S+)/.exec(readFileSync(join(sources, 'go.mod'), 'utf8'))?.[1] ?? '',
  install: 'install Go 1.26 or newer as go',
  ...(unusable !== undefined && { unusable }),
}

const steps = [...readFileSync(join(sources, 'main.go'), 'utf8').matchAll(/^\t\t\{"([^"]+)",/gm)].map(
  ([, name]) => name as string,
)
assert.ok(steps.length > 0, 'no steps in the program')

let plane: ControlPlaneProcess | undefined
let work: string
let lines: readonly string[] = []

before(async () => {
  if (go === undefined || unusable !== undefined) return
  work = mkdtempSync(join(tmpdir(), 'trireme-client-go-'))
  const binary = join(work, 'client')
  const built = await run(go, ['build', '-o', binary, '.'], buildLimitMs)
  assert.ok(!built.failed, built.output)
  plane = await startProcess()
  lines = (await run(binary, [plane.kubeconfig], runLimitMs)).output.split('\n')
})

after(async () => {
  if (plane === undefined) return
  assert.equal(await plane.stop(), 0)
  rmSync(work, { recursive: true, force: true })
})

for (const step of steps) {
  testWith(program, `client-go: ${step}`, async () => {
    const line = lines.find((one) => one === `ok ${step}` || one.startsWith(`failed ${step}:`))
    assert.equal(line, `ok ${step}`, line === undefined ? lines.join('\n') : undefined)
  })
}
