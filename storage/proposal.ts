import type { LeaseId, Revision, TxnRequest } from './store.ts'
import { StorageError } from './errors.ts'
import { requestBytesMax } from './limits.ts'
import { ProposalReader, ProposalWriter } from './proposal-codec.ts'

/** One replicated command: the data of a normal log entry. Bytes: FORMATS.md, section Proposal. */
export type Proposal =
  | { readonly type: 'txn'; readonly request: TxnRequest }
  | { readonly type: 'compact'; readonly revision: Revision }
  /** The proposer has chosen the id: apply knows no randomness. */
  | { readonly type: 'leaseGrant'; readonly id: LeaseId; readonly ttlSeconds: number }
  | { readonly type: 'leaseRevoke'; readonly id: LeaseId }

export const proposalFormatVersion = 1

const kinds = { txn: 1, compact: 2, leaseGrant: 3, leaseRevoke: 4 } as const

/** For a caller. @throws StorageError ERR_TOO_LARGE above requestBytesMax. */
export function encodeRequest(proposal: Proposal): Uint8Array {
  const data = encodeProposal(proposal)
  if (data.length <= requestBytesMax) return data
  throw new StorageError('ERR_TOO_LARGE', `a request of ${data.length} bytes, allowed: ${requestBytesMax}`)
}

/** The request has passed checkTxn (which bounds its depth). The values are copied into the result. */
export function encodeProposal(proposal: Proposal): Uint8Array {
  const writer = new ProposalWriter()
  writer.byte(proposalFormatVersion)
  writer.byte(kinds[proposal.type])
  switch (proposal.type) {
    case 'txn':
      writer.txn(proposal.request)
      break
    case 'compact':
      // Refused by apply, whatever it is below 1.
      writer.number(Math.max(0, proposal.revision))
      break
    case 'leaseGrant':
      writer.int64(proposal.id)
      writer.number(Math.min(Math.max(0, proposal.ttlSeconds), Number.MAX_SAFE_INTEGER))
      break
    case 'leaseRevoke':
      writer.int64(proposal.id)
      break
  }
  return writer.finish()
}

/**
 * Keys and values of the result are pieces of `data`, which nobody may change afterwards.
 *
 * @throws StorageError ERR_FORMAT for a version this program does not know, ERR_CORRUPT for anything else that
 *   encodeProposal cannot have written. Either is fatal for a replica: skipping an entry would let replicas diverge.
 */
export function decodeProposal(data: Uint8Array): Proposal {
  const reader = new ProposalReader(data)
  const version = reader.byte()
  if (version !== proposalFormatVersion) {
    throw new StorageError('ERR_FORMAT', `proposal of format ${version}, this program knows ${proposalFormatVersion}`)
  }
  const proposal = decodeKind(reader, reader.byte())
  reader.end()
  return proposal
}

function decodeKind(reader: ProposalReader, kind: number): Proposal {
  switch (kind) {
    case kinds.txn:
      return { type: 'txn', request: reader.txn() }
    case kinds.compact:
      return { type: 'compact', revision: reader.number() }
    case kinds.leaseGrant:
      return { type: 'leaseGrant', id: reader.int64(), ttlSeconds: reader.number() }
    case kinds.leaseRevoke:
      return { type: 'leaseRevoke', id: reader.int64() }
    default:
      throw new StorageError('ERR_CORRUPT', `proposal of unknown kind ${kind}`)
  }
}
