/** Bounds of the store. Every queue, batch and buffer has one, and says what happens when it is full. */

/** Operations of a transaction: the longest of compare, success and failure; a nested one has what its parent left. */
export const txnOpsMax = 128
/** Encoded bytes of one proposal, below raft's entryBytesMax; beyond it ERR_TOO_LARGE. etcd allows 1.5 MiB, an API object of 3 MiB must pass. */
export const requestBytesMax = 6 * 1024 * 1024
/** Bytes of recently written values kept in memory; the oldest go first and are read from the backend from then on. */
export const valueTailBytesMax = 8 * 1024 * 1024
/** Values read from the backend (some 12 µs each) in one turn of the event loop by a large read; then it yields. */
export const rangeValuesPerSlice = 250
/** Revisions, and changes, that a catching-up watcher gets in one batch (etcd: 1000 revisions). One revision is never split. */
export const watchReplayRevisionsMax = 1000
export const watchReplayEventsMax = 250
/** Rows that all catching-up watchers together look at in one turn of the event loop; then replay yields. */
export const watchReplayRowsPerSlice = 10_000
/** Rows that physical compaction looks at in one turn of the event loop (etcd's compaction-batch-limit: 1000). */
export const compactionRowsPerSlice = 1000
/** Rows that a state hash covers in one turn of the event loop. */
export const hashRowsPerSlice = 250
/** A shorter time to live is raised to this: 1.5 election timeouts, rounded up, as in etcd. */
export const leaseTtlSecondsMin = 2
/** A longer one is refused with ERR_LEASE_TTL_TOO_LARGE. */
export const leaseTtlSecondsMax = 9_000_000_000
/** Expired leases handed out for revocation in one call; the rest follows in the next. */
export const leaseExpiryBatchMax = 500
/** After this time an expired lease that is still there is handed out again: its revocation was lost. */
export const leaseRevokeRetryMs = 3000
/** Calls of LeaseClock.expired further apart than this mean that the process stood still: one election timeout. */
export const leaseStallMs = 1000
/** How often a leader looks for expired leases (etcd: 500 ms). */
export const leaseExpiryPeriodMs = 500
/** A replica that ended for want of space is started again after this time, as often as it takes. */
export const replicaRevivalMs = 5_000
/** Damaged directories of one replica that are kept for a person to look at; the oldest goes. */
export const damagedKeptMax = 2
