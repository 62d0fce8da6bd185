/**
 * Computes once, at the first call: for immutable data that start-up does not need. Not for state; a failure is not
 * remembered.
 */
export function lazy<T>(compute: () => T): () => T {
  let value: { readonly is: T } | undefined
  return () => {
    value ??= { is: compute() }
    return value.is
  }
}
