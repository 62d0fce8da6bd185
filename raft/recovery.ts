import { assert } from './assert.ts'
import { changeMembership, decodeConfChange } from './core/index.ts'
import { RaftError } from './errors.ts'
import type { StateMachine } from './seams.ts'
import { NOBODY } from './types.ts'
import type { Entry, HardState, Index, Membership, SnapshotMeta } from './types.ts'
import type { OpenedWal } from './wal/index.ts'

export interface Recovered {
  readonly hardState: HardState
  readonly snapshot: SnapshotMeta
  readonly entries: readonly Entry[]
  /** In force at the state machine's applied index. */
  readonly membership: Membership
}

/**
 * Brings log and state machine together after a start. The state may be ahead of the log's commit index, which is
 * written lazily; and ahead of the log itself after a crash between installing a snapshot and its WAL marker.
 *
 * @throws RaftError ERR_CORRUPT when the state lacks entries that the log no longer has.
 */
export async function reconcile(opened: OpenedWal, stateMachine: StateMachine): Promise<Recovered> {
  const { wal, recovered } = opened
  const { hardState, snapshot, entries } = recovered
  const applied = stateMachine.appliedIndex
  if (applied < snapshot.index) {
    throw new RaftError('ERR_CORRUPT', `the state ends at ${applied}, the log begins behind ${snapshot.index}`)
  }
  if (applied > hardState.commit) {
    const meta = await metaOf(stateMachine)
    assert(meta.index === applied, `snapshot at ${meta.index} of a state at ${applied}`)
    if (termAt(snapshot, entries, applied) !== meta.term) {
      const term = Math.max(hardState.term, meta.term)
      const vote = term === hardState.term ? hardState.vote : NOBODY
      const replaced = { term, vote, commit: meta.index }
      await wal.append({ hardState: replaced, marker: { kind: 'install', snapshot: meta } })
      await wal.release(meta.index)
      return { hardState: replaced, snapshot: meta, entries: [], membership: meta.membership }
    }
  }
  let membership = snapshot.membership
  for (const entry of entries) {
    if (entry.index > applied) break
    const change = entry.type === 'confChange' ? decodeConfChange(entry.data) : undefined
    if (change) membership = changeMembership(membership, change)
  }
  return { hardState, snapshot, entries, membership }
}

async function metaOf(stateMachine: StateMachine): Promise<SnapshotMeta> {
  const source = await stateMachine.openSnapshot()
  await source.close()
  return source.meta
}

function termAt(snapshot: SnapshotMeta, entries: readonly Entry[], index: Index): number | undefined {
  return index === snapshot.index ? snapshot.term : entries[index - snapshot.index - 1]?.term
}
