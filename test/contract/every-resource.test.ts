/**
 * Everything that discovery says is served, taken at its word: each verb of each resource in each version, with the
 * smallest object of the kind. A kind that is served and has no manifest (or call) here is a failure.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { call, type ControlPlaneProcess, startProcess } from '../control-plane.ts'
import { type Manifest, manifests } from '../testdata/manifests.ts'
import {
  aggregatedDiscovery,
  groupVersionOf,
  keyOf,
  legacyDiscovery,
  type ServedResource,
  titleOf,
} from './discovery.ts'
import { storedResourceSteps, type Step } from './stored-resource.ts'
import { namespaceOf, Subject } from './subject.ts'
import { refusesWhatIsNotAdvertised } from './unadvertised.ts'
import { callsVirtualSubresources, virtualResources } from './virtual-resource.ts'

const concurrency = 8
const allVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

let plane: ControlPlaneProcess

before(async () => {
  plane = await startProcess()
})

after(async () => {
  assert.equal(await plane.stop(), 0)
  assert.doesNotMatch(plane.errors(), /request failed/)
})

test('both forms of discovery tell the same', async () => {
  const legacy = await legacyDiscovery(plane.http)
  assert.ok(legacy.length > 60, `${legacy.length} resources`)
  assert.deepEqual(await aggregatedDiscovery(plane.http, 'v2'), legacy)
  assert.deepEqual(await aggregatedDiscovery(plane.http, 'v2beta1'), legacy)
  const names = legacy.map(titleOf)
  assert.equal(new Set(names).size, names.length)
  const short = legacy.flatMap(({ group, shortNames }) => shortNames.map((name) => `${name} ${group}`))
  for (const resource of legacy) assert.equal(resource.singular, resource.kind.toLowerCase(), titleOf(resource))
  assert.ok(short.length > 20)
})

test('every stored resource has all verbs, namespaces all but deletecollection', async () => {
  for (const resource of await legacyDiscovery(plane.http)) {
    if (!resource.verbs.includes('watch')) continue
    const expected =
      keyOf(resource) === '/namespaces' ? allVerbs.filter((verb) => verb !== 'deletecollection') : allVerbs
    assert.deepEqual(resource.verbs, expected, titleOf(resource))
  }
})

test('every resource keeps its word', { concurrency }, async (context) => {
  const served = await legacyDiscovery(plane.http)
  await Promise.all(
    served.map((resource) =>
      context.test(titleOf(resource), async () => {
        if (resource.namespaced) await makeNamespace(namespaceOf(resource))
        for (const [subject, step] of stepsOf(resource)) {
          try {
            await step(subject)
          } catch (error) {
            throw new Error(`${titleOf(resource)} ${step.name}: ${String(error)}`, { cause: error })
          }
        }
      }),
    ),
  )
})

async function makeNamespace(name: string): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
  assert.equal((await call(plane.http, 'POST', '/api/v1/namespaces', { body })).status, 201)
}

function* stepsOf(resource: ServedResource): Generator<readonly [Subject, Step]> {
  const key = keyOf(resource)
  const virtual = virtualResources[key]
  if (!resource.verbs.includes('watch')) {
    assert.ok(virtual, `${key} is served: test/contract/virtual-resource.ts has a call for it`)
    const subject = new Subject(plane.http, resource, {
      apiVersion: groupVersionOf(resource),
      kind: resource.kind,
      metadata: { name: 'tiny' },
    })
    yield [subject, refusesWhatIsNotAdvertised]
    yield [subject, virtual]
    return
  }
  const manifest: Manifest | undefined = manifests[key]
  assert.ok(manifest, `${key} is served: test/testdata/manifests.ts has a manifest for it`)
  const subject = new Subject(plane.http, resource, manifest)
  yield [subject, refusesWhatIsNotAdvertised]
  for (const step of storedResourceSteps) {
    yield [subject, step]
    if (step.name === 'creates') yield [subject, callsVirtualSubresources]
  }
}
