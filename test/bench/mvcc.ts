/** Cost of the engine's hot path: `node --expose-gc .build/…/test/bench/mvcc.js`. Prints microseconds per operation. */
import { performance } from 'node:perf_hooks'
import { silentLogger, type Scheduler } from '../../storage/index.ts'
import { createMvccEngine, type MvccEngine } from '../../storage/mvcc/engine.ts'
import { VolatileBackend } from '../../storage/mvcc/volatile-backend.ts'
import { decodeProposal, encodeProposal, type Proposal } from '../../storage/proposal.ts'

const keyCount = 10_000
const rounds = 30_000
const value = Buffer.alloc(2048, 'x')

const scheduler: Scheduler = {
  after: () => ({ cancel: () => undefined }),
  every: () => ({ cancel: () => undefined }),
  soon: (run) => void setImmediate(run),
}

function measure(name: string, count: number, run: (position: number) => void): void {
  for (let position = 0; position < Math.min(count, 2_000); position += 1) run(position)
  const start = performance.now()
  for (let position = 0; position < count; position += 1) run(position)
  process.stdout.write(`${name}: ${(((performance.now() - start) * 1000) / count).toFixed(2)} us\n`)
}

const keys = Array.from({ length: keyCount }, (_, n) => Buffer.from(`/registry/pods/namespace-${n % 50}/pod-${n}`))
const mods = keys.map(() => 0)

function update(position: number): Proposal {
  const n = (position * 7919) % keyCount
  const key = keys[n] ?? Buffer.from('x')
  return {
    type: 'txn',
    request: {
      compare: [{ key, op: '=', target: 'mod', is: mods[n] ?? 0 }],
      success: [{ type: 'put', key, value }],
      failure: [{ type: 'range', key }],
    },
  }
}

function newEngine(): MvccEngine {
  mods.fill(0)
  index = 0
  return createMvccEngine({ backend: new NoBackend(), scheduler, log: silentLogger })
}

/** The engine alone: what a backend costs is the backend's benchmark. */
class NoBackend extends VolatileBackend {
  override put(): void {}
  override value(): Uint8Array {
    return value
  }
}

let index = 0

function applyUpdate(engine: MvccEngine, position: number): void {
  const n = (position * 7919) % keyCount
  const outcome = engine.apply(update(position), { index: ++index, term: 1 })
  if (outcome.type !== 'txn' || !outcome.txn.succeeded) throw new Error(`update ${position} was refused`)
  mods[n] = outcome.txn.revision
}

const prefix = { key: Buffer.from('/registry/'), rangeEnd: Buffer.from('/registry0') }
const sink = { onBatch: () => undefined, onEnd: () => undefined }

const encoded = encodeProposal(update(1))
measure('encode one CAS put of 2 KiB', rounds, (position) => void encodeProposal(update(position)))
measure('decode one CAS put of 2 KiB', rounds, () => void decodeProposal(encoded))

const alone = newEngine()
for (let position = 0; position < keyCount; position += 1) applyUpdate(alone, position)
measure('apply one CAS put, 10,000 keys, no watcher', rounds, (position) => applyUpdate(alone, position))

const watched = newEngine()
watched.watch({ ...prefix, startRevision: 0, prevKv: true }, sink)
for (let position = 0; position < keyCount; position += 1) applyUpdate(watched, position)
measure('apply one CAS put, 10,000 keys, one watcher', rounds, (position) => applyUpdate(watched, position))

for (let n = 0; n < 5_000; n += 1) {
  watched.watch({ key: keys[n] ?? Buffer.from('x'), startRevision: 0, prevKv: true }, sink)
}
measure('apply one CAS put, 10,000 keys, 5,001 watchers', rounds, (position) => applyUpdate(watched, position))
measure('range of 500 of 10,000 keys', 300, () => void watched.rangeNow({ ...prefix, limit: 500 }))
