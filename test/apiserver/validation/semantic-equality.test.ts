import assert from 'node:assert/strict'
import test from 'node:test'
import { sameObject, sameRaw } from '../../../apiserver/validation/semantic-equality.ts'
import { typeDescriptor } from '../../../schemas/index.ts'

const podSpec = typeDescriptor('io.k8s.api.core.v1.PodSpec')

test('absent equals zero and empty, except behind a pointer', () => {
  assert.equal(sameObject({}, { hostNetwork: false, volumes: [], nodeSelector: {}, nodeName: '' }, podSpec), true)
  assert.equal(sameObject({}, { hostNetwork: true }, podSpec), false)
  assert.equal(sameObject({}, { enableServiceLinks: false }, podSpec), false)
  assert.equal(sameObject({ enableServiceLinks: true }, { enableServiceLinks: true }, podSpec), true)
})

test('lists compare in order, maps by key, nested objects by type', () => {
  const containers = (...names: readonly string[]): object => ({ containers: names.map((name) => ({ name })) })
  assert.equal(sameObject(containers('a', 'b'), containers('a', 'b'), podSpec), true)
  assert.equal(sameObject(containers('a', 'b'), containers('b', 'a'), podSpec), false)
  assert.equal(sameObject({ nodeSelector: { a: '1', b: '2' } }, { nodeSelector: { b: '2', a: '1' } }, podSpec), true)
  assert.equal(sameObject({ nodeSelector: { a: '1' } }, { nodeSelector: { a: '2' } }, podSpec), false)
  assert.equal(sameRaw({ a: [1, { b: null }] }, { a: [1, { b: null }] }), true)
  assert.equal(sameRaw({ a: 1 }, { b: 1 }), false)
})
