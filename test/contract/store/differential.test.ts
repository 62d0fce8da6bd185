import assert from 'node:assert/strict'
import { createNodeEnv } from '../../../raft/env-node.ts'
import { silentLogger, StorageError, type Store, type Watcher } from '../../../storage/index.ts'
import { createMemoryStore } from '../../../storage/memory-store.ts'
import { testWith } from '../../external.ts'
import { etcdProgram, startEtcd } from './etcd-process.ts'
import { EtcdWatcher } from './etcd-store.ts'
import { names, ProgramMaker, type Step } from './random-program.ts'
import { options, plainResult, StoreHarness } from './store-harness.ts'
import { WatchRecorder } from './watch-recorder.ts'

const seed = Number(process.env['SEED'] ?? 20_261_130)
const programs = process.env['SEED'] === undefined ? 4 : 1
const steps = 400

/** What a step gave, in a form that compares: results, or the code it was refused with. */
async function run(harness: StoreHarness, step: Step): Promise<unknown> {
  const { store } = harness
  try {
    switch (step.type) {
      case 'txn': {
        const result = await store.txn(step, options)
        return { revision: result.revision, succeeded: result.succeeded, responses: result.responses.map(plainResult) }
      }
      case 'range': {
        const result = await store.range(step.op, options)
        return { ...plainResult(result), revision: result.revision }
      }
      case 'compact':
        return await store.compact({ revision: step.revision, physical: true }, options)
      case 'leaseGrant':
        return await store.leaseGrant({ id: step.id, ttlSeconds: 3600 }, options)
      case 'leaseRevoke':
        return await store.leaseRevoke(step.id, options)
      case 'watch':
        return undefined
    }
  } catch (error) {
    if (error instanceof StorageError) return error.code
    throw error
  }
}

interface Watched {
  readonly recorder: WatchRecorder
  readonly watcher: Watcher
}

function watch(
  { store, ...harness }: { store: Store; key: (name: string) => Uint8Array },
  step: Step & { type: 'watch' },
): Watched {
  const recorder = new WatchRecorder()
  const range = { key: harness.key(step.from), ...(step.to === undefined ? {} : { rangeEnd: harness.key(step.to) }) }
  return {
    recorder,
    watcher: store.watch({ ...range, startRevision: step.startRevision, prevKv: step.prevKv }, recorder),
  }
}

testWith(
  etcdProgram,
  'random programs give on the memory store what they give on a real etcd',
  async (path, context) => {
    const etcd = await startEtcd(path)
    const memory = createMemoryStore({ env: createNodeEnv({ log: silentLogger }) })
    const alive = setInterval(() => undefined, 60_000)
    const watches: { readonly step: Step; readonly ours: Watched; readonly theirs: Watched }[] = []
    let revision = 1
    let complete = 0
    let compactRevision = 0
    try {
      for (let program = 0; program < programs; program += 1) {
        context.diagnostic(`SEED=${seed + program}`)
        const prefix = `/program/`
        const ours = new StoreHarness(memory, prefix)
        const theirs = new StoreHarness(etcd.store, prefix)
        const maker = new ProgramMaker(seed + program, ours)
        for (let position = 0; position < steps; position += 1) {
          const step = maker.next(revision, compactRevision)
          const told = `SEED=${seed + program}, step ${position}: ${JSON.stringify(step, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))}`
          if (step.type === 'watch') {
            const pair = {
              step,
              ours: watch({ store: memory, key: (n) => ours.key(n) }, step),
              theirs: watch({ store: etcd.store, key: (n) => theirs.key(n) }, step),
            }
            watches.push(pair)
            // Replayed before the program goes on: else compaction might end the one and not the other.
            if (pair.theirs.watcher instanceof EtcdWatcher) await pair.theirs.watcher.created
            await settled(pair.ours, revision, step)
            await caughtUp(pair)
            continue
          }
          const [found, expected] = [await run(ours, step), await run(theirs, step)]
          assert.deepEqual(found, expected, told)
          revision = memory.status().revision
          compactRevision = memory.status().compactRevision
        }
      }
      assert.ok(watches.length > 5 * programs && revision > 40 * programs, 'the program did too little')
      // A last write of every key: an event too many before it would show.
      for (const name of names) {
        for (const store of [memory, etcd.store]) await new StoreHarness(store, '/program/').put(name, 'last')
      }
      for (const { step, ours, theirs } of watches) {
        await caughtUp({ ours, theirs })
        const { events } = theirs.recorder
        if (theirs.recorder.ended && !ours.recorder.ended) {
          // etcd replays every 100 ms: compaction may overtake it there and not here. What came before is the same.
          assert.equal(theirs.recorder.reason?.code, 'ERR_COMPACTED', JSON.stringify(step))
          assert.deepEqual(ours.recorder.events.slice(0, events.length), events, JSON.stringify(step))
          continue
        }
        complete += 1
        assert.deepEqual(ours.recorder.events, events, JSON.stringify(step))
        assert.equal(ours.recorder.reason?.code, theirs.recorder.reason?.code, JSON.stringify(step))
      }
      assert.ok(complete > watches.length / 2, `${complete} of ${watches.length} watches ran to the end`)
    } finally {
      clearInterval(alive)
      for (const { ours, theirs } of watches) {
        ours.watcher.cancel()
        theirs.watcher.cancel()
      }
      await memory.close()
      await etcd.close()
    }
  },
)

/** Waits until the watch has replayed what there is, or has ended. */
async function settled(
  { recorder, watcher }: Watched,
  revision: number,
  step: Step & { type: 'watch' },
): Promise<void> {
  if (step.startRevision > revision) return
  watcher.requestProgress()
  await recorder.until(() => recorder.ended || recorder.progress.length > 0)
}

/** By events, not by progress: in etcd before 3.4.25 progress overtakes events. */
function caughtUp({ ours, theirs }: { readonly ours: Watched; readonly theirs: Watched }): Promise<void> {
  const enough = () => theirs.recorder.ended || theirs.recorder.events.length >= ours.recorder.events.length
  return theirs.recorder.until(() => enough() && (!ours.recorder.ended || theirs.recorder.ended))
}
