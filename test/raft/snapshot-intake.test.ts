import assert from 'node:assert/strict'
import test from 'node:test'
import { SnapshotIntake } from '../../raft/snapshot-intake.ts'
import type { StagedSnapshot, StateMachine } from '../../raft/seams.ts'
import type { SnapshotMeta } from '../../raft/types.ts'

const meta = (index: number): SnapshotMeta => ({ index, term: 1, membership: { voters: [1n], learners: [] } })

/** A stream that goes on when it is told to. */
class Stream implements AsyncIterable<Uint8Array> {
  #next: (chunk: Uint8Array | undefined) => void = () => undefined
  #fail: (error: Error) => void = () => undefined
  #asked = new Promise<Uint8Array | undefined>((resolve, reject) => {
    this.#next = resolve
    this.#fail = reject
  })

  send(chunk: Uint8Array | undefined): void {
    const next = this.#next
    this.#asked = this.#asked.then(
      () => new Promise((resolve) => (this.#next = resolve)),
      () => undefined,
    )
    next(chunk)
  }

  breakOff(): void {
    this.#fail(new Error('the connection broke'))
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    for (;;) {
      const chunk = await this.#asked
      if (chunk === undefined) return
      yield chunk
    }
  }
}

function intake() {
  const discarded: number[] = []
  const begun: number[] = []
  const machine: Pick<StateMachine, 'stageSnapshot'> = {
    async stageSnapshot(snapshot, chunks): Promise<StagedSnapshot> {
      begun.push(snapshot.index)
      for await (const _ of chunks);
      return {
        meta: snapshot,
        install: () => Promise.resolve(),
        discard: () => Promise.resolve(void discarded.push(snapshot.index)),
      }
    },
  }
  return { intake: new SnapshotIntake(machine as StateMachine), discarded, begun }
}

const codeOf = (staging: Promise<void>) =>
  staging.then(
    () => 'staged',
    (error: { code?: string; message: string }) => error.code ?? error.message,
  )
const turn = () => new Promise<void>((resolve) => void setImmediate(resolve))

// etcd-io/etcd#18055 (B20): two snapshots in a short time.
test('B20: a newer snapshot takes the place of an older one that is still coming in', async () => {
  const { intake: it, discarded, begun } = intake()
  const [older, newer] = [new Stream(), new Stream()]
  const first = codeOf(it.stage(meta(5), older))
  const second = codeOf(it.stage(meta(9), newer))
  await turn()
  assert.deepEqual(begun, [5], 'one at a time')
  older.send(Uint8Array.of(1))
  assert.equal(await first, 'ERR_OVERLOADED')
  await turn()
  assert.deepEqual(begun, [5, 9])
  newer.send(undefined)
  assert.equal(await second, 'staged')
  assert.equal(it.staged?.meta.index, 9)
  assert.deepEqual(discarded, [])
})

test('B20: an older or equal snapshot is refused while one is coming in, any while one waits to be installed', async () => {
  const { intake: it, begun } = intake()
  const stream = new Stream()
  const first = codeOf(it.stage(meta(5), stream))
  assert.equal(await codeOf(it.stage(meta(5), new Stream())), 'ERR_OVERLOADED')
  assert.equal(await codeOf(it.stage(meta(4), new Stream())), 'ERR_OVERLOADED')
  stream.send(undefined)
  assert.equal(await first, 'staged')
  assert.equal(await codeOf(it.stage(meta(9), new Stream())), 'ERR_OVERLOADED')
  assert.deepEqual(begun, [5])
  // Taken, there is room for the next.
  assert.equal(it.take()?.meta.index, 5)
  const next = new Stream()
  const staging = codeOf(it.stage(meta(9), next))
  next.send(undefined)
  assert.equal(await staging, 'staged')
})

test('a stream that breaks leaves room for another', async () => {
  const { intake: it } = intake()
  const stream = new Stream()
  const staging = codeOf(it.stage(meta(5), stream))
  stream.breakOff()
  assert.equal(await staging, 'the connection broke')
  assert.equal(it.staged, undefined)
  const again = new Stream()
  const second = codeOf(it.stage(meta(5), again))
  again.send(undefined)
  assert.equal(await second, 'staged')
})

test('closing ends what is coming in and discards what is staged', async () => {
  const { intake: it, discarded } = intake()
  const stream = new Stream()
  const staging = codeOf(it.stage(meta(5), stream))
  stream.send(undefined)
  assert.equal(await staging, 'staged')
  await it.close()
  assert.deepEqual(discarded, [5])
  assert.equal(await codeOf(it.stage(meta(9), new Stream())), 'ERR_STOPPED')
})
