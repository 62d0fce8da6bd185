/** How long a committed batch waits for company before it is written to the row media. */
export const flushDelayMs = 50
/** Bytes of gathered changes that are written without waiting, and about the size of one media batch. */
export const flushBytesMax = 1024 * 1024
/**
 * Bytes committed and not yet written, above which a replica refuses proposals (ERR_OVERLOADED). Apply itself cannot
 * wait: what is committed already still comes in, at most raft's uncommittedBytesMax more.
 */
export const pendingBytesMax = 64 * 1024 * 1024
/** What one change costs beside its key and value, for the bounds above. */
export const changeOverheadBytes = 64
/** Rows, and bytes of values, in one slice of a scan: well under 10 ms of work. */
export const rowSliceRows = 1_000
export const rowSliceBytes = 256 * 1024
/** LevelDB per replica; three of them share one process of 150 MB. Up to two write buffers are in memory. */
export const levelWriteBufferBytes = 2 * 1024 * 1024
export const levelBlockCacheBytes = 1024 * 1024
export const levelOpenFilesMax = 64
/** Batch files of the disk-file media that are merged into one at the next checkpoint. */
export const batchFilesMax = 64
