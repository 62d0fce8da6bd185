import assert from 'node:assert/strict'
import test from 'node:test'
import { DiskError, silentLogger } from '../../../raft/env.ts'
import type { Disk } from '../../../raft/env.ts'
import { RaftError } from '../../../raft/errors.ts'
import type { Entry } from '../../../raft/types.ts'
import { inspectWal, openWal } from '../../../raft/wal/index.ts'
import type { OpenedWal } from '../../../raft/wal/index.ts'
import { SeededRandom } from '../../simulation/env/random.ts'
import { SimNode } from '../../simulation/env/sim-node.ts'
import { Simulation } from '../../simulation/env/simulation.ts'

const seed = Number(process.env['SEED'] ?? 1)
const membership = { voters: [1n, 2n, 3n], learners: [] }
const directory = 'data/wal'

function open(disk: Disk, options: { firstSegmentBytes?: number; segmentBytes?: number } = {}): Promise<OpenedWal> {
  return openWal({
    disk,
    directory,
    log: silentLogger,
    random: new SeededRandom(7),
    metadata: { clusterId: 9n, memberId: 1n },
    initial: { hardState: { term: 0, vote: 0n, commit: 0 }, snapshot: { index: 0, term: 0, membership } },
    firstSegmentBytes: 2048,
    segmentBytes: 4096,
    ...options,
  })
}

const entry = (index: number, term = 1, bytes = 40): Entry => ({
  index,
  term,
  type: 'normal',
  data: Buffer.alloc(bytes, `${index}/${term};`),
})

function machine(atSeed = seed): { simulation: Simulation; node: SimNode } {
  const simulation = new Simulation(atSeed)
  return { simulation, node: new SimNode(simulation, 'n1') }
}

test('what was appended is there after reopening', async () => {
  const { simulation, node } = machine()
  const { wal } = await simulation.finish(open(node.boot().disk))
  const hardState = { term: 3, vote: 2n, commit: 2 }
  await simulation.finish(wal.append({ hardState, entries: [entry(1), entry(2, 1, 9000), entry(3)] }))
  await simulation.finish(wal.append({ entries: [entry(3, 3), entry(4, 3)] }))
  await simulation.finish(wal.close())
  const { recovered } = await simulation.finish(open(node.boot().disk))
  assert.deepEqual(recovered.hardState, hardState)
  assert.deepEqual(recovered.entries, [entry(1), entry(2, 1, 9000), entry(3, 3), entry(4, 3)])
  assert.deepEqual(recovered.snapshot.membership, membership)
})

test('appends that wait for a running write share the next one', async () => {
  const { simulation, node } = machine()
  const { wal } = await simulation.finish(open(node.boot().disk))
  const before = node.disk.changeCount
  await simulation.finish(Promise.all([1, 2, 3, 4, 5, 6].map((index) => wal.append({ entries: [entry(index)] }))))
  // Two batches, each a write and its sync.
  assert.equal(node.disk.changeCount - before, 4)
})

test('a released log keeps what the marker does not cover, and whole segments go', async () => {
  const { simulation, node } = machine()
  const { wal } = await simulation.finish(open(node.boot().disk))
  for (let index = 1; index <= 200; index++) await simulation.finish(wal.append({ entries: [entry(index, 1, 100)] }))
  const before = wal.segmentCount
  await simulation.finish(wal.append({ marker: { kind: 'checkpoint', snapshot: { index: 150, term: 1, membership } } }))
  await simulation.finish(wal.release(150))
  assert.ok(wal.segmentCount < before && wal.segmentCount > 1)
  await simulation.finish(wal.close())
  const { recovered } = await simulation.finish(open(node.boot().disk))
  assert.equal(recovered.snapshot.index, 150)
  assert.deepEqual(
    recovered.entries.map((it) => it.index),
    Array.from({ length: 50 }, (_, i) => 151 + i),
  )
})

test('an install marker voids the log before it', async () => {
  const { simulation, node } = machine()
  const { wal } = await simulation.finish(open(node.boot().disk))
  await simulation.finish(wal.append({ entries: [entry(1), entry(2), entry(3)] }))
  await simulation.finish(
    wal.append({ marker: { kind: 'install', snapshot: { index: 90, term: 4, membership } }, entries: [entry(91, 4)] }),
  )
  await simulation.finish(wal.close())
  const { recovered } = await simulation.finish(open(node.boot().disk))
  assert.equal(recovered.snapshot.index, 90)
  assert.deepEqual(recovered.entries, [entry(91, 4)])
})

