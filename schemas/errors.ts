export type SchemaErrorCode =
  /** Not JSON, or not UTF-8. */
  | 'ERR_SYNTAX'
  /** Nested deeper than limits allow. */
  | 'ERR_DEPTH'
  /** A value of the wrong JSON type for its field; the message reads as Go's decoder puts it. */
  | 'ERR_TYPE'
  /** A patch that cannot be applied to this object. */
  | 'ERR_PATCH'
  /** A JSON patch `test` that did not hold. */
  | 'ERR_PATCH_TEST'

export class SchemaError extends Error {
  readonly code: SchemaErrorCode
  /** "spec.containers[0].name", when there is one. */
  readonly path: string | undefined
  constructor(code: SchemaErrorCode, message: string, options?: { cause?: unknown; path?: string }) {
    super(message, { cause: options?.cause })
    this.name = 'SchemaError'
    this.code = code
    this.path = options?.path
  }
}
