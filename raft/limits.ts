/** Bounds of the consensus layer. Every queue and buffer has one, and says what happens when it is full. */

/** Bytes of entries in one append message; a larger single entry still travels alone. */
export const appendBytesMax = 1024 * 1024
/** Append messages in flight to one follower before the leader waits for an answer. */
export const inflightMessagesMax = 256
/** Bytes of proposed, uncommitted entries at the leader; beyond it propose answers 'overloaded'. */
export const uncommittedBytesMax = 64 * 1024 * 1024
/** Bytes of one entry; etcd's default request limit is 1.5 MiB, an API object of 3 MiB must pass. */
export const entryBytesMax = 8 * 1024 * 1024
/** Heartbeat interval and election timeout, etcd's defaults. */
export const heartbeatMs = 100
export const electionTimeoutTicks = 10
/** Entries kept in memory behind the newest checkpoint so that a lagging follower needs no snapshot. */
export const catchUpEntries = 5_000
/** Applied entries, and WAL bytes, after which the driver asks the state machine for a checkpoint. */
export const checkpointEntries = 5_000
export const checkpointWalBytes = 16 * 1024 * 1024
/**
 * Bytes of entries that stay behind the marker of a member stopped in good order: what one that was a little behind then
 * still gets from the log. Whole segments go, so the next start may have to read somewhat more.
 */
export const stopCatchUpBytes = 512 * 1024
/** WAL segments: the first is small so that a first start stays fast. */
export const walFirstSegmentBytes = 1024 * 1024
export const walSegmentBytes = 16 * 1024 * 1024
/** Bytes that appends may wait in front of the running WAL write; beyond it append rejects ERR_OVERLOADED. */
export const walQueueBytesMax = 2 * uncommittedBytesMax
/** Bytes of one WAL batch, unless a single append is larger; what does not fit goes in the next batch. */
export const walBatchBytesMax = 16 * 1024 * 1024
/** Bytes of one peer frame; a peer that announces more is cut off. */
export const frameBytesMax = 16 * 1024 * 1024
/** Messages of peers waiting for the node's loop; beyond it they are dropped, as a network may. */
export const inboxMessagesMax = 4096
/** Proposals waiting at one member for their local apply; beyond it propose rejects ERR_OVERLOADED. */
export const pendingProposalsMax = 20_000
/** Linearizable reads waiting at one member; beyond it readIndex rejects ERR_OVERLOADED. */
export const pendingReadsMax = 50_000
/** Bytes of entries kept in memory behind the newest checkpoint for lagging followers. */
export const catchUpBytesMax = 16 * 1024 * 1024
/** A read round without an answer is tried again, with a new id, after this long. */
export const readRetryMs = 500
/** The longest the node's loop works before it lets other things run. */
export const sliceMsMax = 5
/** How far back a leader remembers which forwarded proposals of a member it has taken; older ones are dropped. */
export const forwardedWindow = 65_536
