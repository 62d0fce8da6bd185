/** Client programs in other languages: each prints "ok NAME" or "failed NAME: why" for its steps; here they become tests. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before } from 'node:test'
import { type ControlPlaneProcess, startProcess } from '../control-plane.ts'
import { testWith } from '../external.ts'

/** A client program that has not ended by then is killed; what it had not yet said fails. */
const runLimitMs = 4 * 60_000

export interface Outcome {
  readonly failed: boolean
  readonly output: string
}

/** Never rejects: `failed` when the command is missing, killed or does not exit 0. */
export function runCommand(
  command: string,
  args: readonly string[],
  options: { readonly directory: string; readonly limitMs: number; readonly variables?: Record<string, string> },
): Promise<Outcome> {
  const { directory, limitMs, variables } = options
  return new Promise((resolve) => {
    execFile(
      command,
      args,
      { cwd: directory, timeout: limitMs, env: { ...process.env, ...variables } },
      (error, stdout, stderr) =>
        resolve({ failed: error !== null, output: `${stdout}${stderr}${stderr === '' && error ? error.message : ''}` }),
    )
  })
}

export interface ClientProgram {
  /** As in testWith. */
  readonly program: Parameters<typeof testWith>[0]
  /** Where it runs. */
  readonly directory: string
  /** The names it will print, in order. */
  readonly steps: readonly string[]
  /** Once, before the first step: what to run, less the path of the kubeconfig, which is the last argument. */
  prepare(): Promise<{ readonly command: string; readonly args: readonly string[] }>
}

/** One control plane for the whole program, one test per step. */
export function testSteps(client: ClientProgram): void {
  const { program, steps } = client
  assert.ok(steps.length > 0, `no steps in the program of ${program.name}`)
  let plane: ControlPlaneProcess | undefined
  let lines: readonly string[] = []

  before(async () => {
    if (program.path === undefined || program.unusable !== undefined) return
    const { command, args } = await client.prepare()
    plane = await startProcess()
    const outcome = await runCommand(command, [...args, plane.kubeconfig], {
      directory: client.directory,
      limitMs: runLimitMs,
    })
    lines = outcome.output.split('\n')
  })

  after(async () => {
    if (plane !== undefined) assert.equal(await plane.stop(), 0)
  })

  for (const step of steps) {
    testWith(program, `${program.name}: ${step}`, async () => {
      const line = lines.find((one) => one === `ok ${step}` || one.startsWith(`failed ${step}:`))
      assert.equal(line, `ok ${step}`, lines.join('\n'))
    })
  }
}
