import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { majority, quorumValue, voteResult } from '../../../raft/core/quorum.ts'

test('quorum value equals the largest value that a majority of a naive count has reached', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20), { minLength: 1, maxLength: 9 }), (values) => {
      const needed = Math.floor(values.length / 2) + 1
      let naive = 0
      for (let value = 0; value <= 20; value++) {
        if (values.filter((reached) => reached >= value).length >= needed) naive = value
      }
      assert.equal(quorumValue([...values]), naive)
    }),
  )
})

test('a vote is won, lost or pending as a naive count of all outcomes says', () => {
  const ballot = fc.array(fc.constantFrom(true, false, undefined), { minLength: 1, maxLength: 7 })
  fc.assert(
    fc.property(ballot, (ballots) => {
      const voters = ballots.map((_, i) => BigInt(i + 1))
      const votes = new Map<bigint, boolean>([[99n, true]])
      ballots.forEach((vote, i) => vote !== undefined && votes.set(BigInt(i + 1), vote))
      const yes = ballots.filter((vote) => vote === true).length
      const no = ballots.filter((vote) => vote === false).length
      const half = ballots.length / 2
      const naive = yes > half ? 'won' : no >= half ? 'lost' : 'pending'
      assert.equal(voteResult(voters, votes), naive)
    }),
  )
})

test('two majorities always share a member', () => {
  for (let voters = 1; voters < 20; voters++) assert.ok(2 * majority(voters) > voters)
})
