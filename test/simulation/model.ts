import { decodeProposal } from '../../storage/proposal.ts'
import type { Compare, KeyValue, LeaseId, Op, Revision, TxnRequest } from '../../storage/index.ts'
import type { Entry } from '../../raft/index.ts'

/** A row as text and numbers: comparable with JSON. */
export interface ModelRow {
  readonly key: string
  readonly value: string
  readonly create: Revision
  readonly mod: Revision
  readonly version: number
  readonly lease: string
}

export interface ModelEvent {
  readonly revision: Revision
  readonly type: 'put' | 'delete'
  readonly key: string
  readonly row: ModelRow | undefined
  readonly previous: ModelRow | undefined
}

/** What an entry did, the same wherever it is applied. */
export interface ModelOutcome {
  readonly index: number
  readonly revision: Revision
  readonly compactRevision: Revision
  /** Of a transaction: its result, as resultText writes one. Of anything refused: the code. */
  readonly text: string
}

/**
 * What the committed log means: a store as simple as can be. Entries come in once each, in log order, the moment the
 * first replica applies them; everything else is then held against it. Nothing is ever compacted away here.
 */
export class Model {
  revision: Revision = 1
  compactRevision: Revision = 0
  readonly events: ModelEvent[] = []
  readonly outcomes: ModelOutcome[] = []
  /** By operation number (opKey). */
  readonly operations = new Map<number, ModelOutcome>()
  readonly #entries: { readonly term: number; readonly data: Buffer }[] = []
  readonly #versions = new Map<string, ModelEvent[]>()
  readonly #leases = new Set<LeaseId>()

  get lastIndex(): number {
    return this.#entries.length
  }

  /** @returns why it cannot be, if it cannot. */
  observe(entry: Entry): string | undefined {
    const known = this.#entries[entry.index - 1]
    if (known !== undefined) {
      if (known.term === entry.term && known.data.equals(entry.data)) return undefined
      return `entry ${entry.index} of term ${entry.term} differs from the one applied before, of term ${known.term}`
    }
    if (entry.index !== this.#entries.length + 1) return `entry ${entry.index} is applied, ${this.lastIndex} was last`
    this.#entries.push({ term: entry.term, data: Buffer.from(entry.data) })
    return this.#apply(entry)
  }

  outcomeAt(index: number): ModelOutcome | undefined {
    return this.outcomes[index - 1]
  }

  row(key: string, at: Revision = this.revision): ModelRow | undefined {
    return this.#versions.get(key)?.findLast((event) => event.revision <= at)?.row
  }

  rows(from: string, to: string | undefined, at: Revision = this.revision): ModelRow[] {
    const keys = to === undefined ? [from] : [...this.#versions.keys()].filter((key) => key >= from && key < to).sort()
    return keys.flatMap((key) => this.row(key, at) ?? [])
  }

  #apply(entry: Entry): string | undefined {
    const proposal = entry.data.length === 0 || entry.type === 'confChange' ? undefined : decodeProposal(entry.data)
    let text = ''
    let operation: number | undefined
    if (proposal?.type === 'txn') {
      operation = operationOf(proposal.request)
      text = this.#txn(proposal.request)
    } else if (proposal?.type === 'compact') {
      const { revision } = proposal
      text = revision <= this.compactRevision ? 'ERR_COMPACTED' : revision > this.revision ? 'ERR_FUTURE_REVISION' : ''
      if (text === '') this.compactRevision = revision
    } else if (proposal?.type === 'leaseGrant') {
      text = this.#leases.has(proposal.id) ? 'ERR_LEASE_EXISTS' : ''
      this.#leases.add(proposal.id)
    } else if (proposal?.type === 'leaseRevoke') {
      text = this.#revoke(proposal.id)
    }
    const { revision, compactRevision } = this
    const outcome = { index: entry.index, revision, compactRevision, text }
    this.outcomes.push(outcome)
    if (operation === undefined) return undefined
    if (this.operations.has(operation)) return `operation ${operation} was applied twice`
    this.operations.set(operation, outcome)
    return undefined
  }

  #revoke(id: LeaseId): string {
    if (!this.#leases.delete(id)) return 'ERR_LEASE_NOT_FOUND'
    const held = this.rows('', '\u{10ffff}').filter((row) => row.lease === String(id))
    const main = this.revision + 1
    for (const { key } of held) this.#write(key, undefined, main)
    if (held.length > 0) this.revision = main
    return ''
  }

  #txn(request: TxnRequest): string {
    const succeeded = request.compare.every((compare) => this.#holds(compare))
    const ops = succeeded ? request.success : request.failure
    for (const op of ops) {
      if (op.type === 'put' && (op.lease ?? 0n) !== 0n && !this.#leases.has(op.lease ?? 0n))
        return 'ERR_LEASE_NOT_FOUND'
    }
    const main = this.revision + 1
    let changes = 0
    const responses = ops.map((op) => {
      const result = this.#op(op, main)
      changes += result.changes
      return result.text
    })
    if (changes > 0) this.revision = main
    return JSON.stringify([this.revision, succeeded, responses])
  }

  #op(op: Op, main: Revision): { readonly changes: number; readonly text: unknown } {
    if (op.type === 'put') {
      const key = textOf(op.key)
      const previous = this.row(key, main)
      const create = previous?.create ?? main
      const version = (previous?.version ?? 0) + 1
      this.#write(
        key,
        { key, value: textOf(op.value), create, mod: main, version, lease: String(op.lease ?? 0n) },
        main,
      )
      return { changes: 1, text: [[], 0, op.prevKv === true && previous ? [previous] : []] }
    }
    if (op.type === 'txn') throw new Error('the clients nest no transactions')
    const rows = this.rows(textOf(op.key), op.rangeEnd && textOf(op.rangeEnd), main)
    if (op.type === 'range') return { changes: 0, text: [rows, rows.length, []] }
    for (const { key } of rows) this.#write(key, undefined, main)
    return { changes: rows.length, text: [[], rows.length, op.prevKv === true ? rows : []] }
  }

