import assert from 'node:assert/strict'
import test from 'node:test'
import type { Store } from '../../../storage/index.ts'
import { startTestServer } from './api-server.ts'

const path = 'default:configmaps/c'
const configMap = (a: string): object => ({ metadata: { name: 'c' }, data: { a } })
const merge = { contentType: 'application/merge-patch+json' }

test('an update refused from an old cached state is judged again by the newest one', async () => {
  const server = await startTestServer()
  try {
    await server.call('create', 'default:configmaps', configMap('1'))
    server.freezeCache()
    const second = await server.call('update', path, configMap('2'))
    assert.equal(second.status, 200)
    const third = await server.call('update', path, { ...second.body, data: { a: '3' } })
    assert.equal(third.status, 200, 'its resourceVersion is the newest, whatever the cache says')
  } finally {
    await server.close()
  }
})

test('what the cache does not know yet is found, and what it still knows is not', async () => {
  const server = await startTestServer()
  try {
    server.freezeCache()
    await server.call('create', 'default:configmaps', configMap('1'))
    const patched = await server.call('patch', path, { data: { b: '2' } }, merge)
    assert.equal(patched.status, 200)
    server.thaw()
    server.freezeCache()
    assert.equal((await server.call('delete', path)).status, 200)
    assert.equal((await server.call('delete', path)).status, 404)
    assert.equal((await server.call('create', 'default:configmaps', configMap('1'))).status, 201)
  } finally {
    await server.close()
  }
})

test('a write that looks like no change from the cache is written when the store has moved on', async () => {
  const server = await startTestServer()
  try {
    const first = await server.call('create', 'default:configmaps', configMap('1'))
    server.freezeCache()
    await server.call('update', path, configMap('2'))
    const back = await server.call('update', path, configMap('1'))
    assert.equal(back.status, 200)
    assert.notEqual(back.body.metadata.resourceVersion, first.body.metadata.resourceVersion)
    server.thaw()
    const now = await server.call('patch', path, {}, merge)
    assert.equal(now.body.data.a, '1')
  } finally {
    await server.close()
  }
})

test('two services never get one address, even when the cache shows it free', async () => {
  const server = await startTestServer()
  try {
    const service = (name: string): object => ({
      metadata: { name },
      spec: { clusterIP: '10.96.0.50', ports: [{ port: 80, targetPort: 80 }] },
    })
    server.freezeCache()
    const answers = await Promise.all(
      ['a', 'b'].map((name) => server.call('create', 'default:services', service(name))),
    )
    assert.deepEqual(
      answers.map((answer) => answer.status).toSorted((a, b) => a - b),
      [201, 409],
    )
  } finally {
    await server.close()
  }
})

test('nothing is created in a namespace that goes between admission and commit', async () => {
  let removeNamespace = false
  const server = await startTestServer({
    wrap: (store): Store =>
      new Proxy(store, {
        get(target, field) {
          if (field !== 'txn') {
            const value: unknown = Reflect.get(target, field)
            return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
          }
          return async (...args: Parameters<Store['txn']>) => {
            if (removeNamespace) {
              removeNamespace = false
              const key = Buffer.from('/registry/namespaces/manifests')
              await target.txn({ compare: [], success: [{ type: 'delete', key }], failure: [] }, args[1])
            }
            return target.txn(...args)
          }
        },
      }),
  })
  try {
    removeNamespace = true
    const answer = await server.call('create', 'manifests:configmaps', configMap('1'))
    assert.deepEqual([answer.status, answer.body.message], [404, 'namespaces "manifests" not found'])
  } finally {
    await server.close()
  }
})
