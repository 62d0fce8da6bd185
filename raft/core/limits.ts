import { appendBytesMax, inflightMessagesMax, uncommittedBytesMax } from '../limits.ts'

/** Bounds that concern the core alone; each is an option of createRaftCore with this default. */
export interface CoreLimits {
  /** Bytes of entries in one append or forwarded proposal; a larger single entry travels alone. */
  readonly appendBytesMax: number
  /** Append messages in flight to one follower; full = the leader waits for an answer. */
  readonly inflightMessagesMax: number
  /** Bytes of entries in flight to one follower; full = the leader waits. A first message always goes. */
  readonly inflightBytesMax: number
  /** Bytes of uncommitted entries at the leader, or of proposals a follower forwards in one Ready; full = 'overloaded'. */
  readonly uncommittedBytesMax: number
  /** Reads waiting for a quorum round at one member; full = the new read is dropped (readState index -1). */
  readonly pendingReadsMax: number
  /** Bytes of committed entries in one Ready; the rest comes in the next. A first entry always goes. */
  readonly committedBytesMax: number
}

export const defaultCoreLimits: CoreLimits = {
  appendBytesMax,
  inflightMessagesMax,
  inflightBytesMax: 32 * 1024 * 1024,
  uncommittedBytesMax,
  pendingReadsMax: 16_384,
  committedBytesMax: 8 * 1024 * 1024,
}

/** What an entry costs beside its data (index, term, type, framing), so that bounds in bytes also bound counts. */
export const entryOverheadBytes = 24
