/** Bounds of the write path. */

/** Rounds of compare-and-swap for one request; beyond it the client gets 409 and decides. */
export const casAttemptsMax = 256
/** Names tried for a generateName (KEP-4420); beyond it 409 AlreadyExists. */
export const generatedNameAttemptsMax = 8
/** A generated name is at most a DNS label: the prefix is cut to leave room for the suffix. */
export const generatedNameLengthMax = 63
export const generatedSuffixLength = 5
/** Length of fieldManager in bytes; beyond it 422. */
export const fieldManagerLengthMax = 128
/** Objects that one deletecollection deletes at the same time. */
export const deleteCollectionWorkers = 8
/** Seconds told to a client whose write found no leader. */
export const noLeaderRetrySeconds = 2
/** Life of an Event (kube-apiserver --event-ttl), and how long and for how many events one lease is shared. */
export const eventTtlSeconds = 3600
export const eventLeaseReuseMs = 60_000
export const eventLeaseEventsMax = 1_000
