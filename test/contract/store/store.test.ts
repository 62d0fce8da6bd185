import { silentLogger } from '../../../storage/index.ts'
import { createNodeEnv } from '../../../raft/env-node.ts'
import { createMemoryStore } from '../../../storage/memory-store.ts'
import { report, testWith } from '../../external.ts'
import { etcdProgram, startEtcd } from './etcd-process.ts'
import { runStoreContract, storeContract } from './store-contract.ts'

runStoreContract('memory', async () => {
  const store = createMemoryStore({ env: createNodeEnv({ log: silentLogger }) })
  return { store, close: () => store.close() }
})

// 3.4.23 and the like: fixes that came later are off.
const oldEtcd = {
  tombstoneAtCompactRevision: false,
  previousValueOrCompacted: false,
  noProgressBeforeStart: false,
  progressBehindEvents: false,
  fullStatus: false,
}

testWith(etcdProgram, 'store contract: a real etcd', (path, context) => {
  const { name, version } = etcdProgram
  const onSkipped = (test: string, skipped: string): void =>
    report({ program: name, test, skipped, ...(version !== undefined && { version }) })
  return storeContract(context, () => startEtcd(path), oldEtcd, onSkipped)
})
