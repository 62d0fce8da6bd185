import type { Random } from '../raft/index.ts'
import type { LeaseId } from './store.ts'

/** The id of a grant: the one asked for, else a free positive int63, chosen before it is proposed. */
export function chooseLeaseId(asked: LeaseId | undefined, random: Random, taken: (id: LeaseId) => boolean): LeaseId {
  if (asked !== undefined && asked !== 0n) return asked
  for (;;) {
    const bytes = Buffer.from(random.bytes(8))
    const id = BigInt.asUintN(63, bytes.readBigUInt64BE())
    if (id !== 0n && !taken(id)) return id
  }
}
