import assert from 'node:assert/strict'
import test from 'node:test'
import { dnsSubdomainProblems } from '../../../apiserver/validation/names.ts'
import { validateObjectMeta, validateObjectMetaUpdate } from '../../../apiserver/validation/object-meta.ts'

const refusals = (metadata: object): readonly string[] =>
  validateObjectMeta(
    { metadata: { name: 'a', namespace: 'n', ...metadata } },
    { namespaced: true, nameRule: dnsSubdomainProblems },
  ).map(({ field, message }) => `${field}: ${message}`)

test('labels, annotations and finalizers have the syntax of qualified names', () => {
  assert.deepEqual(
    refusals({ labels: { 'a/b': 'c' }, annotations: { 'A/b': 'anything at all' }, finalizers: ['a/b'] }),
    [],
  )
  const [slashes] = refusals({ labels: { 'a/b/c': '' } })
  assert.match(slashes ?? '', /^metadata\.labels: Invalid value: "a\/b\/c": a valid label key must consist of /)
  assert.match(
    refusals({ labels: { a: '-' } })[0] ?? '',
    /^metadata\.labels: Invalid value: "-": a valid label must be /,
  )
  assert.match(
    refusals({ finalizers: [''] })[0] ?? '',
    /^metadata\.finalizers: Invalid value: "": name part must be non-empty/,
  )
})

test('annotations together hold 256 KiB', () => {
  const value = 'x'.repeat(256 * 1024 - 1)
  assert.deepEqual(refusals({ annotations: { a: value } }), [])
  assert.deepEqual(refusals({ annotations: { a: `${value}x` } }), [
    'metadata.annotations: Too long: may not be more than 262144 bytes',
  ])
})

test('owners are named completely, and one of them controls', () => {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'u', controller: true }
  assert.deepEqual(refusals({ ownerReferences: [owner] }), [])
  assert.deepEqual(refusals({ ownerReferences: [{ apiVersion: 'a/b/c' }] }), [
    'metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": must be <group>/<version> or <version>',
    'metadata.ownerReferences[0].kind: Required value: must not be empty',
    'metadata.ownerReferences[0].name: Required value: must not be empty',
    'metadata.ownerReferences[0].uid: Required value: must not be empty',
  ])
  assert.match(
    refusals({ ownerReferences: [owner, { ...owner, name: 's' }] })[0] ?? '',
    /Only one reference can have Controller set to true\. Found "true" in references for ReplicaSet\/r and ReplicaSet\/s$/,
  )
})

test('a generateName may end in a dash, and is a name otherwise', () => {
  assert.deepEqual(refusals({ generateName: 'a-' }), [])
  assert.match(refusals({ generateName: 'A-b-' })[0] ?? '', /^metadata\.generateName: Invalid value: "A-b-"/)
})

test('an object that is being deleted takes no new finalizers', () => {
  const old = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['a/b'] } }
  const object = { metadata: { ...old.metadata, finalizers: ['a/b', 'c/d'] } }
  assert.deepEqual(
    validateObjectMetaUpdate(object, old).map(({ field, message }) => `${field}: ${message}`),
    [
      'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c/d"}',
    ],
  )
})