test('a crash at any write or sync loses no acknowledged append and leaves no hole', async () => {
  let points = 0
  for (let at = 1; ; at++) {
    const { simulation, node } = machine(seed * 1000 + at)
    let crashed = false
    node.disk.crashAtChange = at
    node.disk.onCrashPoint = () => {
      crashed = true
      node.crash()
    }
    let acknowledged = 0
    let released = 0
    let finished = false
    const work = async () => {
      const { wal } = await open(node.boot().disk)
      for (let index = 1; index <= 60; index += 2) {
        await wal.append({ entries: [entry(index, 1, 150), entry(index + 1, 1, 150)] })
        acknowledged = index + 1
        if (index % 20 !== 19) continue
        await wal.append({ marker: { kind: 'checkpoint', snapshot: { index: index - 5, term: 1, membership } } })
        released = index - 5
        await wal.release(released)
      }
      await wal.close()
      finished = true
    }
    void work()
    await simulation.run(() => crashed || finished)
    if (finished) break
    points++
    // A second crash while the first is being repaired.
    node.disk.crashAtChange = node.disk.changeCount + 1 + (at % 3)
    crashed = false
    let reopened: OpenedWal | undefined
    const again = async () => {
      reopened = await open(node.boot().disk)
    }
    void again()
    await simulation.run(() => crashed || reopened !== undefined)
    node.disk.crashAtChange = Number.POSITIVE_INFINITY
    if (crashed) reopened = await simulation.finish(open(node.boot().disk))
    assert.ok(reopened)
    const { recovered, wal } = reopened
    const last = recovered.entries.at(-1)?.index ?? recovered.snapshot.index
    assert.ok(last >= acknowledged, `seed ${simulation.seed}: ${acknowledged} acknowledged, ${last} found`)
    assert.ok(recovered.snapshot.index >= released)
    for (const [i, it] of recovered.entries.entries()) {
      assert.deepEqual(it, entry(recovered.snapshot.index + 1 + i, 1, 150))
    }
    await simulation.finish(wal.append({ entries: [entry(last + 1)] }))
    node.crash()
    const { recovered: third } = await simulation.finish(open(node.boot().disk))
    assert.equal(third.entries.at(-1)?.index, last + 1)
  }
  assert.ok(points > 90, `${points} crash points`)
})

test('every flipped bit before the last batch is corruption; no inspection changes a byte', async () => {
  const { simulation, node } = machine()
  const { wal } = await simulation.finish(open(node.boot().disk))
  for (let index = 1; index <= 4; index++) await simulation.finish(wal.append({ entries: [entry(index)] }))
  await simulation.finish(wal.close())
  const disk = node.boot().disk
  const inspection = await simulation.finish(inspectWal({ disk, directory }))
  assert.ok(inspection)
  const file = node.disk.file(inspection.segments[0]!.path)!
  const lastBatchBytes = 24 + 5 + 17 + 40
  for (let position = 0; position < inspection.tail.position - lastBatchBytes; position++) {
    // Three bytes of the header are reserved and covered by its CRC as well.
    file.flipBit(position, position % 8)
    const before = Buffer.from(file.contents())
    await assert.rejects(
      simulation.finish(open(disk)),
      (error) => error instanceof RaftError && (error.code === 'ERR_CORRUPT' || error.code === 'ERR_FORMAT'),
      `bit ${position % 8} of byte ${position}`,
    )
    assert.ok(before.equals(file.contents()))
    file.flipBit(position, position % 8)
  }
})

test('a damaged last batch is a torn tail, which opening for writing clears', async () => {
  const { simulation, node } = machine()
  const { wal } = await simulation.finish(open(node.boot().disk))
  await simulation.finish(wal.append({ entries: [entry(1)] }))
  await simulation.finish(wal.append({ entries: [entry(2)] }))
  await simulation.finish(wal.close())
  const disk = node.boot().disk
  const inspection = await simulation.finish(inspectWal({ disk, directory }))
  node.disk.file(inspection!.segments[0]!.path)!.flipBit(inspection!.tail.position - 3, 1)
  const opened = await simulation.finish(open(disk))
  assert.deepEqual(opened.recovered.entries, [entry(1)])
  await simulation.finish(opened.wal.close())
  const after = await simulation.finish(inspectWal({ disk, directory }))
  assert.equal(after!.tail.dirtyBytes, 0)
})

test('a newer format is refused and left alone', async () => {
  const { simulation, node } = machine()
  const { wal } = await simulation.finish(open(node.boot().disk))
  await simulation.finish(wal.close())
  const file = node.disk.file(`${directory}/0000000000000001.wal`)!
  file.flipBit(8, 1)
  const before = Buffer.from(file.contents())
  await assert.rejects(simulation.finish(open(node.boot().disk)), { code: 'ERR_FORMAT' })
  assert.ok(before.equals(file.contents()))
})

test('a log of another member is refused', async () => {
  const { simulation, node } = machine()
  const { wal } = await simulation.finish(open(node.boot().disk))
  await simulation.finish(wal.close())
  const other = openWal({
    disk: node.boot().disk,
    directory,
    log: silentLogger,
    random: new SeededRandom(1),
    metadata: { clusterId: 9n, memberId: 2n },
    initial: { hardState: { term: 0, vote: 0n, commit: 0 }, snapshot: { index: 0, term: 0, membership } },
  })
  await assert.rejects(simulation.finish(other), { code: 'ERR_CORRUPT' })
})

