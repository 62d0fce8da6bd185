import type { Index, MemberId } from '../types.ts'

/** Members needed for a decision among `voters` voters: 1 of 1, 2 of 2, 2 of 3, 3 of 4, 3 of 5. */
export function majority(voters: number): number {
  return Math.floor(voters / 2) + 1
}

/**
 * The largest value that a majority has reached: with [7, 5, 9] it is 7, with [7, 5, 9, 3] it is 5.
 *
 * @param values - One per voter, in any order; sorted in place (callers pass a scratch array). At least one.
 */
export function quorumValue(values: Index[]): Index {
  // Insertion sort, ascending: there are rarely more than seven, and no comparator is called.
  for (let i = 1; i < values.length; i++) {
    const value = values[i]!
    let j = i - 1
    for (; j >= 0 && values[j]! > value; j--) values[j + 1] = values[j]!
    values[j + 1] = value
  }
  return values[values.length - majority(values.length)]!
}

export type VoteResult = 'pending' | 'won' | 'lost'

/** 'lost' as soon as a majority has become impossible; votes of members that are no voters do not count. */
export function voteResult(voters: readonly MemberId[], votes: ReadonlyMap<MemberId, boolean>): VoteResult {
  let granted = 0
  let missing = 0
  for (const voter of voters) {
    const vote = votes.get(voter)
    if (vote === undefined) missing++
    else if (vote) granted++
  }
  const needed = majority(voters.length)
  if (granted >= needed) return 'won'
  return granted + missing >= needed ? 'pending' : 'lost'
}
