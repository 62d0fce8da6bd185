import { Buffer } from 'node:buffer'
import { bufferOf } from './binary.ts'
import type { MemberId } from './types.ts'

/** `version u8 = 1 | member u64 | incarnation u32 | sequence u48` in front of what was proposed (FORMATS.md). */
export const proposalHeaderBytes = 19
const version = 1

export function encodeProposal(id: ProposalId, data: Uint8Array): Buffer {
  const buffer = Buffer.allocUnsafe(proposalHeaderBytes + data.length)
  buffer.writeUInt8(version, 0)
  buffer.writeBigUInt64BE(id.member, 1)
  buffer.writeUInt32BE(id.incarnation, 9)
  buffer.writeUIntBE(id.sequence, 13, 6)
  buffer.set(data, proposalHeaderBytes)
  return buffer
}

export interface ProposalId {
  readonly member: MemberId
  readonly incarnation: number
  readonly sequence: number
}

/** Undefined when there is none, or one of a newer version. */
export function readProposalId(entryData: Uint8Array): ProposalId | undefined {
  const buffer = bufferOf(entryData)
  if (buffer.length < proposalHeaderBytes || buffer[0] !== version) return undefined
  return {
    member: buffer.readBigUInt64BE(1),
    incarnation: buffer.readUInt32BE(9),
    sequence: buffer.readUIntBE(13, 6),
  }
}

export interface DecodedProposal {
  /** As proposed: a view of the entry's data. */
  readonly data: Uint8Array
  /** Set when the proposal was made by the asking member in its present life. */
  readonly sequence: number | undefined
}

/** Undefined when a newer version wrote the entry, or nobody of ours did. */
export function decodeProposal(
  entryData: Uint8Array,
  own: { readonly member: MemberId; readonly incarnation: number },
): DecodedProposal | undefined {
  const buffer = bufferOf(entryData)
  if (buffer.length < proposalHeaderBytes || buffer[0] !== version) return undefined
  const ours = buffer.readUInt32BE(9) === own.incarnation && buffer.readBigUInt64BE(1) === own.member
  return {
    data: buffer.subarray(proposalHeaderBytes),
    sequence: ours ? buffer.readUIntBE(13, 6) : undefined,
  }
}
