/**
 * CPU of the two hot read paths: a list of 5,000 pods of about 2 KB into 128 KiB pieces, and one event handed to 1,000
 * watchers. `node dist/test/bench/list-encode.js`
 */
import { performance } from 'node:perf_hooks'
import { createNodeEnv } from '../../raft/env-node.ts'
import { createObjectCache } from '../../apiserver/cache/object-cache.ts'
import { createResponder } from '../../apiserver/encoding/responder.ts'
import { createReadHandlers } from '../../apiserver/handlers/read-handlers.ts'
import { createResourceRegistry } from '../../apiserver/registry.ts'

import type { RequestScope } from '../../apiserver/types.ts'
import { encodeJson, resources, typeOf, type ObjectValue } from '../../schemas/index.ts'
import { createMemoryStore, silentLogger } from '../../storage/index.ts'
import { createRequest, MemoryReply } from '../apiserver/doubles.ts'
import { readStrategy } from '../apiserver/read/read-api.ts'

const podCount = 5_000
const watcherCount = 1_000
const rounds = 20

const signal = new AbortController().signal
const env = createNodeEnv({ log: silentLogger })
const store = createMemoryStore({ env })
const registry = createResourceRegistry({
  resources: resources(),
  strategyFor: (resource) => readStrategy(resource.plural),
})
const cache = createObjectCache({ store, registry, env, log: silentLogger })
const responder = createResponder({ env, registry })
const handlers = createReadHandlers({ env, store, cache, responder, registry })
await cache.ready

function scopeOf(plural: string): RequestScope {
  const scope = registry.find('', 'v1', plural, '')
  if (scope === undefined) throw new Error(`${plural} is not served`)
  return scope
}
const scope = scopeOf('pods')

const gvk = scope.resource.storageVersion
const podType = typeOf(gvk)
if (podType === undefined) throw new Error('no type for pods')

function pod(index: number, phase: string): ObjectValue {
  const name = `pod-${String(index).padStart(5, '0')}`
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${index}`,
      labels: { app: 'bench' },
      annotations: { note: 'x'.repeat(1_600) },
    },
    spec: { containers: [{ name: 'main', image: 'registry.example/image:1' }], nodeName: `node-${index % 10}` },
    status: { phase },
  }
}

async function put(object: ObjectValue): Promise<number> {
  const metadata = object['metadata'] as ObjectValue
  const key = Buffer.from(`/registry/pods/default/${String(metadata['name'])}`)
  const value = encodeJson(object, podType!, gvk)
  const result = await store.txn({ compare: [], success: [{ type: 'put', key, value }], failure: [] }, { signal })
  return result.revision
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
const cpuMs = (since: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1000
}

for (let index = 0; index < podCount; index++) await put(pod(index, 'Running'))

const listCpu: number[] = []
let listBytes = 0
for (let round = 0; round < rounds; round++) {
  const reply = new MemoryReply()
  const before = process.cpuUsage()
  await handlers.list(scope, createRequest({ verb: 'list', resource: 'pods' }), reply)
  listCpu.push(cpuMs(before))
  listBytes = reply.memory.chunks.reduce((sum, chunk) => sum + chunk.length, 0)
}

const replies = Array.from({ length: watcherCount }, () => new MemoryReply())
const query = `resourceVersion=${cache.revision}`
for (const reply of replies)
  void handlers.watch(scope, createRequest({ verb: 'watch', resource: 'pods' }, { query }), reply)
await new Promise((resolve) => setImmediate(resolve))

const fanOutMs: number[] = []
for (let round = 0; round < rounds; round++) {
  const expected = replies[0]!.memory.chunks.length + 1
  const done = (): boolean => replies.every((reply) => reply.memory.chunks.length >= expected)
  const revision = await put(pod(round, 'Succeeded'))
  const start = performance.now()
  await cache.waitUntil(revision, { signal })
  while (!done()) await new Promise((resolve) => setImmediate(resolve))
  fanOutMs.push(performance.now() - start)
}

handlers.close()
cache.close()
await store.close()
process.stdout.write(
  `${JSON.stringify({
    listPods: podCount,
    listBytes,
    listCpuMsMedian: median(listCpu),
    watchers: watcherCount,
    fanOutMsMedian: Number(median(fanOutMs).toFixed(2)),
  })}\n`,
)
