import type { ApiReply } from './types.ts'

/** What a client's certificate says. `trusted`: signed by our authority and inside its validity when the connection opened. */
export interface PeerCertificate {
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly trusted: boolean
}

/**
 * One HTTP request and its answer, as the server adapter hands it to the API: nothing decoded, nothing believed.
 * The same over HTTP/1.1, HTTP/2, TLS and plain loopback.
 */
export interface Exchange {
  /** Upper case. */
  readonly method: string
  /** Path and query as the client sent them, percent-encoding untouched. */
  readonly target: string
  /** Names in lower case; several values of one name are joined with ", ". */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Each value of a header that may be given several times, in order; a comma inside one does not split it. */
  values(name: string): readonly string[]
  /** Which listener took it: TLS, or plain HTTP on loopback. */
  readonly listener: 'secure' | 'loopback'
  readonly peer: PeerCertificate | undefined
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal
  /**
   * Reads the whole body, decompressed. The same promise on every call.
   * @throws ApiError 413 above requestBodyBytesMax (compressed or not), 415 for an unknown encoding, 400 for a broken one.
   */
  body(): Promise<Uint8Array>
  readonly reply: HttpReply
}

/** The whole answer; ApiReply is the part of it that handlers see. */
export interface HttpReply extends ApiReply {
  /** For any answer to come; without effect once the head is out. */
  setHeader(name: string, value: string | readonly string[]): void
  /** send() or stream() was called. */
  readonly started: boolean
  /** Nothing more will be written: ended, cut, or the client went away. */
  readonly finished: boolean
  /** Of the answer that was begun; 0 while there is none. */
  readonly status: number
  /** Calls back once, when `finished` becomes true; at once if it is. */
  onFinished(run: () => void): void
  /** Cuts the stream (HTTP/2) or connection (HTTP/1.1) so that the client sees a broken answer. */
  destroy(): void
}

export type ExchangeHandler = (exchange: Exchange) => void
