/** Bounds of the API layer. Every queue, cache and wait has one, and says what happens when it is full. */

/** Objects fetched per page while the watch cache loads: small enough not to hold the event loop. */
export const cacheLoadPageItems = 500
/** How long a read waits for a revision that is not in yet; then 504 ResourceVersionTooLarge. */
export const freshnessWaitMs = 3_000
/** While someone waits, the store is asked this often how far it is: writes outside /registry/ move its revision too. */
export const progressPollMs = 100
/** Otherwise this often, so that bookmarks of an idle cluster move on. */
export const progressIdleMs = 10_000
/** Pause before a store watch that ended with an error is opened again. */
export const cacheRetryMs = 200

/** Event history per resource: never fewer than the first (once there were that many), never more than the second. */
export const windowEventsMin = 100
export const windowEventsMax = 102_400
/** Between the two, events older than this leave: one bookmark period and a quarter. */
export const windowAgeMs = 75_000
/** Bytes of superseded objects that one resource's history keeps alive; beyond it the oldest events leave early. */
export const windowBytesMax = 32 * 1024 * 1024
/** What one event costs beside the bytes of its previous object. */
export const windowEventOverheadBytes = 256

/** Roots kept for the next pages of lists; the oldest leave, their pages are then read from the store. */
export const retainedRootsMax = 64
export const retainedRootAgeMs = 300_000
/** Bytes of superseded objects that the retained roots of one resource keep alive. */
export const retainedBytesMax = 32 * 1024 * 1024

/** Encodings that are not a splice (other versions, …), shared by all readers; least recently used leave. */
export const encodingCacheBytesMax = 16 * 1024 * 1024
/** The same of protobuf messages. */
export const protobufCacheBytesMax = 16 * 1024 * 1024

/** Size of the pieces in which lists are written. */
export const listChunkBytes = 128 * 1024
/** A list stops writing above this many bytes the client has not taken, and goes on when its socket drained. */
export const listBufferedBytesMax = 512 * 1024
/** Longest stretch of work without giving the event loop back; loops over many objects take turns with it. */
export const sliceMs = 6
/** What such a loop may use before it has to wait for its turn. */
export const sliceHeadStartMs = 1

/**
 * A watcher above this many undrained bytes (socket included) gets nothing more until its socket drained; then it
 * reads on from the resource's history, or is told 410 when that has moved past it.
 */
export const watchBufferedBytesMax = 256 * 1024
/**
 * A watcher that had to stop there and has not drained after so long is cut off, like a client that went away: it comes
 * again from the last revision it has read.
 */
export const watchStallMs = 10_000
/** Frames gathered into one socket write: a copy for each watcher. */
export const watchWriteBytes = 64 * 1024
/** Frames from here on are not gathered: one buffer serves all watchers, however many of them are slow. */
export const watchSharedFrameBytesMin = 4 * 1024
/** Bytes of history read from the store at a time for a watch that starts before the window. */
export const replayBytesMax = 1024 * 1024

/** Bookmarks: about every minute per watcher, jittered by up to the second number, and shortly before the deadline. */
export const bookmarkPeriodMs = 60_000
export const bookmarkJitterMs = 5_000
export const bookmarkBeforeDeadlineMs = 2_000
/** Without timeoutSeconds a watch lives for a random time in [1, 2) times this. */
export const watchTimeoutMinSeconds = 1_800

/** Items of one page however large `limit` is asked for an exact read from the store. */
export const storePageItems = 1_000
/** Characters of a selector; a longer one is refused with 400. */
export const selectorLengthMax = 64 * 1024
