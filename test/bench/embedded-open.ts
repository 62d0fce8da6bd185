import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createNodeEnv } from '../../raft/env-node.ts'
import { silentLogger } from '../../raft/env.ts'
import { openEmbeddedStore } from '../../storage/embedded.ts'

// Start-up of the embedded store: first start, and again with ROWS (10,000) rows of 2 KB, after a close and after a
// stop without checkpoint. node .build/…/test/bench/embedded-open.js
const rows = Number(process.env.ROWS ?? 10_000)
const replicas = process.env.REPLICAS === '1' ? 1 : 3
const call = () => ({ signal: new AbortController().signal })
const directory = await mkdtemp(join(tmpdir(), 'trireme-bench-'))
const keep = setInterval(() => undefined, 1_000)

async function timed<T>(what: string, run: () => Promise<T>): Promise<T> {
  const start = performance.now()
  const result = await run()
  console.log(`${what.padEnd(44)} ${(performance.now() - start).toFixed(1).padStart(8)} ms`)
  return result
}

function open() {
  return openEmbeddedStore({ directory, env: createNodeEnv({ log: silentLogger }), replicas })
}

try {
  const put = (i: number) => ({
    compare: [],
    success: [
      {
        type: 'put' as const,
        key: Buffer.from(`/registry/pods/default/pod-${i}`),
        value: Buffer.from(JSON.stringify({ i, text: `${i % 97} `.repeat(700) }).slice(0, 2048)),
      },
    ],
    failure: [],
  })
  let store = await timed(`first start, ${replicas} replicas`, open)
  await timed('first put', () => store.txn(put(0), call()))
  await timed(`${rows} puts of 2 KB, 64 at a time`, async () => {
    for (let i = 0; i < rows; i += 64) {
      await Promise.all(Array.from({ length: Math.min(64, rows - i) }, (_, j) => store.txn(put(i + j), call())))
    }
  })
  await timed('close', () => store.close())
  store = await timed('start again', open)
  console.log(`revision ${store.status().revision}, ${store.status().keyCount} keys`)
  console.log(`rss ${Math.round(process.memoryUsage.rss() / 1024 / 1024)} MB`)
  await store.close()
} finally {
  clearInterval(keep)
  await rm(directory, { recursive: true, force: true })
}
