/** A broken invariant is a bug of this program: it stops the replica rather than let it go on with wrong state. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${message}`)
}
