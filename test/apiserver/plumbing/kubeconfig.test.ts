import assert from 'node:assert/strict'
import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { parse } from 'yaml'
import { writePrivate } from '../../../apiserver/certificates/pki-files-node.ts'
import { isOwnKubeconfig, KubeconfigError, kubeconfigText, ownKubeconfig } from '../../../apiserver/kubeconfig.ts'

const entry = { server: 'https://127.0.0.1:6443', authority: 'CA', certificate: 'CERT', key: 'KEY' }
const moved = { ...entry, server: 'https://127.0.0.1:7777' }

interface Kubeconfig {
  readonly 'current-context': string
  readonly clusters: readonly { readonly name: string; readonly cluster: { readonly server: string } }[]
  readonly contexts: readonly { readonly name: string }[]
  readonly users: readonly { readonly name: string }[]
}

const foreign = `# my clusters, do not touch
apiVersion: v1
kind: Config
current-context: work # the one I use
clusters:
  - name: work
    cluster: {server: "https://work.example"} # behind the VPN
contexts:
  - name: work
    context: {cluster: work, user: me}
users:
  - name: me
    user:
      token: secret
`

test('a missing or empty file becomes our own', async () => {
  const text = await kubeconfigText(undefined, entry)
  assert.equal(text, ownKubeconfig(entry))
  assert.equal(await kubeconfigText(' \n', entry), text)
  const parsed = parse(text ?? '') as Kubeconfig
  assert.deepEqual([parsed['current-context'], parsed.clusters[0]?.cluster.server], ['trireme', entry.server])
  assert.ok(isOwnKubeconfig(text ?? ''))
})

test('our own file is left alone when nothing changed, and rewritten when the server moved', async () => {
  assert.equal(await kubeconfigText(ownKubeconfig(entry), entry), undefined)
  assert.equal(await kubeconfigText(ownKubeconfig(entry), moved), ownKubeconfig(moved))
})

test("another's file keeps its entries, comments and current context, and gains ours", async () => {
  const text = (await kubeconfigText(foreign, entry)) ?? ''
  const parsed = parse(text) as Kubeconfig
  assert.equal(parsed['current-context'], 'work')
  for (const list of [parsed.clusters, parsed.contexts, parsed.users]) assert.equal(list.length, 2)
  for (const kept of ['# my clusters, do not touch', '# the one I use', '# behind the VPN', 'token: secret']) {
    assert.ok(text.includes(kept), kept)
  }
  assert.equal(await kubeconfigText(text, entry), undefined)
  const later = parse((await kubeconfigText(text, moved)) ?? '') as Kubeconfig
  assert.deepEqual(later.clusters.map(({ cluster }) => cluster.server).sort(), [moved.server, 'https://work.example'])
})

test('our own file that somebody edited is merged into, not overwritten', async () => {
  const edited = `${ownKubeconfig(entry)}# added by hand\n`
  assert.ok(!isOwnKubeconfig(edited))
  assert.ok((await kubeconfigText(edited, moved))?.includes('# added by hand'))
})

test('our entries in an edited file: what they must say is renewed, other credentials go, what else they say stays', async () => {
  const text = `apiVersion: v1
kind: Config
current-context: trireme
clusters:
- cluster:
    certificate-authority-data: AAAA
    insecure-skip-tls-verify: true
    server: https://127.0.0.1:1
  name: trireme
contexts:
- context:
    cluster: trireme
    namespace: kube-system
    user: trireme
  name: trireme
users:
- name: trireme
  user:
    token: mine
`
  const merged = (await kubeconfigText(text, entry)) ?? ''
  const { clusters, contexts, users } = parse(merged) as Record<string, { [field: string]: object }[]>
  assert.deepEqual(Object.keys(clusters?.[0]?.['cluster'] ?? {}).sort(), ['certificate-authority-data', 'server'])
  assert.deepEqual(contexts?.[0]?.['context'], { cluster: 'trireme', namespace: 'kube-system', user: 'trireme' })
  assert.deepEqual(Object.keys(users?.[0]?.['user'] ?? {}).sort(), ['client-certificate-data', 'client-key-data'])
  // laid out as kubectl does it, and with nothing to change not written at all
  assert.ok(
    merged.startsWith('apiVersion: v1\nkind: Config\ncurrent-context: trireme\nclusters:\n- cluster:\n    cert'),
  )
  assert.equal(await kubeconfigText(merged, entry), undefined)
  assert.equal(await kubeconfigText(merged.replace('kind: Config', 'kind:    Config'), entry), undefined)
})

test('what is no kubeconfig is refused', async () => {
  for (const text of ['just text', '- a\n- b\n', 'a: [', 'kind: Pod\napiVersion: v1\n', 'clusters: 5\n']) {
    await assert.rejects(kubeconfigText(text, entry), KubeconfigError, text)
  }
})

test('files are replaced whole and private, through a symbolic link too', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'trireme-kubeconfig-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  writeFileSync(join(directory, 'real'), 'old', { mode: 0o644 })
  symlinkSync(join(directory, 'real'), join(directory, 'link'))
  await writePrivate(join(directory, 'link'), 'new')
  assert.ok(lstatSync(join(directory, 'link')).isSymbolicLink())
  assert.equal(readFileSync(join(directory, 'real'), 'utf8'), 'new')
  assert.equal(statSync(join(directory, 'real')).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(directory).sort(), ['link', 'real'])
})
