export type RaftErrorCode =
  /** Not proposed: nobody leads. Try again, here or at another member. */
  | 'ERR_NO_LEADER'
  /** Not proposed: too many uncommitted bytes or waiting proposals. Try again later. */
  | 'ERR_OVERLOADED'
  /** Proposed, and whether it commits is not known: leader lost, deadline passed, or the member stopped. */
  | 'ERR_OUTCOME_UNKNOWN'
  /** Not proposed: this member is stopped or broken. */
  | 'ERR_STOPPED'
  /** The log or a snapshot on disk is damaged beyond a torn tail; the replica refuses to start. */
  | 'ERR_CORRUPT'
  /** Written by a newer format version than this program knows. */
  | 'ERR_FORMAT'
  /** The caller's signal aborted before the request was proposed. */
  | 'ERR_ABORTED'

export class RaftError extends Error {
  readonly code: RaftErrorCode
  constructor(code: RaftErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'RaftError'
    this.code = code
  }
}
