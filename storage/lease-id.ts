import type { Random } from '../raft/index.ts'
import type { LeaseId } from './store.ts'

/** A positive int63, chosen by whoever proposes a grant without an id. */
export function chooseLeaseId(random: Random, taken: (id: LeaseId) => boolean): LeaseId {
  for (;;) {
    const bytes = Buffer.from(random.bytes(8))
    const id = BigInt.asUintN(63, bytes.readBigUInt64BE())
    if (id !== 0n && !taken(id)) return id
  }
}
