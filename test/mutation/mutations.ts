/** A fault that must not go unseen: exact text, there once, and what takes its place. */
export interface Mutation {
  readonly name: string
  readonly file: string
  readonly text: string
  readonly replacement: string
  /** What catches it soonest: a stretch of simulated lives, or a test file. */
  readonly caughtBy: { readonly fromSeed: number; readonly points: number } | { readonly test: string }
}

export const mutations: readonly Mutation[] = [
  {
    name: 'answer before fsync',
    file: 'raft/wal/wal.ts',
    text: 'await this.#file.write(batch.chunks, this.#position)',
    replacement: 'void this.#file.write(batch.chunks, this.#position).catch(() => undefined)',
    caughtBy: { fromSeed: 1, points: 200 },
  },
  {
    name: 'vote twice in a term',
    file: 'raft/core/election.ts',
    text: '(state.vote === NOBODY && state.leader === NOBODY) ||',
    replacement: 'state.leader === NOBODY ||',
    caughtBy: { fromSeed: 6, points: 100 },
  },
  {
    name: 'commit an old-term entry by count',
    file: 'raft/core/replication.ts',
    text: 'if (index <= before || log.termAt(index) !== state.term) return',
    replacement: 'if (index <= before) return',
    caughtBy: { test: 'test/raft/core/paper.test.js' },
  },
  {
    name: 'the same, found in simulated lives',
    file: 'raft/core/replication.ts',
    text: 'if (index <= before || log.termAt(index) !== state.term) return',
    replacement: 'if (index <= before) return',
    caughtBy: { fromSeed: 1, points: 100 },
  },
  {
    name: 'applied index outside the batch',
    file: 'storage/backend/buffered-backend.ts',
    text: 'const checkpoint: Checkpoint = { ...state, ...this.#committed }',
    replacement: 'const checkpoint: Checkpoint = { ...state, ...this.#written }',
    caughtBy: { fromSeed: 1, points: 200 },
  },
  {
    name: 'a lost replica votes without the log',
    file: 'storage/embedded-replica.ts',
    text: 'initial: { hardState: { term, vote: 0n, commit }, snapshot: log.snapshot, entries: log.entries },',
    replacement: 'initial: { hardState: { term, vote: 0n, commit: log.snapshot.index }, snapshot: log.snapshot },',
    caughtBy: { test: 'test/storage/embedded.test.js' },
  },
  {
    name: 'ReadIndex without a quorum round',
    file: 'raft/core/reads.ts',
    text: 'if (isLoneVoter(state)) return answerRead(state, read, state.log.commit)',
    replacement: 'if (state.role) return answerRead(state, read, state.log.commit)',
    caughtBy: { fromSeed: 1, points: 1000 },
  },
  {
    name: 'WAL released before the checkpoint',
    file: 'raft/checkpoints.ts',
    text: 'const { index, term } = await stateMachine.checkpoint()',
    replacement: `const { applied: index, lastTerm: term } = this.#options.core.status()
    void stateMachine.checkpoint()`,
    caughtBy: { fromSeed: 1, points: 200 },
  },
]
