import assert from 'node:assert/strict'
import test from 'node:test'
import { decodeJson, decodeProtobuf, encodeJsonText, encodeProtobuf, typeDescriptor } from '../../schemas/index.ts'

/** Fields that 1.37 has and older lists of its types lack. */

test('a node says whether its kubelet runs in a user namespace, in JSON and in protobuf', () => {
  const type = typeDescriptor('io.k8s.api.core.v1.NodeSystemInfo')
  const { object, problems } = decodeJson(Buffer.from('{"machineID":"m","runningInUserNamespace":false}'), type)
  assert.deepEqual(problems, [])
  const again = decodeProtobuf(encodeProtobuf(object, type), type)
  assert.match(encodeJsonText(again, type), /"runningInUserNamespace":false/)
})

test('device requests derive attributes and counters name compatibility groups', () => {
  const claim = typeDescriptor('io.k8s.api.resource.v1.ResourceClaim')
  const derivedAttributes = [{ name: 'numa', expression: 'device.attributes["a"].numa' }]
  const requests = [
    { name: 'a', exactly: { deviceClassName: 'c', derivedAttributes } },
    { name: 'b', firstAvailable: [{ name: 's', deviceClassName: 'c', derivedAttributes }] },
  ]
  assert.deepEqual(decodeJson(Buffer.from(JSON.stringify({ spec: { devices: { requests } } })), claim).problems, [])
  const slice = typeDescriptor('io.k8s.api.resource.v1.ResourceSlice')
  const devices = [{ name: 'd', consumesCounters: [{ counterSet: 's', counters: {}, compatibilityGroups: ['mig'] }] }]
  assert.deepEqual(decodeJson(Buffer.from(JSON.stringify({ spec: { devices } })), slice).problems, [])
})
