import assert from 'node:assert/strict'
import test from 'node:test'
import { MemoryReply, settle, until } from '../doubles.ts'
import { configMap, createReadApi, lines, type ReadApi } from './read-api.ts'

/** One write, as the log of the run keeps it. */
interface Write {
  readonly revision: number
  readonly namespace: string
  readonly name: string
  readonly label: string | undefined
}

interface Watched {
  readonly reply: MemoryReply
  readonly after: number
  readonly namespace: string
  readonly label: string
  readonly slow: boolean
}

/** What a watch from `after` must say: the plainest possible reading of the log. */
function expectedStory(log: readonly Write[], watch: Watched): string[] {
  const selected = new Map<string, boolean>()
  const story: string[] = []
  for (const { revision, namespace, name, label } of log) {
    if (watch.namespace !== '' && namespace !== watch.namespace) continue
    const key = `${namespace}/${name}`
    const was = selected.get(key) ?? false
    const is = label !== undefined && (watch.label === '' || label === watch.label)
    selected.set(key, is)
    if (revision <= watch.after || (!was && !is)) continue
    story.push(`${is ? (was ? 'MODIFIED' : 'ADDED') : 'DELETED'} ${key} ${revision}`)
  }
  return story
}

function told(watch: Watched): string[] {
  return lines(watch.reply).map(
    ({ type, object }) =>
      `${type} ${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''} ${object.metadata.resourceVersion ?? ''}`,
  )
}

async function run(api: ReadApi): Promise<void> {
  const pick = (below: number): number => Math.floor(api.env.random.float() * below)
  const log: Write[] = []
  const watches: Watched[] = []
  let revision = 1
  for (let step = 0; step < 400; step++) {
    const namespace = `ns-${pick(3)}`
    const name = `cm-${pick(6)}`
    const exists = log.findLast((write) => write.namespace === namespace && write.name === name)?.label !== undefined
    if (exists && pick(4) === 0) {
      revision = await api.remove('configmaps', namespace, name)
      log.push({ revision, namespace, name, label: undefined })
    } else {
      const label = `l${pick(3)}`
      revision = await api.put(
        'configmaps',
        configMap(name, { namespace, labels: { l: label }, data: 'y'.repeat(pick(9_000)) }),
      )
      log.push({ revision, namespace, name, label })
    }
    if (pick(8) === 0) {
      const watch: Watched = {
        reply: new MemoryReply(),
        after: 1 + pick(revision),
        namespace: pick(2) === 0 ? '' : `ns-${pick(3)}`,
        label: pick(2) === 0 ? '' : `l${pick(3)}`,
        slow: pick(3) === 0,
      }
      watch.reply.memory.blocked = watch.slow
      watches.push(watch)
      const selector = watch.label === '' ? '' : `&labelSelector=l%3D${watch.label}`
      const query = `resourceVersion=${watch.after}${selector}`
      api.ask('watch', 'configmaps', { namespace: watch.namespace, query, reply: watch.reply })
    }
    if (pick(3) === 0) await settle(1 + pick(3))
    for (const watch of watches) if (watch.slow && pick(5) === 0) watch.reply.memory.drain()
  }
  for (const watch of watches) {
    const expected = expectedStory(log, watch)
    await until(() => {
      watch.reply.memory.drain()
      return lines(watch.reply).length >= expected.length
    }, `watch after ${watch.after}`)
    await settle(2)
    assert.deepEqual(told(watch), expected, `after ${watch.after} in "${watch.namespace}" label "${watch.label}"`)
  }
  await cacheEqualsStore(api)
}

/** B58: what the cache lists is what the store holds. */
async function cacheEqualsStore(api: ReadApi): Promise<void> {
  const signal = new AbortController().signal
  await api.cache.fresh({ signal })
  const range = await api.store.range(
    { key: Buffer.from('/registry/configmaps/'), rangeEnd: Buffer.from('/registry/configmaps0') },
    { signal },
  )
  assert.deepEqual(
    api.cache
      .list('/registry/configmaps/')
      .map((object) => [object.key, object.revision, Buffer.from(object.stored).toString()]),
    range.kvs.map((kv) => [Buffer.from(kv.key).toString(), kv.modRevision, Buffer.from(kv.value).toString()]),
  )
}

const firstSeed = Number(process.env['SEED'] ?? 1)
const seeds = process.env['SEED'] === undefined ? [1, 2, 3, 4, 5, 6] : [firstSeed]

for (const seed of seeds) {
  test(`B58 watches from anywhere tell exactly the log, and the cache equals the store (SEED=${seed})`, async () => {
    // A window of the usual size, and one so small that most watches start in the store's history.
    const limits = seed % 2 === 0 ? { eventsMin: 100, eventsMax: 150, ageMs: 1, bytesMax: 1e9 } : undefined
    // With a clock that moves at every look, loops are cut into slices all the time.
    const tickMs = seed % 3 === 0 ? 4 : 0
    const api = await createReadApi({ seed, tickMs, ...(limits !== undefined && { limits }) })
    try {
      await run(api)
    } finally {
      await api.close()
    }
  })
}
