/** `trireme up` as its user sees it: flags, refusals, readiness, signals, and what it leaves on disk. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { connect as connectHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { parse } from 'yaml'
import { enabledControllers } from '../../apiserver/controllers/controller-names.ts'
import { type Flags, OptionsError, settingsOfFlags } from '../../apiserver/options.ts'
import { adminAgent, call, configMap, startProcess } from '../control-plane.ts'

const command = fileURLToPath(new URL('../../apiserver/main.js', import.meta.url))

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'trireme-command-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** Everything below a directory that a start could change: names, kinds, modes, times, sizes and contents. */
function hashOf(root: string): string {
  const hash = createHash('sha256')
  const walk = (path: string): void => {
    const { mode, mtimeMs, ctimeMs, size, ino } = lstatSync(path)
    hash.update(JSON.stringify([path, mode, mtimeMs, ctimeMs, size, ino]))
    if (lstatSync(path).isDirectory()) for (const name of readdirSync(path).sort()) walk(join(path, name))
    else hash.update(readFileSync(path))
  }
  if (existsSync(root)) walk(root)
  return hash.digest('hex')
}

interface Run {
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

/** Runs the command to its end. */
function run(...args: readonly string[]): Promise<Run> {
  const child = spawn(process.execPath, [command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  return ended(child)
}

function ended(child: ChildProcess): Promise<Run> {
  let output = ''
  let errors = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output, errors })))
}

/** Refused: one line on standard error that matches every pattern, nothing on standard output. */
async function refused(args: readonly string[], code: number, ...patterns: readonly RegExp[]): Promise<void> {
  const result = await run('up', ...args)
  const said = `${args.join(' ')}: ${result.code} ${result.errors}${result.output}`
  assert.deepEqual([result.code, result.output], [code, ''], said)
  assert.match(result.errors, /^trireme: [^\n]+\n$/, said)
  for (const pattern of patterns) assert.match(result.errors, pattern)
}

type Refusal = readonly [args: readonly string[], ...patterns: readonly RegExp[]]

test('a flag that cannot be is refused by its name, its value and what would do, with nothing on disk', async (t) => {
  const dataDir = join(directory(t), 'made', 'by', 'nobody')
  const cases: readonly Refusal[] = [
    [['--nope'], /--nope/, /trireme up --help/],
    [['stray'], /"stray"/],
    [['--bind-address'], /--bind-address/, /trireme up --help/],
    [['--secure-port', '70000'], /--secure-port/, /"70000"/, /from 0 to 65535/],
    [['--output', 'xml'], /--output/, /"xml"/, /text or json/],
    [['--kubeconfig', '/'], /--kubeconfig/, /is a directory/],
  ]
  for (const [args, ...patterns] of cases) await refused(['--data-dir', dataDir, ...args], 2, ...patterns)
  await refused(['--data-dir', join(command, 'below')], 2, /--data-dir/, /not a directory/)
  assert.ok(!existsSync(join(dataDir, '..', '..')))
})

test('so is every value of every flag, in one line', () => {
  const port = /from 0 to 65535/
  const cases: readonly (readonly [flags: Flags, ...patterns: readonly RegExp[]])[] = [
    [{ dataDir: '' }, /--data-dir/, /empty/],
    [{ bindAddress: 'localhost' }, /--bind-address/, /"localhost"/, /IP address/],
    [{ bindAddress: '1.2.3' }, /--bind-address/, /"1.2.3"/, /IP address/],
    [{ bindAddress: '[::1]' }, /--bind-address/, /IP address/],
    [{ securePort: '0x10' }, /--secure-port/, /"0x10"/, port],
    [{ securePort: '' }, /--secure-port/, /""/, port],
    [{ httpPort: '-1' }, /--http-port/, /"-1"/, port],
    [{ httpPort: '7001', securePort: '7001' }, /--http-port/, /--secure-port/, /7001/],
    [{ kubeconfig: '' }, /--kubeconfig/, /empty/],
    [{ replicas: '2' }, /--replicas/, /"2"/, /1 or 3/],
    [{ etcdCompactionInterval: '10ms' }, /--etcd-compaction-interval/, /10ms/, /from 1s/],
    [{ etcdCompactionInterval: 'x' }, /--etcd-compaction-interval/, /"x"/, /5m/],
    [{ requestTimeout: 'soon' }, /--request-timeout/, /"soon"/, /30s/],
    [{ requestTimeout: '0s' }, /--request-timeout/, /0ms/, /from 1s/],
    [{ logLevel: 'loud' }, /--log-level/, /"loud"/, /debug/],
    [{ controllers: 'nope-controller' }, /--controllers/, /"nope-controller"/, /namespace-controller/],
    [{ controllers: '' }, /--controllers/, /""/],
  ]
  for (const [flags, ...patterns] of cases) {
    assert.throws(
      () => settingsOfFlags(flags),
      (error: unknown) => {
        assert.ok(error instanceof OptionsError)
        for (const pattern of [/^[^\n]+$/, ...patterns]) assert.match(error.message, pattern)
        return true
      },
      JSON.stringify(flags),
    )
  }
})

