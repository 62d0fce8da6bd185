import assert from 'node:assert/strict'
import test from 'node:test'
import {
  decodeJson,
  decodeProtobuf,
  decodeEnvelope,
  encodeEnvelope,
  encodeJsonText,
  encodeProtobuf,
  SchemaError,
  typeDescriptor,
  typeNames,
  type TypeDescriptor,
  typeOf,
} from '../../../schemas/index.ts'
import { type Manifest, manifests } from '../../testdata/manifests.ts'

function typeOfManifest({ apiVersion, kind }: Manifest): TypeDescriptor {
  const [version = '', group = ''] = apiVersion.split('/').reverse()
  const type = typeOf({ group, version, kind })
  assert.ok(type !== undefined, kind)
  return type
}

function viaProtobuf(value: object, type: TypeDescriptor): { readonly before: string; readonly after: string } {
  const { object } = decodeJson(Buffer.from(JSON.stringify(value)), type)
  const bytes = encodeProtobuf(object, type)
  const back = decodeProtobuf(bytes, type)
  assert.deepEqual(Buffer.from(encodeProtobuf(back, type)), Buffer.from(bytes), 'equal objects, equal bytes')
  const typed = Object.assign(back, { kind: object['kind'], apiVersion: object['apiVersion'] })
  return { before: encodeJsonText(object, type), after: encodeJsonText(typed, type) }
}

for (const [name, manifest] of Object.entries(manifests)) {
  test(`${name} is the same after protobuf`, () => {
    const { before, after } = viaProtobuf(manifest, typeOfManifest(manifest))
    assert.equal(after, before)
  })
}

test('every type has a form on the wire, and its zero value comes back as nothing', () => {
  for (const name of typeNames()) {
    const type = typeDescriptor(name)
    // The empty message, and the message of zeroes, which Go writes for it.
    assert.equal(encodeJsonText(decodeProtobuf(new Uint8Array(0), type), type), encodeJsonText({}, type), name)
    const zero = decodeProtobuf(encodeProtobuf({}, type), type)
    assert.equal(encodeJsonText(zero, type), encodeJsonText({}, type), name)
  }
})

test('values at the edges survive', () => {
  const podType = typeDescriptor('io.k8s.api.core.v1.Pod')
  const pod = {
    metadata: { name: 'p', generation: 1, annotations: { '\u{10000}': 'astral', '\uffff': 'bmp' } },
    spec: {
      activeDeadlineSeconds: -1,
      securityContext: { runAsUser: 0, fsGroup: -9007199254740991 },
      containers: [{ name: 'c', livenessProbe: { httpGet: { port: '' } }, resources: { limits: { cpu: '0' } } }],
      volumes: [{ name: 'e', emptyDir: {} }],
      tolerations: [{ tolerationSeconds: 0 }, {}],
    },
  }
  const { before, after } = viaProtobuf(pod, podType)
  assert.equal(after, before)
  const big =
    '{"metadata":{"name":"p","generation":-9223372036854775808},"spec":{"activeDeadlineSeconds":9223372036854775807}}'
  const { object } = decodeJson(Buffer.from(big), podType)
  assert.equal(
    encodeJsonText(decodeProtobuf(encodeProtobuf(object, podType), podType), podType),
    encodeJsonText(object, podType),
  )
})

test('either-or values of schemas, and raw JSON in them', () => {
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'boats.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'boats', kind: 'Boat' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              default: { a: [1, 'x', null], b: 0.5 },
              enum: ['a', 1, null],
              properties: {
                one: { items: { type: 'string' }, additionalItems: true },
                many: { items: [{ type: 'string' }, { format: 'b' }], additionalItems: false },
                free: { additionalProperties: { type: 'integer', minimum: 0.1 } },
                open: { additionalProperties: true },
              },
              dependencies: { a: ['b', 'c'], d: { required: ['e'] } },
            },
          },
        },
      ],
    },
  }
  const type = typeDescriptor('io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition')
  const { before, after } = viaProtobuf(crd, type)
  assert.equal(after, before)
})

test('named lists of strings are messages on the wire', () => {
  const review = { spec: { user: 'u', extra: { scopes: ['a', 'b'], none: [] } } }
  const type = typeDescriptor('io.k8s.api.authorization.v1.SubjectAccessReview')
  const { before, after } = viaProtobuf(review, type)
  assert.equal(after, before)
  const list = { groupVersion: 'v1', resources: [{ name: 'pods', kind: 'Pod', verbs: ['get', 'list'] }] }
  const lists = viaProtobuf(list, typeDescriptor('io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList'))
  assert.equal(lists.after, lists.before)
})

/** mulberry32 */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

test('damaged bytes give an object that can be written, or a SchemaError', () => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`SEED=${seed}`)
  const random = generator(seed)
  const below = (limit: number): number => Math.floor(random() * limit)
  const sources = Object.values(manifests).map((manifest) => {
    const type = typeOfManifest(manifest)
    const { object } = decodeJson(Buffer.from(JSON.stringify(manifest)), type)
    const { apiVersion, kind } = manifest
    return { type, bytes: Buffer.from(encodeEnvelope({ apiVersion, kind, raw: encodeProtobuf(object, type) })) }
  })
  let refused = 0
  const rounds = 20_000
  for (let round = 0; round < rounds; round++) {
    const { type, bytes } = sources[below(sources.length)]!
    const damaged = Buffer.from(bytes)
    for (let change = 1 + below(4); change > 0; change--) damaged[4 + below(damaged.length - 4)] = below(256)
    const cut = below(5) === 0 ? damaged.subarray(0, below(damaged.length)) : damaged
    try {
      const object = decodeProtobuf(decodeEnvelope(cut).raw, type)
      encodeJsonText(object, type)
      // What has been taken in once reads back as the same.
      const again = decodeProtobuf(encodeProtobuf(object, type), type)
      assert.equal(encodeJsonText(again, type), encodeJsonText(object, type))
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error
      refused++
    }
  }
  assert.ok(refused > rounds / 10 && refused < rounds, `${refused} refused`)
})
