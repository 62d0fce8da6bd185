/**
 * Stands between the encoder and the store: what lies at rest may be another form of the bytes (encryption). Bound to
 * the key, so that a value moved under another key does not decode.
 */
export interface ValueTransformer {
  toStorage(value: Uint8Array, key: string): Uint8Array
  fromStorage(value: Uint8Array, key: string): Uint8Array
}

export const identityTransformer: ValueTransformer = {
  toStorage: (value) => value,
  fromStorage: (value) => value,
}
