import assert from 'node:assert/strict'
import test from 'node:test'
import { startTestServer } from './api-server.ts'

const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'a:1' }] } }

test('a Job without labels has those of its pods, also after a PUT of what was answered', async () => {
  const server = await startTestServer()
  try {
    const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j' }, spec: { template } }
    const { body } = await server.call('create', 'default:jobs.batch', job)
    assert.equal(body.metadata.labels['batch.kubernetes.io/job-name'], 'j')
    assert.deepEqual(body.metadata.labels, body.spec.template.metadata.labels)
    const put = await server.call('update', 'default:jobs.batch/j', body)
    assert.equal(put.body.metadata.resourceVersion, body.metadata.resourceVersion)
    const named = { ...job, metadata: { name: 'k', labels: { mine: 'x' } } }
    const kept = await server.call('create', 'default:jobs.batch', named)
    assert.deepEqual(kept.body.metadata.labels, { mine: 'x' })
  } finally {
    await server.close()
  }
})

test('a Service keeps how it is reached from outside while it has addresses of its own', async () => {
  const server = await startTestServer()
  try {
    const service = (externalIPs: string[]): object => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 's' },
      spec: { ports: [{ port: 80 }], externalIPs, externalTrafficPolicy: externalIPs.length > 0 ? 'Local' : undefined },
    })
    const { body } = await server.call('create', 'default:services', service(['192.0.2.1']))
    assert.equal(body.spec.externalTrafficPolicy, 'Local')
  } finally {
    await server.close()
  }
})

test('a taint of a device says since when, and goes on saying it', async () => {
  const server = await startTestServer()
  try {
    const rule = (extra: object): object => ({
      apiVersion: 'resource.k8s.io/v1',
      kind: 'DeviceTaintRule',
      metadata: { name: 't', ...extra },
      spec: { deviceSelector: { driver: 'd.example.com' }, taint: { key: 'a', effect: 'NoSchedule' } },
    })
    const { body } = await server.call('create', 'devicetaintrules.resource.k8s.io', rule({}))
    assert.match(body.spec.taint.timeAdded, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    const again = rule({ resourceVersion: body.metadata.resourceVersion })
    const put = await server.call('update', 'devicetaintrules.resource.k8s.io/t', again)
    assert.equal(put.body.metadata.resourceVersion, body.metadata.resourceVersion)
  } finally {
    await server.close()
  }
})
