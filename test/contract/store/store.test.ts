import { silentLogger } from '../../../storage/index.ts'
import { createNodeEnv } from '../../../raft/env-node.ts'
import { createMemoryStore } from '../../../storage/memory-store.ts'
import { testWith } from '../../external.ts'
import { etcdProgram, startEtcd } from './etcd-process.ts'
import { runStoreContract, storeContract } from './store-contract.ts'

runStoreContract('memory', async () => {
  const store = createMemoryStore({ env: createNodeEnv({ log: silentLogger }) })
  return { store, close: () => store.close() }
})

// 3.4.23 and the like: fixes that came later are off.
testWith(etcdProgram, 'store contract: a real etcd', (path, context) =>
  storeContract(context, () => startEtcd(path), {
    tombstoneAtCompactRevision: false,
    previousValueOrCompacted: false,
    noProgressBeforeStart: false,
    progressBehindEvents: false,
    fullStatus: false,
  }),
)
