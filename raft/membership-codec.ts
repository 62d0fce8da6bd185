import type { Buffer } from 'node:buffer'
import { writeId } from './binary.ts'
import type { ByteReader } from './binary.ts'
import type { MemberId, Membership } from './types.ts'

/** `voters u16 | learners u16 | ids u64 …` (FORMATS.md). */
export function membershipSize(membership: Membership): number {
  return 4 + 8 * (membership.voters.length + membership.learners.length)
}

export function writeMembership(buffer: Buffer, membership: Membership, offset: number): number {
  let at = buffer.writeUInt16BE(membership.voters.length, offset)
  at = buffer.writeUInt16BE(membership.learners.length, at)
  for (const id of membership.voters) at = writeId(buffer, id, at)
  for (const id of membership.learners) at = writeId(buffer, id, at)
  return at
}

export function readMembership(reader: ByteReader): Membership {
  const voterCount = reader.uint16()
  const learnerCount = reader.uint16()
  const voters: MemberId[] = []
  const learners: MemberId[] = []
  for (let i = 0; i < voterCount; i++) voters.push(reader.id())
  for (let i = 0; i < learnerCount; i++) learners.push(reader.id())
  return { voters, learners }
}
