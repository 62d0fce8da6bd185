import assert from 'node:assert/strict'
import test from 'node:test'
import { effectsMissing } from '../../../apiserver/admission/without-effect.ts'
import { resources } from '../../../schemas/index.ts'
import { manifests } from '../../testdata/manifests.ts'
import { startTestServer } from './api-server.ts'

const stored = resources().filter(
  (resource) => resource.storagePrefix !== undefined && resource.verbs.includes('create'),
)

test('there is a manifest for every kind that can be created', () => {
  const missing = stored.map((resource) => `${resource.group}/${resource.plural}`).filter((key) => !(key in manifests))
  assert.deepEqual(missing, [])
})

test('what has no effect yet is a kind that is served', () => {
  const keys = stored.map((resource) => `${resource.group}/${resource.plural}`)
  assert.deepEqual(
    Object.keys(effectsMissing).filter((key) => !keys.includes(key)),
    [],
  )
})

for (const resource of stored) {
  const key = `${resource.group}/${resource.plural}`
  test(`${key}: created, put and patched unchanged, deleted`, async () => {
    const manifest = manifests[key]
    assert.ok(manifest)
    const server = await startTestServer()
    try {
      const space = resource.namespaced ? 'manifests:' : ''
      const path = `${space}${resource.plural}${resource.group === '' ? '' : `.${resource.group}`}`
      const created = await server.call('create', path, manifest, { query: 'fieldValidation=Strict' })
      assert.equal(created.status, 201, JSON.stringify(created.body))
      const effect = effectsMissing[key]
      const warnings = effect === undefined ? [] : [`trireme stores this object, but ${effect} yet`]
      assert.deepEqual([...created.warnings], warnings)
      const { name, resourceVersion } = created.body.metadata
      assert.match(created.body.metadata.uid, /^[0-9a-f-]{36}$/)

      const again = await server.call('create', path, manifest)
      assert.equal(again.status, 409, JSON.stringify(again.body))
      assert.equal(again.body.reason, 'AlreadyExists')

      const put = await server.call('update', `${path}/${name}`, created.body)
      assert.equal(put.status, 200, JSON.stringify(put.body))
      assert.equal(put.body.metadata.resourceVersion, resourceVersion, 'PUT of what was answered changes nothing')

      // The real API server refuses this for Jobs as well: selector and template labels come from creation.
      const minimal =
        key === 'batch/jobs' ? put.body : { ...manifest, metadata: { ...manifest.metadata, resourceVersion } }
      const putMinimal = await server.call('update', `${path}/${name}`, minimal)
      assert.equal(putMinimal.status, 200, JSON.stringify(putMinimal.body))

      const now = putMinimal.body.metadata.resourceVersion
      for (const contentType of [
        'application/merge-patch+json',
        'application/strategic-merge-patch+json',
        'application/json-patch+json',
      ]) {
        const patch = contentType === 'application/json-patch+json' ? [] : {}
        const patched = await server.call('patch', `${path}/${name}`, patch, { contentType })
        assert.equal(patched.status, 200, JSON.stringify(patched.body))
        assert.equal(patched.body.metadata.resourceVersion, now, `${contentType} without effect changes nothing`)
      }

      const labelled = await server.call('patch', `${path}/${name}`, '{"metadata":{"labels":{"touched":"yes"}}}', {
        contentType: 'application/merge-patch+json',
      })
      assert.equal(labelled.status, 200, JSON.stringify(labelled.body))
      assert.ok(Number(labelled.body.metadata.resourceVersion) > Number(now))
      assert.equal(labelled.body.metadata.generation, created.body.metadata.generation, 'labels are no spec')

      if (resource.subresources.some((subresource) => subresource.name === 'status')) {
        const { status: answer } = await server.call('update', `${path}/${name}/status`, labelled.body)
        assert.equal(answer, 200)
      }

      const deleted = await server.call('delete', `${path}/${name}`, { propagationPolicy: 'Background' })
      assert.equal(deleted.status, 200, JSON.stringify(deleted.body))
      if (key === '/namespaces') return
      const gone = await server.call('delete', `${path}/${name}`)
      assert.equal(gone.status, 404, JSON.stringify(gone.body))
    } finally {
      await server.close()
    }
  })
}
