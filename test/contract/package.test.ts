/** What a user gets who installs the packed package: types that compile, a library that runs as the README shows, the command. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Outcome, runCommand } from '../compat/client-program.ts'
import { repositoryRoot } from '../repository.ts'

const root = repositoryRoot()
const limitMs = 4 * 60_000
const home = mkdtempSync(join(tmpdir(), 'trireme-package-'))

const run = async (command: string, args: readonly string[], directory = home): Promise<Outcome> => {
  const outcome = await runCommand(command, args, { directory, limitMs })
  assert.ok(!outcome.failed, `${command} ${args.join(' ')}\n${outcome.output}`)
  return outcome
}

before(async () => {
  await run('npm', ['pack', '--pack-destination', home], root)
  const tarball = readdirSync(home).find((file) => file.endsWith('.tgz'))
  assert.ok(tarball !== undefined)
  writeFileSync(join(home, 'package.json'), '{"name":"user","private":true,"type":"module"}')
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', `./${tarball}`])
  mkdirSync(join(home, 'node_modules/@kubernetes'), { recursive: true })
  symlinkSync(
    join(root, 'node_modules/@kubernetes/client-node'),
    join(home, 'node_modules/@kubernetes/client-node'),
    'dir',
  )
})

after(() => rmSync(home, { recursive: true, force: true }))

test('the library example of the README runs and prints what the README says', async () => {
  const example = /```js\n(.*?)```/s.exec(readFileSync(join(root, 'README.md'), 'utf8'))?.[1]
  assert.ok(example !== undefined, 'the README has no example in JavaScript')
  writeFileSync(join(home, 'example.js'), example)
  const { output } = await run(process.execPath, ['example.js'])
  const promised = [...example.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map(([, text]) => text)
  assert.ok(promised.length > 0, 'the example says nothing of its output')
  assert.deepEqual(output.trim().split('\n'), promised)
})

test('the types of the package compile strictly', async () => {
  const program = `import { startControlPlane, type ControlPlane, StorageError, OptionsError, ListenError } from 'trireme'
const plane: ControlPlane = await startControlPlane({ httpPort: 0, replicas: 1 })
const address: string | undefined = plane.http
console.log(address, plane.server, plane.kubeconfig, plane.startMilliseconds, StorageError, OptionsError, ListenError)
await plane.stop()
`
  writeFileSync(join(home, 'program.ts'), program)
  const node = ['--typeRoots', join(root, 'node_modules/@types'), '--types', 'node']
  const flags = ['--ignoreConfig', '--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2023', ...node]
  await run(join(root, 'node_modules/.bin/tsc'), [...flags, 'program.ts'])
})

test('the command of the package says its version', async () => {
  const { output } = await run(join(home, 'node_modules/.bin/trireme'), ['--version'])
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  assert.equal(output.trim(), version)
})
