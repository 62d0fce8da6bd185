import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repositoryRoot } from '../repository.ts'
import type { Mutation } from './mutations.ts'

export interface Finding {
  readonly caught: boolean
  readonly seconds: number
  /** The first words of what was noticed. */
  readonly by: string
}

const folders = ['raft', 'storage', 'test/raft', 'test/storage', 'test/simulation']
/** A broken copy may run wild. */
const runTimeoutMs = 60_000
const heapMegabytes = 512

/** A copy of the sources to be broken, one mutation at a time. */
export class Laboratory {
  readonly #root = repositoryRoot()
  readonly #directory = mkdtempSync(join(tmpdir(), 'trireme-mutation-'))

  constructor() {
    for (const folder of folders) cpSync(join(this.#root, folder), this.#path(folder), { recursive: true })
    for (const file of ['package.json', 'tsconfig.json', 'test/repository.ts'])
      cpSync(join(this.#root, file), this.#path(file))
    symlinkSync(join(this.#root, 'node_modules'), this.#path('node_modules'))
  }

  /** @throws when the text is not there exactly once, or the copy does not build. */
  async try(mutation: Mutation): Promise<Finding> {
    const path = this.#path(mutation.file)
    const source = readFileSync(path, 'utf8')
    const count = source.split(mutation.text).length - 1
    if (count !== 1) throw new Error(`${mutation.file} holds ${count} times, not once: ${mutation.text}`)
    writeFileSync(
      path,
      source.replace(mutation.text, () => mutation.replacement),
    )
    try {
      await this.#build()
      return await this.#run(mutation.caughtBy)
    } finally {
      writeFileSync(path, source)
    }
  }

  /** What catches mutations, on the sources as they are: must find nothing. */
  async tryUnchanged(caughtBy: Mutation['caughtBy']): Promise<Finding> {
    await this.#build()
    return this.#run(caughtBy)
  }

  close(): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }

  #path(name: string): string {
    return join(this.#directory, name)
  }

  async #build(): Promise<void> {
    const compiler = join(this.#root, 'node_modules/typescript/bin/tsc')
    const { code, output } = await execute(
      [compiler, '-p', this.#directory, '--noCheck', '--declaration', 'false'],
      this.#directory,
    )
    if (code !== 0) throw new Error(`the copy does not build: ${output}`)
  }

  async #run(caughtBy: Mutation['caughtBy']): Promise<Finding> {
    const command =
      'test' in caughtBy
        ? ['--test', `dist/${caughtBy.test}`]
        : ['dist/test/simulation/main.js', '--from', `${caughtBy.fromSeed}`, '--points', `${caughtBy.points}`]
    const begun = performance.now()
    const { code, output } = await execute(command, this.#directory)
    const seconds = (performance.now() - begun) / 1000
    if (code === 0) return { caught: false, seconds, by: '' }
    const lines = output.split('\n')
    const by = lines.find((line) => line.startsWith('FOUND ') || line.startsWith('not ok')) ?? ''
    // A copy that fails without a finding has not been tested at all.
    if (by === '') throw new Error(`no finding, but exit code ${code}: ${output.slice(-2000)}`)
    return { caught: true, seconds, by: by.replace('FOUND', '').trim().slice(0, 160) }
  }
}

function execute(command: readonly string[], cwd: string): Promise<{ readonly code: number; readonly output: string }> {
  // Set by a test runner above us; a nested one would report to it and not to us.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const options = { cwd, env, timeout: runTimeoutMs, killSignal: 'SIGKILL' as const, maxBuffer: 64 * 1024 * 1024 }
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [`--max-old-space-size=${heapMegabytes}`, ...command],
      options,
      (error, stdout, stderr) => {
        if (error !== null && typeof error.code !== 'number') reject(error)
        else resolve({ code: typeof error?.code === 'number' ? error.code : 0, output: `${stdout}\n${stderr}` })
      },
    )
  })
}
