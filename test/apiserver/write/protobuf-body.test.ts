import assert from 'node:assert/strict'
import test from 'node:test'
import { decodeJson, encodeEnvelope, encodeProtobuf, type GVK, typeOf } from '../../../schemas/index.ts'
import { startTestServer, type TestServer } from './api-server.ts'

const contentType = 'application/vnd.kubernetes.protobuf'

function server(name: string, run: (server: TestServer) => Promise<void>): void {
  test(name, async () => {
    const server = await startTestServer()
    try {
      await run(server)
    } finally {
      await server.close()
    }
  })
}

/** `typeMeta`: what the envelope says, the object's own type by default. */
function body(gvk: GVK, object: object, typeMeta: { apiVersion?: string; kind?: string } = {}): Uint8Array {
  const type = typeOf(gvk)
  assert.ok(type !== undefined)
  return encodeEnvelope({
    apiVersion: gvk.group === '' ? gvk.version : `${gvk.group}/${gvk.version}`,
    kind: gvk.kind,
    ...typeMeta,
    raw: encodeProtobuf(decodeJson(Buffer.from(JSON.stringify(object)), type).object, type),
  })
}

const namespace: GVK = { group: '', version: 'v1', kind: 'Namespace' }
const configMap: GVK = { group: '', version: 'v1', kind: 'ConfigMap' }
const deleteOptions: GVK = { group: '', version: 'v1', kind: 'DeleteOptions' }

server('a protobuf body creates, updates and deletes as a JSON body does', async (server) => {
  const made = await server.call('create', 'namespaces', body(namespace, { metadata: { name: 'sea' } }), {
    contentType,
  })
  assert.equal(made.status, 201)
  assert.equal(made.body.metadata.name, 'sea')
  assert.equal(made.body.status.phase, 'Active')
  const object = { metadata: { name: 'oars', labels: { side: 'port' } }, data: { a: '1' } }
  await server.call('create', 'default:configmaps', body(configMap, object), { contentType })
  const changed = body(configMap, { ...object, data: { a: '2' } })
  const updated = await server.call('update', 'default:configmaps/oars', changed, { contentType })
  assert.deepEqual(
    [updated.status, updated.body.data, updated.body.metadata.labels],
    [200, { a: '2' }, { side: 'port' }],
  )
  const wrong = body(deleteOptions, { preconditions: { uid: 'another' } })
  assert.equal((await server.call('delete', 'default:configmaps/oars', wrong, { contentType })).status, 409)
  const right = body(deleteOptions, { preconditions: { uid: updated.body.metadata.uid } })
  assert.equal((await server.call('delete', 'default:configmaps/oars', right, { contentType })).status, 200)
})

server('an envelope without type meta is of the kind that the path says', async (server) => {
  const bytes = body(namespace, { metadata: { name: 'sea' } }, { apiVersion: '', kind: '' })
  assert.equal((await server.call('create', 'namespaces', bytes, { contentType })).status, 201)
})

server('bytes that are no such object are 400 with what is wrong', async (server) => {
  const refused = async (bytes: Uint8Array, message: RegExp): Promise<void> => {
    const answer = await server.call('create', 'namespaces', bytes, { contentType })
    assert.equal(answer.status, 400)
    assert.match(answer.body.message, message)
  }
  const good = body(namespace, { metadata: { name: 'sea' } })
  await refused(Buffer.alloc(0), /must be of type Namespace\): empty data \(<empty>\)/)
  await refused(
    Buffer.from('{"kind":"Namespace"}'),
    /does not appear to be a protobuf message, expected prefix \[107 56 115 0\]/,
  )
  await refused(good.subarray(0, -9), /must be of type Namespace\): unexpected EOF/)
  await refused(body(configMap, { metadata: { name: 'sea' } }), /no kind "ConfigMap" is registered/)
  await refused(
    body(namespace, { metadata: { name: 'sea' } }, { apiVersion: 'v2' }),
    /API version in the data \(v2\) does not match the expected API version \(v1\)/,
  )
  await refused(
    encodeEnvelope({ apiVersion: 'v1', kind: 'Namespace', raw: Buffer.from('0805', 'hex') }),
    /Namespace in version "v1" cannot be handled as a Namespace: proto: wrong wireType = 0 for field Metadata/,
  )
})
