import type { ConfChange, MemberId, Membership } from '../types.ts'

const ascending = (a: MemberId, b: MemberId): number => (a < b ? -1 : a > b ? 1 : 0)

/**
 * One change at a time: any majority of the old voters meets any majority of the new ones (Raft thesis, section 4.1).
 * Pure and deterministic: every member gets the same result at the same index. Changes that would leave no voter,
 * or demote one (no operation of ours asks for it), leave the membership as it is.
 */
export function changeMembership(membership: Membership, change: ConfChange): Membership {
  const { member } = change
  const isVoter = membership.voters.includes(member)
  const isLearner = membership.learners.includes(member)
  const without = (ids: readonly MemberId[]): readonly MemberId[] => ids.filter((id) => id !== member)
  switch (change.type) {
    case 'addVoter':
      if (isVoter) return membership
      return { voters: [...membership.voters, member].sort(ascending), learners: without(membership.learners) }
    case 'addLearner':
      if (isVoter || isLearner) return membership
      return { voters: membership.voters, learners: [...membership.learners, member].sort(ascending) }
    case 'remove':
      if (isVoter && membership.voters.length === 1) return membership
      if (!isVoter && !isLearner) return membership
      return { voters: without(membership.voters), learners: without(membership.learners) }
  }
}