test('--controllers reads as that of kube-controller-manager', () => {
  const enabled = (text: string): string[] => [
    ...enabledControllers(settingsOfFlags({ controllers: text }).controllers),
  ]
  const all = ['namespace-controller']
  for (const text of ['*', 'namespace-controller', 'namespace', '*, namespace'])
    assert.deepEqual(enabled(text), all, text)
  for (const text of ['-namespace-controller', '*,-namespace', '-namespace,namespace']) {
    assert.deepEqual(enabled(text), [], text)
  }
})

test('--help names every flag, --version is one line, no command is an error', async () => {
  const help = await run('up', '--help')
  assert.deepEqual([help.code, help.errors], [0, ''])
  const flags =
    'data-dir bind-address secure-port http-port kubeconfig replicas etcd-compaction-interval request-timeout log-level ' +
    'output controllers help'
  for (const flag of flags.split(' ')) assert.match(help.output, new RegExp(`^  --${flag} `, 'm'))
  const version = await run('--version')
  assert.deepEqual([version.code, version.errors], [0, ''])
  assert.match(version.output, /^\d+\.\d+\.\d+\n$/)
  const none = await run()
  assert.deepEqual([none.code, none.output], [2, ''])
  assert.match(none.errors, /^trireme: .*trireme up.*\n$/)
  assert.equal((await run('down')).code, 2)
})

test('a port in use is refused by its number and flag; an address of another machine too', async (t) => {
  const root = directory(t)
  const dataDir = join(root, 'data')
  const blocker = createServer().listen(0, '127.0.0.1')
  t.after(() => blocker.close())
  await new Promise((resolve) => blocker.once('listening', resolve))
  const taken = String((blocker.address() as AddressInfo).port)
  await refused(['--data-dir', dataDir, '--secure-port', taken], 1, new RegExp(taken), /in use/, /--secure-port/)
  const both = ['--data-dir', dataDir, '--secure-port', '0', '--http-port', taken]
  await refused(both, 1, new RegExp(taken), /in use/, /--http-port/)
  const elsewhere = ['--data-dir', dataDir, '--secure-port', '0', '--bind-address', '192.0.2.1']
  await refused(elsewhere, 1, /192\.0\.2\.1/, /--bind-address/)
  assert.deepEqual(readdirSync(root), [])
})

test('a data directory in use is refused and not touched, down to the times of its files', async (t) => {
  const own = await startProcess({ flags: ['--replicas', '1'] })
  t.after(() => own.stop())
  // stopped, the owner cannot change a byte itself
  process.kill(own.pid, 'SIGSTOP')
  try {
    const before = hashOf(own.dataDir)
    const args = ['--data-dir', own.dataDir, '--secure-port', '0']
    await refused([...args, '--replicas', '1'], 1, new RegExp(`process ${own.pid}`), /another directory/)
    await refused([...args, '--replicas', '3'], 1, /in use/)
    assert.equal(hashOf(own.dataDir), before)
  } finally {
    process.kill(own.pid, 'SIGCONT')
  }
})

test('another replica count, a newer format and a missing majority are refused and nothing is touched', async (t) => {
  const dataDir = join(directory(t), 'data')
  const first = await startProcess({ dataDir })
  assert.equal(await first.stop(), 0)
  const args = ['--data-dir', dataDir, '--secure-port', '0']

  const untouched = async (more: readonly string[], ...patterns: readonly RegExp[]): Promise<void> => {
    const before = hashOf(dataDir)
    await refused([...args, ...more], 1, ...patterns)
    assert.equal(hashOf(dataDir), before, more.join(' '))
  }
  await untouched(['--replicas', '1'], /made with 3 replicas/, /use 3/)

  const manifest = join(dataDir, 'MANIFEST')
  const good = readFileSync(manifest)
  writeFileSync(manifest, ofVersion(good, 99))
  await untouched([], /MANIFEST/, /format 99/)
  writeFileSync(manifest, good)
  assert.equal(await (await startProcess({ dataDir })).stop(), 0)
})

