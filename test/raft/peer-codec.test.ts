import assert from 'node:assert/strict'
import test from 'node:test'
import { RaftError } from '../../raft/errors.ts'
import { decodeFrame, encodeFrame } from '../../raft/peer-codec.ts'
import type { Frame } from '../../raft/peer-codec.ts'
import type { Entry } from '../../raft/types.ts'
import { SeededRandom } from '../simulation/env/random.ts'

const seed = Number(process.env['SEED'] ?? 1)

function frames(random: SeededRandom): Frame[] {
  const number = () => random.uint32() * random.between(0, 0x1f_ffff)
  const id = () => (BigInt(random.uint32()) << 32n) | BigInt(random.uint32())
  const flag = () => random.chance(0.5)
  const data = () => Buffer.from(random.bytes(random.between(0, 300)))
  const entry = (): Entry => ({ index: number(), term: number(), type: flag() ? 'normal' : 'confChange', data: data() })
  const entries = () => Array.from({ length: random.between(0, 5) }, entry)
  const ids = () => Array.from({ length: random.between(0, 5) }, id)
  const addressed = () => ({ from: id(), to: id(), term: number() })
  const known = () => ({ commit: number(), commitTerm: number() })
  const vote = () => ({ ...addressed(), lastIndex: number(), lastTerm: number(), transfer: flag(), ...known() })
  const beat = () => ({ ...addressed(), commit: number(), readId: id() })
  const response = () => ({ ...addressed(), index: number(), reject: flag(), hintIndex: number(), hintTerm: number() })
  return [
    { type: 'propose', ...addressed(), entries: entries() },
    {
      type: 'append',
      ...addressed(),
      previousIndex: number(),
      previousTerm: number(),
      entries: entries(),
      commit: number(),
    },
    { type: 'appendResponse', ...response() },
    { type: 'preVote', ...vote() },
    { type: 'vote', ...vote() },
    { type: 'preVoteResponse', ...addressed(), ...known(), reject: flag() },
    { type: 'voteResponse', ...addressed(), ...known(), reject: flag() },
    { type: 'heartbeat', ...beat() },
    { type: 'heartbeatResponse', ...beat() },
    {
      type: 'snapshot',
      ...addressed(),
      snapshot: { index: number(), term: number(), membership: { voters: ids(), learners: ids() } },
    },
    { type: 'readIndex', ...addressed(), readId: id() },
    { type: 'readIndexResponse', ...addressed(), readId: id(), index: number() },
    { type: 'timeoutNow', ...addressed() },
    { type: 'transferLeader', ...addressed(), transferee: id() },
    { type: 'snapshotChunk', sequence: number(), last: flag(), data: data() },
  ]
}

test(`every message survives encoding and decoding (seed ${seed})`, () => {
  const random = new SeededRandom(seed)
  for (let i = 0; i < 300; i++)
    for (const frame of frames(random)) assert.deepEqual(decodeFrame(encodeFrame(frame)), frame)
})

test(`a damaged or cut frame is refused with a code (seed ${seed})`, () => {
  const random = new SeededRandom(seed)
  for (let i = 0; i < 100; i++) {
    for (const frame of frames(random)) {
      const bytes = encodeFrame(frame)
      const damaged = Buffer.from(bytes)
      damaged[random.between(0, bytes.length - 1)]! ^= 1 << random.between(0, 7)
      assert.throws(() => decodeFrame(damaged), RaftError)
      assert.throws(() => decodeFrame(bytes.subarray(0, random.between(0, bytes.length - 1))), RaftError)
    }
  }
})

test('a frame above the bound is not made', () => {
  const frame: Frame = { type: 'snapshotChunk', sequence: 0, last: true, data: Buffer.alloc(17 * 1024 * 1024) }
  assert.throws(() => encodeFrame(frame), { code: 'ERR_OVERLOADED' })
})
