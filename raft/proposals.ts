import { RaftError } from './errors.ts'
import { pendingProposalsMax, uncommittedBytesMax } from './limits.ts'
import { encodeProposal } from './proposal-id.ts'
import type { ApplyResult } from './seams.ts'
import type { ConfChange, MemberId, Membership } from './types.ts'
import { Waiting, aborted } from './waiting.ts'

type Outcome = 'accepted' | 'noLeader' | 'overloaded' | 'pending'

interface Pending {
  readonly waiting: Waiting<ApplyResult>
  readonly bytes: number
}

/**
 * The proposals made here whose local apply is awaited. Bounded in number and bytes; beyond a bound: ERR_OVERLOADED.
 * Whatever ends the wait before the apply leaves the outcome unknown: the entry may be on its way to be committed.
 */
export class Proposals {
  readonly #id: { readonly member: MemberId; readonly incarnation: number }
  readonly #pending = new Map<number, Pending>()
  #pendingBytes = 0
  #sequence = 0
  #change: { readonly change: ConfChange; readonly waiting: Waiting<Membership> } | undefined

  constructor(id: { readonly member: MemberId; readonly incarnation: number }) {
    this.#id = id
  }

  get waitingCount(): number {
    return this.#pending.size + (this.#change ? 1 : 0)
  }

  propose(data: Uint8Array, signal: AbortSignal, hand: (data: Uint8Array) => Outcome): Promise<ApplyResult> {
    if (signal.aborted) return Promise.reject(aborted(signal))
    const bytes = data.length
    if (
      this.#pending.size >= pendingProposalsMax ||
      (this.#pending.size > 0 && this.#pendingBytes + bytes > uncommittedBytesMax)
    ) {
      return Promise.reject(new RaftError('ERR_OVERLOADED', `${this.#pending.size} proposals are waiting`))
    }
    const sequence = ++this.#sequence
    const refusal = refusalOf(hand(encodeProposal({ ...this.#id, sequence }, data)))
    if (refusal) return Promise.reject(refusal)
    const waiting = new Waiting<ApplyResult>(signal, () => {
      this.#forget(sequence)
      waiting.reject(unknown('the request was aborted after it was proposed', signal.reason))
    })
    this.#pending.set(sequence, { waiting, bytes })
    this.#pendingBytes += bytes
    return waiting.promise
  }

  proposeChange(change: ConfChange, signal: AbortSignal, hand: (change: ConfChange) => Outcome): Promise<Membership> {
    if (signal.aborted) return Promise.reject(aborted(signal))
    if (this.#change) return Promise.reject(new RaftError('ERR_OVERLOADED', 'a membership change is waiting here'))
    const refusal = refusalOf(hand(change))
    if (refusal) return Promise.reject(refusal)
    const waiting = new Waiting<Membership>(signal, () => {
      this.#change = undefined
      waiting.reject(unknown('the request was aborted after it was proposed', signal.reason))
    })
    this.#change = { change, waiting }
    return waiting.promise
  }

  applied(sequence: number, result: ApplyResult): void {
    this.#forget(sequence)?.waiting.resolve(result)
  }

  /** Changes carry no proposal id: there is one at a time, and an equal one of somebody else has the same effect. */
  changeApplied(change: ConfChange, membership: Membership): void {
    const mine = this.#change
    if (!mine || mine.change.type !== change.type || mine.change.member !== change.member) return
    this.#change = undefined
    mine.waiting.resolve(membership)
  }

  abandon(message: string, cause?: unknown): void {
    const all = [...this.#pending.values()]
    this.#pending.clear()
    this.#pendingBytes = 0
    for (const { waiting } of all) waiting.reject(unknown(message, cause))
    const change = this.#change
    this.#change = undefined
    change?.waiting.reject(unknown(message, cause))
  }

  #forget(sequence: number): Pending | undefined {
    const pending = this.#pending.get(sequence)
    if (pending && this.#pending.delete(sequence)) this.#pendingBytes -= pending.bytes
    return pending
  }
}

const unknown = (message: string, cause: unknown): RaftError =>
  new RaftError('ERR_OUTCOME_UNKNOWN', `proposed, outcome unknown: ${message}`, { cause })

function refusalOf(outcome: Outcome): RaftError | undefined {
  switch (outcome) {
    case 'accepted':
      return undefined
    case 'noLeader':
      return new RaftError('ERR_NO_LEADER', 'not proposed: no leader')
    case 'overloaded':
      return new RaftError('ERR_OVERLOADED', 'not proposed: too many uncommitted bytes')
    case 'pending':
      return new RaftError('ERR_OVERLOADED', 'not proposed: another membership change is not applied yet')
  }
}
