/** The rules of the tree as tests: who may import whom, and who may touch clock, randomness, timers, disk and network. */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, normalize } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'

const root = dirname(fileURLToPath(import.meta.resolve('trireme/package.json')))
const modules = ['raft', 'storage', 'schemas', 'apiserver'] as const
const topLevel = new Set([
  ...modules,
  'test',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'README.md',
  'LICENSE',
  'CHANGELOG.md',
  'node_modules',
  'dist',
])

/** Files that are allowed to reach the outside world directly; everything else gets it through Env. */
const adapters = [/-node\.ts$/, /^apiserver\/(main|http-server)\.ts$/, /^storage\/backend-level\.ts$/]

interface SourceFile {
  readonly path: string
  readonly text: string
  readonly imports: readonly string[]
}

function sources(folder: string): SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => path.endsWith('.ts') && statSync(join(root, path)).isFile())
    .map((path) => ({ path, ...parse(readFileSync(join(root, path), 'utf8')) }))
}

/** Comments go, strings stay: good enough for code that the formatter has laid out. */
export function parse(source: string): { text: string; imports: string[] } {
  const text = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[^:'"`\\])\/\/.*$/gm, '$1')
  const imports = [
    ...text.matchAll(/^\s*(?:import|export)\b[^'"`;]*?\bfrom\s+'([^']+)'/gm),
    ...text.matchAll(/^\s*import\s+'([^']+)'/gm),
    ...text.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g),
    ...text.matchAll(/\brequire\(\s*'([^']+)'\s*\)/g),
  ].map((match) => match[1] as string)
  return { text, imports }
}

const builtins = new Set(builtinModules)
const isBuiltin = (specifier: string): boolean => specifier.startsWith('node:') || builtins.has(specifier)
const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

const allowedPackages: Record<(typeof modules)[number], readonly string[]> = {
  raft: ['protobufjs'],
  storage: ['level', 'protobufjs', 'sorted-btree'],
  schemas: ['protobufjs', 'js-yaml'],
  apiserver: ['fastify', 'commander', 'yaml', '@peculiar/x509', 'reflect-metadata'],
}

function importProblem(from: string, specifier: string): string | undefined {
  const module = from.split('/')[0] as (typeof modules)[number]
  if (isBuiltin(specifier)) {
    return from.startsWith('raft/core/') ? 'raft/core imports nothing from outside' : undefined
  }
  if (!specifier.startsWith('.')) {
    if (specifier.startsWith('#data/')) return undefined
    if (from.startsWith('raft/core/')) return 'raft/core imports nothing from outside'
    return allowedPackages[module].includes(packageOf(specifier))
      ? undefined
      : `${module} may not use ${packageOf(specifier)}`
  }
  const target = normalize(join(dirname(from), specifier))
  const into = target.split('/')[0]
  if (from.startsWith('raft/core/')) {
    return target.startsWith('raft/core/') || target === 'raft/types.ts' || target === 'raft/limits.ts'
      ? undefined
      : 'raft/core imports nothing but raft/types.ts and raft/limits.ts'
  }
  if (into === module) return undefined
  if (module === 'storage' && target === 'raft/index.ts') return undefined
  if (module === 'apiserver' && (target === 'storage/index.ts' || target === 'schemas/index.ts')) return undefined
  // The one place that wires everything, the real clock and disk included.
  if (from === 'apiserver/compose.ts' && (target === 'raft/index.ts' || target === 'raft/env-node.ts')) return undefined
  return `${module} may not import ${target}`
}

const bannedText: readonly [pattern: RegExp, what: string][] = [
  [/\bDate\.now\b|\bnew Date\(\s*\)|\bDate\(\s*\)/, 'the wall clock'],
  [/\bperformance\b|\bprocess\.hrtime\b|\bprocess\.uptime\b/, 'a clock'],
  [/\bMath\.random\b|\brandom(?:Bytes|UUID|Int|FillSync|Fill)\b|\bgetRandomValues\b/, 'randomness'],
  [/\b(?:set|clear)(?:Timeout|Interval|Immediate)\b|\bAbortSignal\.timeout\b/, 'timers'],
]
const bannedModules = new Set(
  [
    'fs',
    'fs/promises',
    'net',
    'tls',
    'http',
    'https',
    'http2',
    'dgram',
    'dns',
    'child_process',
    'worker_threads',
    'timers',
    'timers/promises',
    'perf_hooks',
    'cluster',
  ].flatMap((name) => [name, `node:${name}`]),
)

function banProblems(file: { readonly text: string; readonly imports: readonly string[] }): string[] {
  const found = bannedText.filter(([pattern]) => pattern.test(file.text)).map(([, what]) => what)
  const typeOnly = file.text.replace(/^\s*import type\b[^;]*?from\s+'[^']+'/gm, '')
  const runtime = new Set(parse(typeOnly).imports)
  for (const specifier of file.imports) {
    if (bannedModules.has(specifier) && runtime.has(specifier)) found.push(specifier)
  }
  return found
}

test('the top level holds only what belongs there', () => {
  const strangers = readdirSync(root).filter((name) => !name.startsWith('.') && !topLevel.has(name))
  assert.deepEqual(strangers, [])
})

test('modules import only what the design lets them', () => {
  const problems = modules
    .flatMap(sources)
    .flatMap((file) =>
      file.imports.map((specifier) => ({ file: file.path, specifier, why: importProblem(file.path, specifier) })),
    )
    .filter(({ why }) => why !== undefined)
    .map(({ file, specifier, why }) => `${file}: '${specifier}': ${why}`)
  assert.deepEqual(problems, [])
})

test('only named adapters use clock, randomness, timers, disk and network', () => {
  const problems = modules
    .flatMap(sources)
    .filter((file) => !adapters.some((adapter) => adapter.test(file.path)))
    .flatMap((file) => banProblems(file).map((what) => `${file.path}: ${what}`))
  assert.deepEqual(problems, [])
})

test('no file is called after nothing', () => {
  const names = [...modules, 'test']
    .flatMap(sources)
    .filter((file) => /(^|\/)(utils?|helpers?|managers?|misc|common)\.ts$/.test(file.path))
  assert.deepEqual(
    names.map((file) => file.path),
    [],
  )
})

test('the API spreads no list into a push: what a client sends may be longer than the stack', () => {
  const problems = sources('apiserver').filter((file) => /\.push\(\s*\.\.\./.test(file.text))
  assert.deepEqual(
    problems.map((file) => file.path),
    [],
  )
})

test('no module keeps mutable state at top level', () => {
  const problems = modules
    .flatMap(sources)
    .flatMap((file) =>
      [...file.text.matchAll(/^(?:export )?let (\w+)/gm)].map((match) => `${file.path}: let ${match[1]}`),
    )
  assert.deepEqual(problems, [])
})

test('the rules themselves catch what they are for', () => {
  assert.equal(importProblem('raft/core/raft.ts', 'node:fs'), 'raft/core imports nothing from outside')
  assert.equal(importProblem('storage/x.ts', '../raft/core/raft.ts'), 'storage may not import raft/core/raft.ts')
  assert.equal(importProblem('apiserver/x.ts', '../raft/index.ts'), 'apiserver may not import raft/index.ts')
  assert.equal(importProblem('schemas/x.ts', 'fastify'), 'schemas may not use fastify')
  assert.equal(importProblem('apiserver/compose.ts', '../raft/index.ts'), undefined)
  for (const source of [
    'const a = Date.now()',
    'const a = new Date()',
    'performance.now()',
    'Math.random()',
    'crypto.randomUUID()',
    'setTimeout(f, 1)',
    'setImmediate(f)',
    "import { readFile } from 'fs/promises'",
    "import { x } from 'node:timers'",
    "import http2 from 'node:http2'",
    "const dns = await import('node:dns')",
    'AbortSignal.timeout(5)',
  ]) {
    assert.notDeepEqual(banProblems(parse(source)), [], source)
  }
  assert.deepEqual(
    banProblems(parse("import type { Server } from 'node:http2'\n// Date.now()\nconst d = new Date(5)")),
    [],
  )
})
