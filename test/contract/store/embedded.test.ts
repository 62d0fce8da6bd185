import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createNodeEnv } from '../../../raft/env-node.ts'
import { openEmbeddedStore, openMemoryBackend, silentLogger } from '../../../storage/index.ts'
import { runStoreContract } from './store-contract.ts'

for (const replicas of [3, 1] as const) {
  for (const [backend, openBackend] of [
    ['LevelDB', undefined],
    ['memory backend', openMemoryBackend],
  ] as const) {
    if (replicas === 1 && openBackend !== undefined) continue
    runStoreContract(`embedded, ${replicas} replicas, ${backend}`, async () => {
      const directory = await mkdtemp(join(tmpdir(), 'trireme-contract-'))
      const store = await openEmbeddedStore({
        directory,
        replicas,
        env: createNodeEnv({ log: silentLogger }),
        ...(openBackend === undefined ? {} : { openBackend }),
      })
      return {
        store,
        close: async () => {
          await store.close()
          await rm(directory, { recursive: true, force: true })
        },
      }
    })
  }
}
