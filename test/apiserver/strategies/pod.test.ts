import assert from 'node:assert/strict'
import test from 'node:test'
import { selectorMatches, selectorText } from '../../../apiserver/validation/label-selector.ts'
import { qosClass } from '../../../apiserver/strategies/pod.ts'
import { addressOffset, serviceAddress } from '../../../apiserver/strategies/service-range.ts'

const container = (requests?: object, limits?: object): object => ({ resources: { requests, limits } })

test('the QoS class follows cpu and memory of all containers', () => {
  const small = { cpu: '100m', memory: '1Gi' }
  assert.equal(qosClass({ containers: [container()] }), 'BestEffort')
  assert.equal(qosClass({ containers: [container(small, small)] }), 'Guaranteed')
  assert.equal(qosClass({ containers: [container({ cpu: '0.1', memory: '1024Mi' }, small)] }), 'Guaranteed')
  assert.equal(qosClass({ containers: [container(undefined, small)] }), 'Guaranteed')
  assert.equal(qosClass({ containers: [container(small, small), container()] }), 'Burstable')
  assert.equal(qosClass({ containers: [container({ cpu: '1' })] }), 'Burstable')
  assert.equal(qosClass({ containers: [container({ 'example.com/gpu': '1' })] }), 'BestEffort')
})

test('selectors match and print as Go does', () => {
  const selector = {
    matchLabels: { b: '2' },
    matchExpressions: [
      { key: 'a', operator: 'In', values: ['y', 'x'] },
      { key: 'c', operator: 'DoesNotExist' },
    ],
  }
  assert.equal(selectorText(selector), 'a in (x,y),b=2,!c')
  assert.equal(selectorMatches(selector, { a: 'x', b: '2' }), true)
  assert.equal(selectorMatches(selector, { a: 'x', b: '2', c: '' }), false)
  assert.equal(selectorMatches({ matchLabels: { constructor: 'x' } }, {}), false)
  assert.equal(selectorMatches({}, { any: 'thing' }), true)
})

test('service addresses and their positions are each other again', () => {
  for (const offset of [1, 255, 256, 257, 65_534]) assert.equal(addressOffset(serviceAddress(offset)), offset)
  assert.equal(serviceAddress(1), '10.96.0.1')
  for (const text of ['10.96.0.0', '10.96.255.255', '10.97.0.1', '10.96.0.01', '10.96.0', 'None', '']) {
    assert.equal(addressOffset(text), undefined, text)
  }
})
