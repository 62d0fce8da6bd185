import type { Entry, MemberId, RaftStatus, StateMachine } from '../../raft/index.ts'
import type { ReplicaStateMachine } from '../../storage/replica-state-machine.ts'
import { Model, rowOf } from './model.ts'

/** What everybody saw in one run, held against the model at once; the first contradiction ends the run. */
export class Journal {
  readonly model = new Model()
  readonly failures: string[] = []
  readonly #leaders = new Map<number, MemberId>()

  /** How often what must happen in a good run has happened. */
  readonly marks = {
    installs: 0,
    checkpoints: 0,
    restarts: 0,
    progress: 0,
    compactedWatches: 0,
    recoveryCrashes: 0,
    kills: 0,
    stops: 0,
    /** Replicas that their disk has failed. */
    broken: 0,
    figureEights: 0,
    /** Replicas whose directory was gone, made anew. */
    rebuilt: 0,
  }

  mark(name: keyof Journal['marks']): void {
    this.marks[name]++
  }

  fail(what: string): void {
    this.failures.push(what)
  }

  check(holds: boolean, what: () => string): void {
    if (!holds) this.fail(what())
  }

  /** At most one leader per term (Raft paper, figure 3: Election Safety). */
  sawStatus(id: MemberId, status: RaftStatus): void {
    if (status.role !== 'leader') return
    const leader = this.#leaders.get(status.term)
    this.check(leader === undefined || leader === id, () => `members ${leader} and ${id} both lead term ${status.term}`)
    this.#leaders.set(status.term, id)
  }

  get termCount(): number {
    return this.#leaders.size
  }

  /** The replica's state machine, every step of which is compared with the model. */
  watch(id: MemberId, machine: ReplicaStateMachine): StateMachine {
    const compare = (when: string): void => {
      const { appliedIndex, engine } = machine
      const expected = this.model.outcomeAt(appliedIndex)
      const { revision, compactRevision } = engine
      const right = expected
        ? expected.revision === revision && expected.compactRevision === compactRevision
        : appliedIndex === 0
      this.check(
        right,
        () =>
          `replica ${id} ${when} at entry ${appliedIndex}: revision ${revision}, compacted ${compactRevision}; ` +
          `expected ${JSON.stringify(expected)}`,
      )
    }
    /** More than compare(): every live row. */
    const compareRows = (when: string): void => {
      compare(when)
      const { engine } = machine
      const everything = { key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0) }
      const found = JSON.stringify(engine.rangeNow(everything).kvs.map(rowOf))
      const expected = JSON.stringify(this.model.rows('', '\u{10ffff}', engine.revision))
      this.check(found === expected, () => {
        return `replica ${id} ${when} at entry ${machine.appliedIndex} with ${found}, expected ${expected}`
      })
    }
    compareRows('opens')
    if (machine.appliedIndex > 0) this.mark('restarts')
    return {
      get appliedIndex() {
        return machine.appliedIndex
      },
      apply: (entry: Entry) => {
        const wrong = this.model.observe(entry)
        if (wrong !== undefined) this.fail(`replica ${id}: ${wrong}`)
        const result = machine.apply(entry)
        compare('applied')
        return result
      },
      setMembership: (membership) => machine.setMembership(membership),
      openSnapshot: () => machine.openSnapshot(),
      onBroken: (listener) => machine.onBroken(listener),
      checkpoint: async () => {
        const done = await machine.checkpoint()
        this.mark('checkpoints')
        return done
      },
      stageSnapshot: async (meta, chunks) => {
        const staged = await machine.stageSnapshot(meta, chunks)
        return {
          meta: staged.meta,
          install: async () => {
            await staged.install()
            this.mark('installs')
            compareRows('installed a snapshot')
          },
          discard: () => staged.discard(),
        }
      },
    }
  }
}