  #holds(compare: Compare): boolean {
    const row = this.row(textOf(compare.key))
    if (compare.target === 'value') return row !== undefined && row.value === textOf(compare.is) && compare.op === '='
    if (compare.target === 'lease') throw new Error('the clients compare no leases')
    const found = row?.[compare.target] ?? 0
    return compare.op === '=' ? found === compare.is : compare.op === '>' ? found > compare.is : found < compare.is
  }

  #write(key: string, row: ModelRow | undefined, revision: Revision): void {
    const previous = this.row(key, revision)
    const event: ModelEvent = { revision, type: row ? 'put' : 'delete', key, row, previous }
    this.events.push(event)
    const versions = this.#versions.get(key)
    if (versions) versions.push(event)
    else this.#versions.set(key, [event])
  }
}

export const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')
export const bytesOf = (text: string): Uint8Array => Buffer.from(text, 'utf8')

export const rowOf = (kv: KeyValue): ModelRow => ({
  key: textOf(kv.key),
  value: textOf(kv.value),
  create: kv.createRevision,
  mod: kv.modRevision,
  version: kv.version,
  lease: String(kv.lease),
})

const operationPrefix = 'operation/'

/** Compared for absence in every transaction of the clients, and never written: tells them apart in the log. */
export const operationCompare = (number: number): Compare => ({
  key: bytesOf(`${operationPrefix}${number}`),
  target: 'version',
  op: '=',
  is: 0,
})

function operationOf(request: TxnRequest): number | undefined {
  const key = request.compare.map((compare) => textOf(compare.key)).find((text) => text.startsWith(operationPrefix))
  return key === undefined ? undefined : Number(key.slice(operationPrefix.length))
}
