/** Compare-and-set under contention: no increment is lost, and every refusal is a 409 that the client can count. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Agent } from 'undici'
import { call, configMap, type ControlPlaneProcess, startProcess } from '../control-plane.ts'

const clients = 50
const incrementsPerClient = 100
const path = '/api/v1/namespaces/default/configmaps/counter'

let plane: ControlPlaneProcess

before(async () => {
  plane = await startProcess()
})

after(async () => {
  assert.equal(await plane.stop(), 0)
})

test('50 clients increment one counter 100 times each by read-modify-write: 5,000, and 409s = attempts - 5,000', async () => {
  const created = await call(plane.http, 'POST', '/api/v1/namespaces/default/configmaps', {
    body: configMap('counter', { n: '0' }),
  })
  assert.equal(created.status, 201)
  let attempts = 0
  let conflicts = 0
  const client = async (): Promise<void> => {
    const dispatcher = new Agent({ connections: 1 })
    for (let done = 0; done < incrementsPerClient;) {
      const { json } = await call(plane.http, 'GET', path, { dispatcher })
      const body = { ...json, data: { n: String(Number(json.data.n) + 1) } }
      attempts += 1
      const answer = await call(plane.http, 'PUT', path, { body, dispatcher })
      if (answer.status === 200) done += 1
      else {
        assert.equal(answer.status, 409, answer.text)
        assert.match(
          answer.text,
          /the object has been modified; please apply your changes to the latest version and try again/,
        )
        conflicts += 1
      }
    }
    await dispatcher.close()
  }
  await Promise.all(Array.from({ length: clients }, client))
  const { json } = await call(plane.http, 'GET', path)
  assert.equal(json.data.n, String(clients * incrementsPerClient))
  assert.equal(conflicts, attempts - clients * incrementsPerClient)
})
