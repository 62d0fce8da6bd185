import type { SeededRandom } from './env/index.ts'

/** How one run is: drawn from its seed, with the limits small so that everything happens in it. */
export interface Parameters {
  readonly replicas: 1 | 3
  /** All replicas in one process (`trireme up`), or a machine for each. */
  readonly layout: 'together' | 'apart'
  readonly keys: number
  readonly writers: number
  readonly readers: number
  readonly watchers: number
  readonly raft: {
    readonly heartbeatMs: number
    readonly electionTimeoutTicks: number
    readonly checkpointEntries: number
    readonly catchUpEntries: number
    readonly stopCatchUpBytes: number
    readonly appendBytesMax: number
    readonly firstSegmentBytes: number
    readonly segmentBytes: number
  }
  readonly diskLatencyMsMax: number
  readonly network: { readonly latencyMsMax: number; readonly drop: number; readonly duplicate: number }
}

export function drawParameters(random: SeededRandom): Parameters {
  const layout = random.chance(0.5) ? 'together' : 'apart'
  const rough = random.chance(0.5)
  return {
    layout,
    replicas: layout === 'together' && random.chance(0.4) ? 1 : 3,
    keys: random.between(3, 20),
    writers: random.between(1, 4),
    readers: random.between(1, 3),
    watchers: random.between(1, 3),
    raft: {
      heartbeatMs: 100,
      electionTimeoutTicks: 10,
      checkpointEntries: random.between(3, 30),
      catchUpEntries: random.between(0, 10),
      stopCatchUpBytes: random.between(0, 2_000),
      // Often each entry in a message of its own: a follower then has the older without the newer for a while.
      appendBytesMax: random.chance(0.5) ? 1 : 1024 * 1024,
      firstSegmentBytes: random.between(1, 8) * 1024,
      segmentBytes: random.between(1, 8) * 1024,
    },
    diskLatencyMsMax: random.chance(0.2) ? random.between(5, 40) : 1,
    network: {
      latencyMsMax: rough ? random.between(2, 60) : 2,
      drop: rough ? random.float() * 0.1 : 0,
      duplicate: rough ? random.float() * 0.1 : 0,
    },
  }
}
