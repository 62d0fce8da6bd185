/**
 * The client library of controllers, unmodified: typed clients in JSON and protobuf, shared and dynamic informers, pages,
 * retry on conflict, leader election.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { testSteps } from './client-program.ts'
import { go, goDirectory, installGo, runGo } from './go-modules.ts'

const build = mkdtempSync(join(tmpdir(), 'trireme-client-go-'))

after(() => rmSync(build, { recursive: true, force: true }))

/** The newest client-go wants a recent Go, and its modules a way to a module proxy (or to be on this machine already). */
async function hindrance(): Promise<string | undefined> {
  if (go === undefined) return undefined
  const download = await runGo(['mod', 'download'])
  return download.failed ? `its modules cannot be had: ${download.output.trim().split('\n').at(-1)}` : undefined
}

const unusable = await hindrance()

testSteps({
  program: {
    name: 'client-go',
    path: go,
    version: /k8s\.io\/client-go (\S+)/.exec(readFileSync(join(goDirectory, 'go.mod'), 'utf8'))?.[1] ?? '',
    install: installGo,
    ...(unusable !== undefined && { unusable }),
  },
  directory: goDirectory,
  steps: [...readFileSync(join(goDirectory, 'main.go'), 'utf8').matchAll(/^\t\t\{"([^"]+)",/gm)].map(
    ([, name]) => name ?? '',
  ),
  async prepare() {
    const binary = join(build, 'client')
    const built = await runGo(['build', '-o', binary, '.'])
    assert.ok(!built.failed, built.output)
    return { command: binary, args: [] }
  },
})
