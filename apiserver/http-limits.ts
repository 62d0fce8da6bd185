/** Bounds of the HTTP plumbing; each says what happens at the bound. */

/** Request body, before and after decompression. Beyond: 413 (kubernetes/apiserver server/config.go MaxRequestBodyBytes). */
export const requestBodyBytesMax = 3 * 1024 * 1024

/** Request bodies that one port holds at a time, from their first byte to the end of their answer. Beyond: 429. */
export const requestBodiesBytesMax = 256 * 1024 * 1024

/** Bytes of a refused body that are still read and thrown away, so that the client gets to read the answer. Beyond: cut. */
export const refusedBodyDrainBytesMax = 64 * 1024 * 1024

/** Bytes of an answer that may wait in one stream before bufferedBytes counts as "not drained". */
export const replyBufferedBytesLow = 64 * 1024

/** Request line and headers over HTTP/1.1, as Go's default. Beyond: 431. */
export const requestHeaderBytesMax = 1024 * 1024

/** Path segments that are looked at; no API path has more. Beyond: 404. */
export const pathSegmentsMax = 64

/** Open streams of one HTTP/2 connection (golang.org/x/net/http2's 250). Beyond: the client waits. */
export const concurrentStreamsMax = 250

/**
 * Node counts what one HTTP/2 connection holds (megabytes) and refuses new streams beyond it; its default of 10 refuses
 * a watch beside one big list. Each stream buffers little (see replyBufferedBytesLow), so this is never reached.
 */
export const sessionMemoryMegabytesMax = 1024

/** Idle HTTP/1.1 connections stay open longer than client-go's 90 s pool, so that the client closes first. */
export const keepAliveMs = 95_000

/** Running requests that are not long-running (kubernetes/apiserver maxinflight.go). Beyond: 429 with Retry-After: 1. */
export const readsInFlightMax = 400
export const mutationsInFlightMax = 200

/** Deadline of a request that is not long-running, and the most that ?timeout= can ask for. */
export const requestTimeoutMsDefault = 60_000

/** Writes are cut after this even when more was granted (kubernetes/apiserver endpoints/handlers/rest.go). Then 504. */
export const mutationTimeoutMsMax = 34_000

/** Open connections of one port, TLS handshakes included. Beyond: closed at once. */
export const connectionsMax = 16_384

/** A client has this long for its TLS handshake; then it is cut. */
export const handshakeMsMax = 15_000

/** A client has this long for request line and headers over HTTP/1.1 (then 408), and for a whole request (then cut). */
export const requestHeadersMsMax = 60_000
export const requestMsMax = 300_000
/** How often both are looked at. */
export const requestTimesCheckMs = 10_000

/** How long the rest of a body is read and dropped after its request was answered. Beyond: cut. */
export const refusedBodyDrainMsMax = 10_000

/** A watch that has ended gets this long to hand over its last bytes. Beyond: cut. */
export const watchLastBytesMs = 10_000

/** Warnings of one answer, and characters of one warning (kubernetes/apiserver endpoints/filters/warning.go). Beyond: dropped, cut. */
export const warningsMax = 64
export const warningLengthMax = 256

/** Requests in flight get this long to finish at shutdown; then they are cut. */
export const shutdownGraceMs = 10_000

/** How long the `etcd` health check waits for the store (kubernetes/apiserver storagebackend HealthcheckTimeout). Beyond: it fails. */
export const storeProbeMs = 2_000
