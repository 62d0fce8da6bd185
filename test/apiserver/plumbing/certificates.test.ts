import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import {
  pkiPaths,
  planPki,
  type PkiPlan,
  renewBeforeMs,
  writePki,
} from '../../../apiserver/certificates/certificates.ts'
import { createIssuer } from '../../../apiserver/certificates/issuer-node.ts'

const dayMs = 86_400_000
const start = Date.parse('2026-01-01T00:00:00Z')

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'trireme-pki-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function plan(
  dataDir: string,
  options: { nowMs?: number; bindAddress?: string; addresses?: string[] } = {},
): Promise<PkiPlan> {
  const nowMs = options.nowMs ?? start
  return planPki({
    dataDir,
    bindAddress: options.bindAddress ?? '127.0.0.1',
    machineAddresses: () => options.addresses ?? [],
    nowMs,
    loadIssuer: () => createIssuer({ nowMs, entropy: (length) => crypto.getRandomValues(new Uint8Array(length)) }),
  })
}

const changedNames = (made: PkiPlan): string[] =>
  [...made.changed.keys()].map((path) => path.split('/').at(-1) ?? '').sort()

test('the first start makes everything, planning alone writes nothing, files are private', async (t) => {
  const dataDir = directory(t)
  const made = await plan(dataDir)
  assert.deepEqual(changedNames(made), ['admin.crt', 'admin.key', 'apiserver.crt', 'apiserver.key', 'ca.crt', 'ca.key'])
  assert.ok(!existsSync(join(dataDir, 'pki')))
  await writePki(made)
  for (const path of made.changed.keys()) assert.equal(statSync(path).mode & 0o777, 0o600, path)
  const server = new X509Certificate(made.pki.server.certificate)
  const authority = new X509Certificate(made.pki.authority.certificate)
  assert.ok(authority.ca && server.checkIssued(authority) && server.verify(authority.publicKey))
  for (const host of ['localhost', 'kubernetes.default.svc']) assert.ok(server.checkHost(host), host)
  for (const address of ['127.0.0.1', '::1', '10.96.0.1']) assert.ok(server.checkIP(address), address)
  const admin = new X509Certificate(made.pki.admin.certificate)
  assert.equal(admin.subject, 'O=system:masters\nCN=trireme-admin')
  assert.equal(admin.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1')
})

test('what is good on disk is kept, and the library that makes certificates is not loaded', async (t) => {
  const dataDir = directory(t)
  await writePki(await plan(dataDir))
  const again = await planPki({
    dataDir,
    bindAddress: '127.0.0.1',
    machineAddresses: () => assert.fail('not looked at'),
    nowMs: start + 30 * dayMs,
    loadIssuer: () => Promise.reject(new Error('not needed')),
  })
  assert.equal(again.changed.size, 0)
})

test('certificates are renewed under 90 days before their end, the authority is kept', async (t) => {
  const dataDir = directory(t)
  await writePki(await plan(dataDir))
  const endMs = start + 365 * dayMs
  assert.equal((await plan(dataDir, { nowMs: endMs - renewBeforeMs })).changed.size, 0)
  const renewed = await plan(dataDir, { nowMs: endMs - renewBeforeMs + 1000 })
  assert.deepEqual(changedNames(renewed), ['admin.crt', 'admin.key', 'apiserver.crt', 'apiserver.key'])
})

test('an authority near its end is renewed with everything it signed', async (t) => {
  const dataDir = directory(t)
  await writePki(await plan(dataDir))
  assert.equal((await plan(dataDir, { nowMs: start + 3600 * dayMs })).changed.size, 6)
})

test('a bind address that the server certificate lacks makes a new one', async (t) => {
  const dataDir = directory(t)
  await writePki(await plan(dataDir))
  const moved = await plan(dataDir, { bindAddress: '192.0.2.7' })
  assert.deepEqual(changedNames(moved), ['apiserver.crt', 'apiserver.key'])
  assert.ok(new X509Certificate(moved.pki.server.certificate).checkIP('192.0.2.7'))
  assert.equal((await plan(dataDir, { bindAddress: '0.0.0.0' })).changed.size, 0)
})

test('on every address the certificate names those of the machine, and is renewed when one is new, not when one goes', async (t) => {
  const dataDir = directory(t)
  for (const bindAddress of ['0.0.0.0', '::']) {
    const made = await plan(dataDir, { bindAddress, addresses: ['192.0.2.7', '2001:db8::7'] })
    const certificate = new X509Certificate(made.pki.server.certificate)
    for (const address of ['192.0.2.7', '2001:db8::7', '127.0.0.1', '::1'])
      assert.ok(certificate.checkIP(address), address)
    await writePki(made)
    assert.equal((await plan(dataDir, { bindAddress, addresses: ['192.0.2.7'] })).changed.size, 0)
    const grown = await plan(dataDir, { bindAddress, addresses: ['192.0.2.7', '192.0.2.8'] })
    assert.deepEqual(changedNames(grown), ['apiserver.crt', 'apiserver.key'])
  }
})

test('an IPv6 bind address is found in the certificate however it is spelt', async (t) => {
  const dataDir = directory(t)
  await writePki(await plan(dataDir, { bindAddress: '2001:db8:0:0:0:0:0:1' }))
  assert.equal((await plan(dataDir, { bindAddress: '2001:DB8::1' })).changed.size, 0)
  assert.deepEqual(changedNames(await plan(dataDir, { bindAddress: '2001:db8::2' })), [
    'apiserver.crt',
    'apiserver.key',
  ])
})

test('a damaged file or a key of another certificate is made anew', async (t) => {
  const dataDir = directory(t)
  await writePki(await plan(dataDir))
  const paths = pkiPaths(dataDir)
  writeFileSync(paths.admin.certificate, 'rubbish')
  writeFileSync(paths.server.key, readFileSync(paths.authority.key))
  assert.deepEqual(changedNames(await plan(dataDir)), ['admin.crt', 'admin.key', 'apiserver.crt', 'apiserver.key'])
})