/** Magic, version byte, length, payload, checksum over all before it (storage/FORMATS.md). */
function ofVersion(frame: Buffer, version: number): Buffer {
  const changed = Buffer.from(frame)
  changed.writeUInt8(version, 4)
  changed.writeUInt32BE(crc32(changed.subarray(0, -4)), changed.length - 4)
  return changed
}

const foreign = `# mine
apiVersion: v1
kind: Config
current-context: work
clusters:
- name: work
  cluster: {server: "https://work.example"} # behind the VPN
contexts:
- context:
    cluster: work
    user: me
  name: work
users:
- name: me
  user:
    token: secret
`

test("another's kubeconfig gains a context and keeps everything else, its mode included", async (t) => {
  const root = directory(t)
  const kubeconfig = join(root, 'config')
  const dataDir = join(root, 'data')
  writeFileSync(kubeconfig, foreign)
  chmodSync(kubeconfig, 0o640)
  const flags = ['--kubeconfig', kubeconfig]
  const first = await startProcess({ dataDir, flags })
  assert.equal(first.kubeconfig, kubeconfig)
  assert.equal(await first.stop(), 0)
  const text = readFileSync(kubeconfig, 'utf8')
  assert.equal(statSync(kubeconfig).mode & 0o777, 0o640)
  for (const line of foreign.split('\n')) assert.ok(text.split('\n').includes(line), line)
  const old = parse(foreign) as Record<string, unknown[]>
  const merged = parse(text) as Record<string, { name: string }[]>
  for (const list of ['clusters', 'contexts', 'users']) {
    const others = merged[list]?.filter(({ name }) => name !== 'trireme')
    assert.deepEqual([others, (merged[list]?.length ?? 0) - (others?.length ?? 0)], [old[list], 1])
  }
  assert.equal(merged['current-context'], 'work')
  assert.ok(!existsSync(join(dataDir, 'kubeconfig')))
  assert.deepEqual(readdirSync(root).sort(), ['config', 'data'], 'no temporary file stays')

  // what a user adds to our context stays over a start on another port
  writeFileSync(kubeconfig, text.replace('    user: trireme\n', '    user: trireme\n    namespace: kube-system\n'))
  const second = await startProcess({ dataDir, flags })
  assert.equal(await second.stop(), 0)
  const again = parse(readFileSync(kubeconfig, 'utf8')) as {
    contexts: { name: string; context: object }[]
    clusters: { name: string; cluster: { server: string } }[]
  }
  const context = again.contexts.find(({ name }) => name === 'trireme')?.context
  assert.deepEqual(context, { cluster: 'trireme', user: 'trireme', namespace: 'kube-system' })
  assert.equal(again.clusters.find(({ name }) => name === 'trireme')?.cluster.server, second.server)
})

test('a file that is no kubeconfig is refused by its name and left as it is', async (t) => {
  const root = directory(t)
  const kubeconfig = join(root, 'config')
  const args = ['--data-dir', join(root, 'data'), '--secure-port', '0', '--kubeconfig', kubeconfig]
  for (const text of ['- not\n- a kubeconfig\n', 'kind: Pod\n', '\0\x01']) {
    writeFileSync(kubeconfig, text)
    const before = hashOf(root)
    await refused(args, 2, new RegExp(kubeconfig), /--kubeconfig/)
    assert.equal(hashOf(root), before, text)
  }
})

