/** Adds to a list what may be long: spread arguments stand on the stack, which ends at some ten thousand of them. */
export function appendAll<Item>(to: Item[], more: Iterable<Item>): void {
  for (const item of more) to.push(item)
}