test('a failed sync breaks the log for ever', async () => {
  const { simulation, node } = machine()
  const { wal } = await simulation.finish(open(node.boot().disk))
  node.disk.faults.push({ operation: 'sync', code: 'EIO', times: 1 })
  await assert.rejects(simulation.finish(wal.append({ entries: [entry(1)] })), { code: 'EIO' })
  await assert.rejects(simulation.finish(wal.append({ entries: [entry(1)] })), { code: 'EIO' })
})

// etcd-io/etcd#4744, #2819 (B45)
test('a full disk stops the log cleanly, and it goes on once there is space, with every acknowledged entry', async () => {
  const { simulation, node } = machine()
  const { wal } = await simulation.finish(open(node.boot().disk))
  node.disk.capacityBytes = node.disk.usedBytes
  let acknowledged = 0
  const fill = async () => {
    for (let index = 1; ; index++) {
      await wal.append({ entries: [entry(index, 1, 200)] })
      acknowledged = index
    }
  }
  await assert.rejects(simulation.finish(fill()), (error) => error instanceof DiskError && error.code === 'ENOSPC')
  assert.ok(acknowledged > 0)
  await simulation.finish(wal.close())
  node.crash()
  // Still full: reading and opening need no space.
  const full = await simulation.finish(open(node.boot().disk))
  assert.equal(full.recovered.entries.length, acknowledged)
  node.crash()
  node.disk.capacityBytes = Number.POSITIVE_INFINITY
  const again = await simulation.finish(open(node.boot().disk))
  assert.equal(again.recovered.entries.length, acknowledged)
  for (let i = 1; i <= 30; i++) {
    await simulation.finish(again.wal.append({ entries: [entry(acknowledged + i, 1, 200)] }))
  }
})

test('an append that only the page cache had when the process was killed is durable once the log is open again', async () => {
  let survived = 0
  for (let i = 0; i < 20; i++) {
    const { simulation, node } = machine(seed * 30 + i)
    const { wal } = await simulation.finish(open(node.boot().disk))
    // Killed behind the write, before its sync.
    let killed = false
    node.disk.crashAtChange = node.disk.changeCount + 1
    node.disk.onCrashPoint = () => {
      killed = true
      node.kill()
    }
    void wal.append({ entries: [entry(1)] })
    await simulation.run(() => killed)
    const again = await simulation.finish(open(node.boot().disk))
    assert.deepEqual(again.recovered.entries, [entry(1)])
    // Acknowledged by whoever read it: must now outlive a power failure.
    await simulation.finish(again.wal.append({ entries: [entry(2, 1, 2000)] }))
    node.crash()
    const last = await simulation.finish(open(node.boot().disk))
    if (last.recovered.entries.length === 2) survived++
  }
  assert.equal(survived, 20)
})

// After a failed sync the kernel counts the page as clean: it is there to be read, and no later sync writes it.
test('a batch whose sync failed is durable once the log is open again, or gone', async () => {
  for (let i = 0; i < 20; i++) {
    const { simulation, node } = machine(seed * 40 + i)
    const { wal } = await simulation.finish(open(node.boot().disk))
    await simulation.finish(wal.append({ entries: [entry(1)] }))
    node.disk.faults.push({ operation: 'sync', code: 'EIO', times: 1 })
    await assert.rejects(simulation.finish(wal.append({ entries: [entry(2, 1, 900)] })), { code: 'EIO' })
    await simulation.finish(wal.close())
    const again = await simulation.finish(open(node.boot().disk))
    node.crash()
    const last = await simulation.finish(open(node.boot().disk))
    assert.deepEqual(last.recovered.entries, again.recovered.entries)
    assert.deepEqual(last.recovered.entries[0], entry(1))
  }
})

test('a write that fails half-way breaks the log, and leaves a torn end that the next start clears', async () => {
  for (let i = 0; i < 20; i++) {
    const { simulation, node } = machine(seed * 50 + i)
    const { wal } = await simulation.finish(open(node.boot().disk))
    await simulation.finish(wal.append({ entries: [entry(1)] }))
    node.disk.faults.push({ operation: 'write', code: 'ENOSPC', times: 1 })
    await assert.rejects(simulation.finish(wal.append({ entries: [entry(2, 1, 900)] })), { code: 'ENOSPC' })
    await assert.rejects(simulation.finish(wal.append({ entries: [entry(2)] })), { code: 'ENOSPC' })
    await simulation.finish(wal.close())
    if (i % 2 === 0) node.crash()
    const again = await simulation.finish(open(node.boot().disk))
    assert.deepEqual(again.recovered.entries[0], entry(1))
    const next = again.recovered.entries.length + 1
    await simulation.finish(again.wal.append({ entries: [entry(next)] }))
    await simulation.finish(again.wal.close())
    node.crash()
    const last = await simulation.finish(open(node.boot().disk))
    assert.deepEqual(last.recovered.entries.at(-1), entry(next))
  }
})
