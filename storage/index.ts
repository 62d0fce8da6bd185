export { openEmbeddedStore, type EmbeddedStore, type EmbeddedStoreOptions, type ReplicaInfo } from './embedded.ts'
export { openMemoryBackend } from './backend-memory.ts'
export * from './errors.ts'
export { createMemoryStore } from './memory-store.ts'
export * from './store.ts'
export {
  DiskError,
  silentLogger,
  type Clock,
  type Disk,
  type DiskFile,
  type Env,
  type Logger,
  type Random,
  type Scheduler,
  type Timer,
} from '../raft/index.ts'
