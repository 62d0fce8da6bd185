/** Every watcher of a kind sees the same history, across reconnects and a compaction. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Agent } from 'undici'
import { call, configMap, type ControlPlaneProcess, startProcess, watch } from '../control-plane.ts'

const writers = 8
const writesPerWriter = 150
const watchers = 20
const collection = '/api/v1/namespaces/default/configmaps'

let plane: ControlPlaneProcess

before(async () => {
  plane = await startProcess({ flags: ['--etcd-compaction-interval', '2s'] })
})

after(async () => {
  assert.equal(await plane.stop(), 0)
})

test('8 writers, 20 watchers with a forced reconnect each and a compaction: identical sequences, none lost, none twice', async () => {
  const start = (await call(plane.http, 'GET', collection)).json.metadata.resourceVersion
  const ends = new AbortController()
  let lastRevision = Number.POSITIVE_INFINITY

  const watcher = async (index: number): Promise<string[]> => {
    const dispatcher = new Agent({ connections: 1, bodyTimeout: 0, headersTimeout: 0 })
    const seen: string[] = []
    let from = start
    const reconnectAfter = 40 + index * 45
    let reconnected = false
    for (;;) {
      const cut = new AbortController()
      const signal = AbortSignal.any([cut.signal, ends.signal])
      for await (const event of watch(plane.http, `${collection}?watch=true&resourceVersion=${from}`, {
        signal,
        dispatcher,
      })) {
        assert.notEqual(event.type, 'ERROR', JSON.stringify(event.object))
        from = event.object.metadata.resourceVersion
        seen.push(`${event.type} ${event.object.metadata.name} ${from}`)
        if (!reconnected && seen.length === reconnectAfter) {
          reconnected = true
          cut.abort()
          break
        }
        if (Number(from) >= lastRevision) {
          assert.ok(
            reconnected,
            `watcher ${index} was to reconnect after ${reconnectAfter} events and saw ${seen.length}`,
          )
          await dispatcher.destroy()
          return seen
        }
      }
    }
  }

  const writer = async (index: number): Promise<void> => {
    const dispatcher = new Agent({ connections: 1 })
    for (let write = 0; write < writesPerWriter; write++) {
      const name = `w${index}-${write % 10}`
      const kind = write % 5
      if (kind === 4) {
        const answer = await call(plane.http, 'DELETE', `${collection}/${name}`, { dispatcher })
        assert.ok([200, 404].includes(answer.status), answer.text)
        continue
      }
      const created = await call(plane.http, 'POST', collection, {
        body: configMap(name, { write: String(write) }),
        dispatcher,
      })
      if (created.status === 201) continue
      assert.equal(created.status, 409, created.text)
      const updated = await call(plane.http, 'PUT', `${collection}/${name}`, {
        body: configMap(name, { write: String(write) }),
        dispatcher,
      })
      assert.equal(updated.status, 200, updated.text)
    }
    await dispatcher.close()
  }

  const watching = Array.from({ length: watchers }, (_, index) => watcher(index))
  await Promise.all(Array.from({ length: writers }, (_, index) => writer(index)))
  await compacted(start)
  const last = await call(plane.http, 'POST', collection, { body: configMap('last') })
  lastRevision = Number(last.json.metadata.resourceVersion)
  // Watchers that have already read everything need one more event to notice that it was the last.
  const nudge = await call(plane.http, 'POST', collection, { body: configMap('nudge') })
  lastRevision = Number(nudge.json.metadata.resourceVersion)
  const sequences = await Promise.all(watching)
  ends.abort()

  const [first, ...others] = sequences
  assert.ok(first !== undefined && first.length > 500, `saw ${first?.length} events`)
  assert.equal(new Set(first).size, first.length, 'no event twice')
  for (const other of others) assert.deepEqual(other, first)
})

/** Waits, by asking, until the revision can no longer be read. */
async function compacted(revision: string): Promise<void> {
  for (;;) {
    const answer = await call(plane.http, 'GET', `${collection}?resourceVersion=${revision}&resourceVersionMatch=Exact`)
    if (answer.status === 410) return
    assert.equal(answer.status, 200, answer.text)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