test('readiness is one block of text, or one line of JSON', async (t) => {
  const dataDir = join(directory(t), 'data')
  for (const output of ['json', 'text']) {
    const args = ['up', '--data-dir', dataDir, '--secure-port', '0', '--output', output]
    const child = spawn(process.execPath, [command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.once('data', () => child.kill('SIGINT'))
    const result = await ended(child)
    assert.deepEqual([result.code, result.errors], [0, ''])
    if (output === 'json') {
      const { server, startMilliseconds, ...rest } = JSON.parse(result.output) as Record<string, unknown>
      assert.match(String(server), /^https:\/\/127\.0\.0\.1:\d+$/)
      assert.ok(Number.isInteger(startMilliseconds))
      assert.deepEqual(rest, { http: null, kubeconfig: join(dataDir, 'kubeconfig') })
      assert.match(result.output, /^\{"server":[^\n]+\}\n$/)
    } else {
      assert.match(result.output, /ready after \d+ ms/)
      assert.match(result.output, /https:\/\/127\.0\.0\.1:\d+/)
      assert.ok(result.output.includes(`kubectl --kubeconfig ${join(dataDir, 'kubeconfig')}`))
      assert.ok(!result.output.includes('plain HTTP'))
    }
  }
})

test('keys and certificates are P-256 and private; a bind address they lack makes a new one, IPv6 too', async (t) => {
  const dataDir = join(directory(t), 'data')
  const file = (name: string): string => join(dataDir, 'pki', name)
  const serial = (name: string): string => new X509Certificate(readFileSync(file(name))).serialNumber
  const first = await startProcess({ dataDir, flags: ['--bind-address', '127.0.0.1'] })
  for (const path of [...readdirSync(join(dataDir, 'pki')).map(file), first.kubeconfig, join(dataDir, 'curlrc')]) {
    assert.equal(statSync(path).mode & 0o777, 0o600, path)
  }
  for (const name of ['ca.crt', 'apiserver.crt', 'admin.crt']) {
    const { publicKey } = new X509Certificate(readFileSync(file(name)))
    assert.deepEqual(publicKey.asymmetricKeyDetails, { namedCurve: 'prime256v1' }, name)
  }
  await first.stop()
  const [ca, server, admin] = [serial('ca.crt'), serial('apiserver.crt'), serial('admin.crt')]
  // ::1 is in every certificate: nothing is renewed, and it serves there
  const second = await startProcess({ dataDir, flags: ['--bind-address', '::1'] })
  assert.match(second.server, /^https:\/\/\[::1\]:\d+$/)
  const agent = adminAgent(second)
  assert.equal((await call(second.server, 'GET', '/readyz', { dispatcher: agent })).text, 'ok')
  await agent.close()
  await second.stop()
  assert.deepEqual([serial('ca.crt'), serial('apiserver.crt'), serial('admin.crt')], [ca, server, admin])
  // 127.0.0.2 is not
  const third = await startProcess({ dataDir, flags: ['--bind-address', '127.0.0.2'] })
  const renewed = adminAgent(third)
  assert.equal((await call(third.server, 'GET', '/readyz', { dispatcher: renewed })).text, 'ok')
  await renewed.close()
  await third.stop()
  assert.deepEqual([serial('ca.crt'), serial('admin.crt')], [ca, admin])
  assert.notEqual(serial('apiserver.crt'), server)
})

/** Sends bytes as they are; `seen()` is all that came back, `closed` whether the end was clean. */
function raw(base: string): {
  socket: Socket
  seen: () => string
  until: (pattern: RegExp) => Promise<void>
  closed: Promise<boolean>
} {
  const { hostname, port } = new URL(base)
  const socket = connect(Number(port), hostname)
  let text = ''
  const checks = new Set<() => void>()
  socket.setEncoding('utf8').on('data', (data: string) => {
    text += data
    for (const check of checks) check()
  })
  let broken = false
  socket.on('error', () => (broken = true))
  const closed = new Promise<boolean>((resolve) => socket.on('close', () => resolve(!broken)))
  const until = (pattern: RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        if (!pattern.test(text)) return
        checks.delete(check)
        resolve()
      }
      checks.add(check)
      check()
      void closed.then(() => reject(new Error(`closed before ${pattern}: ${text}`)))
    })
  return { socket, seen: () => text, until, closed }
}

