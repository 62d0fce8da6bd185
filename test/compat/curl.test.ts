/** Plain curl, with the certificate that the first start wrote and over the plain port. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { call, configMap, type ControlPlaneProcess, startProcess } from '../control-plane.ts'
import { findProgram, testWith } from '../external.ts'

const curl = { name: 'curl', path: findProgram('curl'), install: 'apt-get install curl' }
const collection = '/api/v1/namespaces/default/configmaps'

let plane: ControlPlaneProcess

before(async () => {
  plane = await startProcess({ flags: ['--etcd-compaction-interval', '1s'] })
})

after(async () => {
  assert.equal(await plane.stop(), 0)
})

function run(
  path: string,
  args: readonly string[],
  until?: RegExp,
): Promise<{ readonly code: number | null; readonly stdout: string }> {
  return new Promise((resolve) => {
    const child = spawn(path, ['--silent', '--no-buffer', ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      if (until?.test(stdout) === true) child.kill('SIGTERM')
    })
    child.once('close', (code) => resolve({ code, stdout }))
  })
}

const ways = [
  {
    name: 'with the written certificate',
    args: (plane: ControlPlaneProcess) => ['-K', join(plane.dataDir, 'curlrc')],
    base: (plane: ControlPlaneProcess) => plane.server,
  },
  { name: 'over the plain port', args: () => [], base: (plane: ControlPlaneProcess) => plane.http },
]

for (const way of ways) {
  testWith(curl, `curl ${way.name} lists pods`, async (path) => {
    const { code, stdout } = await run(path, [...way.args(plane), `${way.base(plane)}/api/v1/pods`])
    assert.equal(code, 0)
    const list = JSON.parse(stdout) as { kind: string; items: unknown[] }
    assert.equal(list.kind, 'PodList')
    assert.deepEqual(list.items, [])
  })

  testWith(curl, `curl ${way.name} streams events and bookmarks`, async (path) => {
    const name = `watched-${ways.indexOf(way)}`
    const url = `${way.base(plane)}${collection}?watch=true&allowWatchBookmarks=true&timeoutSeconds=4`
    const streaming = run(path, [...way.args(plane), url])
    const created = await call(plane.http, 'POST', collection, { body: configMap(name) })
    assert.equal(created.status, 201)
    const { code, stdout } = await streaming
    assert.equal(code, 0, 'the server ends the watch cleanly')
    const events = stdout
      .trim()
      .split('\n')
      .map(
        (line) =>
          JSON.parse(line) as {
            type: string
            object: { kind: string; metadata: { name?: string; resourceVersion: string } }
          },
      )
    assert.ok(
      events.some((event) => event.type === 'ADDED' && event.object.metadata.name === name),
      stdout,
    )
    const bookmark = events.findLast((event) => event.type === 'BOOKMARK')
    assert.equal(bookmark?.object.kind, 'ConfigMap')
    assert.ok(Number(bookmark?.object.metadata.resourceVersion) >= Number(created.json.metadata.resourceVersion))
  })
}

testWith(curl, 'curl is answered 409 to a stale PUT', async (path) => {
  const created = await call(plane.http, 'POST', collection, { body: configMap('stale') })
  assert.equal(created.status, 201)
  const fresh = await call(plane.http, 'PUT', `${collection}/stale`, { body: { ...created.json, data: { a: '1' } } })
  assert.equal(fresh.status, 200)
  const body = JSON.stringify({ ...created.json, data: { a: '2' } })
  const { stdout } = await run(path, [
    '-X',
    'PUT',
    '-H',
    'Content-Type: application/json',
    '-d',
    body,
    `${plane.http}${collection}/stale`,
  ])
  const status = JSON.parse(stdout) as { code: number; reason: string; message: string }
  assert.equal(status.code, 409)
  assert.equal(status.reason, 'Conflict')
  assert.match(
    status.message,
    /^Operation cannot be fulfilled on configmaps "stale": the object has been modified; please apply/,
  )
})

testWith(
  curl,
  'curl watching from a compacted revision gets 410 in an ERROR event, and 410 for an exact list',
  async (path) => {
    const old = (await call(plane.http, 'GET', collection)).json.metadata.resourceVersion
    const exact = `${plane.http}${collection}?resourceVersion=${old}&resourceVersionMatch=Exact`
    for (let write = 0; ; write++) {
      const { stdout } = await run(path, ['-o', '/dev/null', '-w', '%{http_code}', exact])
      if (stdout === '410') break
      assert.equal(stdout, '200')
      const answer = await call(plane.http, 'PATCH', `${collection}/stale`, {
        body: { data: { write: String(write) } },
        contentType: 'application/merge-patch+json',
      })
      assert.equal(answer.status, 200)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    // An old revision may still be in the server's own window of events; revision 1 never is.
    const { code, stdout } = await run(path, [`${plane.http}${collection}?watch=true&resourceVersion=1`])
    assert.equal(code, 0)
    const event = JSON.parse(stdout) as { type: string; object: { code: number; reason: string; message: string } }
    assert.equal(event.type, 'ERROR')
    assert.equal(event.object.code, 410)
    assert.equal(event.object.reason, 'Expired')
    assert.match(event.object.message, /^too old resource version: 1 \(\d+\)$/)
  },
)
