/** A real process, killed with kill -9 again and again under 32 writers: every acknowledged write is there afterwards. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Agent } from 'undici'
import { call, configMap, type ControlPlaneProcess, startProcess } from '../control-plane.ts'

/** KILLS=50 is what CI and the claim in the README use; fewer while working on it. */
const kills = Number(process.env.KILLS ?? 50)
const writers = 32
const collection = '/api/v1/namespaces/default/configmaps'

interface Acknowledged {
  readonly value: string
  readonly resourceVersion: string
}

test(`${kills} kills under ${writers} writers lose no acknowledged write`, async (context) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'trireme-kill-'))
  /** The newest acknowledged write per object, and the value that was under way when the process died. */
  const acknowledged = new Map<string, Acknowledged>()
  const underWay = new Map<string, string>()
  let counter = 0
  let plane: ControlPlaneProcess = await startProcess({ dataDir })

  const write = async (index: number, target: ControlPlaneProcess, dispatcher: Agent): Promise<void> => {
    for (let round = 0; ; round++) {
      const name = `w${index}-${round % 3}`
      const value = String((counter += 1))
      underWay.set(name, value)
      const path = `${collection}/${name}`
      const body = configMap(name, { value })
      let answer = await call(target.http, 'PUT', path, { body, dispatcher })
      if (answer.status === 404) answer = await call(target.http, 'POST', collection, { body, dispatcher })
      assert.ok([200, 201].includes(answer.status), `${answer.status} ${answer.text}`)
      acknowledged.set(name, { value, resourceVersion: answer.json.metadata.resourceVersion })
      underWay.delete(name)
    }
  }

  for (let kill = 0; kill < kills; kill++) {
    const dispatcher = new Agent({ connections: writers })
    const before = counter
    const failures: unknown[] = []
    const writing = Array.from({ length: writers }, (_, index) =>
      write(index, plane, dispatcher).catch((error: unknown) => failures.push(error)),
    )
    const target = before + 100 + ((kill * 37) % 200)
    while (counter < target && failures.length === 0) await new Promise((resolve) => setImmediate(resolve))
    await plane.kill()
    await Promise.all(writing)
    for (const failure of failures) {
      assert.ok(!(failure instanceof assert.AssertionError), failure as Error)
    }
    await dispatcher.destroy()

    plane = await startProcess({ dataDir })
    const list = await call(plane.http, 'GET', collection)
    assert.equal(list.status, 200, list.text)
    const found = new Map(list.json.items.map((item) => [item.metadata.name, item]))
    for (const [name, { value, resourceVersion }] of acknowledged) {
      const item = found.get(name)
      assert.ok(item !== undefined, `kill ${kill}: ${name} is gone, acknowledged at ${resourceVersion}`)
      if (item.data.value === value) assert.equal(item.metadata.resourceVersion, resourceVersion, name)
      else {
        assert.equal(
          item.data.value,
          underWay.get(name),
          `kill ${kill}: ${name} went back behind an acknowledged write`,
        )
        assert.ok(Number(item.metadata.resourceVersion) > Number(resourceVersion))
      }
      acknowledged.set(name, { value: item.data.value as string, resourceVersion: item.metadata.resourceVersion })
    }
    for (const [name, item] of found) {
      if (!acknowledged.has(name) && name.startsWith('w')) {
        assert.equal(item.data.value, underWay.get(name), `${name} holds what nobody wrote`)
        acknowledged.set(name, { value: item.data.value as string, resourceVersion: item.metadata.resourceVersion })
      }
    }
    underWay.clear()
  }
  context.diagnostic(`${counter} writes tried, ${acknowledged.size} objects checked after each of ${kills} kills`)
  assert.equal(await plane.stop(), 0)
  rmSync(dataDir, { recursive: true, force: true })
})