test('SIGTERM: watches get their last chunk, requests in flight their answer, new ones none; exit 0', async () => {
  const plane = await startProcess()
  const { host } = new URL(plane.http)
  const watcher = raw(plane.http)
  watcher.socket.write(`GET /api/v1/namespaces?watch=true HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  await watcher.until(/kube-system/)
  const agent = adminAgent(plane)
  const client = connectHttp2(plane.server, {
    ca: readFileSync(join(plane.dataDir, 'pki', 'ca.crt')),
    cert: readFileSync(join(plane.dataDir, 'pki', 'admin.crt')),
    key: readFileSync(join(plane.dataDir, 'pki', 'admin.key')),
  })
  const stream = client.request({ ':path': '/api/v1/namespaces?watch=true' })
  const streamEnd = new Promise<number | undefined>((resolve) => {
    stream.on('end', () => resolve(stream.rstCode))
    stream.on('error', () => resolve(undefined))
  })
  await new Promise((resolve) => stream.once('data', resolve))
  stream.resume()
  // half a request: its body is still to come when the signal does
  const body = JSON.stringify(configMap('in-flight'))
  const writer = raw(plane.http)
  writer.socket.write(
    `POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n${body.slice(0, 10)}`,
  )
  await writer.until(/100 Continue/)
  const exited = plane.stop()
  assert.equal(await watcher.closed, true)
  assert.ok(watcher.seen().endsWith('\r\n0\r\n\r\n'), watcher.seen().slice(-80))
  assert.equal(await streamEnd, 0)
  await assert.rejects(call(plane.server, 'GET', '/readyz', { dispatcher: agent }))
  writer.socket.write(body.slice(10))
  await writer.until(/HTTP\/1\.1 201 Created/)
  assert.equal(await writer.closed, true)
  assert.equal(await exited, 0)
  client.destroy()
  await agent.close()
})

test('a second signal ends the process at once, with exit code 1, and the next start has what was acknowledged', async (t) => {
  const dataDir = join(directory(t), 'data')
  const plane = await startProcess({ dataDir })
  const path = '/api/v1/namespaces/default/configmaps'
  const made = await call(plane.http, 'POST', path, { body: configMap('kept') })
  assert.equal(made.status, 201)
  // a request that does not end holds the stop for its grace
  const { host } = new URL(plane.http)
  const held = raw(plane.http)
  held.socket.write(
    `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n` +
      'Expect: 100-continue\r\n\r\n',
  )
  await held.until(/100 Continue/)
  const watcher = raw(plane.http)
  watcher.socket.write(`GET /api/v1/namespaces?watch=true HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  await watcher.until(/kube-system/)
  const exited = plane.stop()
  await watcher.closed
  plane.process.kill('SIGINT')
  assert.equal(await exited, 1)
  assert.ok(existsSync(dataDir))
  const next = await startProcess({ dataDir })
  const kept = await call(next.http, 'GET', `${path}/kept`)
  assert.equal(await next.stop(), 0)
  assert.equal(kept.json.metadata.uid, made.json.metadata.uid)
})

test('one Ctrl-C that comes twice, as under npm, is one: the stop runs to its end', async (t) => {
  const dataDir = join(directory(t), 'data')
  const plane = await startProcess({ dataDir })
  const exited = plane.stop()
  plane.process.kill('SIGINT')
  assert.equal(await exited, 0)
  const locks = readdirSync(dataDir).filter((name) => name.startsWith('LOCK'))
  assert.deepEqual(locks, [], 'the data directory was let go')
})

test('a signal during the start ends it, and a reader that has gone away does not', async (t) => {
  const dataDir = join(directory(t), 'data')
  const args = [command, 'up', '--data-dir', dataDir, '--secure-port', '0', '--log-level', 'debug']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const result = ended(child)
  await new Promise((resolve) => child.stderr.once('data', resolve))
  child.kill('SIGTERM')
  const { code, output } = await result
  assert.deepEqual([code, output], [0, ''], 'readiness is not told to somebody who has left')

  const plane = await startProcess({ dataDir, flags: ['--log-level', 'debug'] })
  plane.process.stderr?.destroy()
  plane.process.stdout?.destroy()
  for (let i = 0; i < 3; i += 1) assert.equal((await call(plane.http, 'DELETE', '/api/v1/namespaces/none')).status, 404)
  assert.equal(await plane.stop(), 0)
})

test('a first start that fails late takes away what it made, and leaves a file of others alone', async (t) => {
  const root = directory(t)
  const dataDir = join(root, 'a', 'b')
  const kubeconfig = join(root, 'config', 'kube')
  mkdirSync(join(root, 'config'))
  writeFileSync(join(root, 'config', 'note'), 'x')
  // a directory that vanishes between the look at it and the last step: the kubeconfig cannot be written
  const args = [command, 'up', '--data-dir', dataDir, '--secure-port', '0', '--kubeconfig', kubeconfig]
  const child = spawn(process.execPath, [...args, '--log-level', 'debug'], { stdio: ['ignore', 'pipe', 'pipe'] })
  const result = ended(child)
  await new Promise((resolve) => child.stderr.once('data', resolve))
  rmSync(join(root, 'config'), { recursive: true })
  writeFileSync(join(root, 'config'), 'in the way')
  const { code, errors } = await result
  assert.notEqual(code, 0)
  assert.match(errors, new RegExp(`^trireme: .*${kubeconfig}`, 'm'))
  assert.deepEqual(readdirSync(root), ['config'])
})

test('--controllers=-namespace-controller leaves a deleted namespace to its own controller', async () => {
  const plane = await startProcess({ flags: ['--controllers=-namespace-controller'] })
  const other = await startProcess()
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'going' } }
  for (const { http } of [plane, other]) {
    assert.equal((await call(http, 'POST', '/api/v1/namespaces', { body })).status, 201)
    assert.equal((await call(http, 'DELETE', '/api/v1/namespaces/going')).status, 200)
  }
  // the one with the controller shows how long it takes
  while ((await call(other.http, 'GET', '/api/v1/namespaces/going')).status !== 404);
  const { status, json } = await call(plane.http, 'GET', '/api/v1/namespaces/going')
  assert.deepEqual([status, json['status']], [200, { phase: 'Terminating' }])
  assert.deepEqual([await plane.stop(), await other.stop()], [0, 0])
})
