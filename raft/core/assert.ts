/** A broken invariant of our own: the replica must stop rather than go on with a state nobody has reasoned about. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`raft invariant broken: ${message}`)
}
