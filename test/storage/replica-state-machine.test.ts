import assert from 'node:assert/strict'
import { join } from 'node:path'
import test from 'node:test'
import { DiskError, type Disk, type DiskFile, type Env } from '../../raft/index.ts'
import { openMemoryBackend } from '../../storage/backend-memory.ts'
import { encodeProposal } from '../../storage/proposal.ts'
import { ReplicaDirectory } from '../../storage/replica-directory.ts'
import { ReplicaStateMachine } from '../../storage/replica-state-machine.ts'
import { env, inDirectory } from './backend-contract.ts'

function entry(index: number) {
  const op = { type: 'put' as const, key: Buffer.from(`k${index % 5}`), value: Buffer.from(`v${index}`) }
  const request = { compare: [], success: [op], failure: [] }
  return { index, term: 1, type: 'normal' as const, data: encodeProposal({ type: 'txn', request }) }
}

/** Every change fails from the `last + 1`-th on, as if the process had died there. */
function dyingDisk(disk: Disk, last: number): { disk: Disk; died: () => boolean } {
  let changes = 0
  const step = (path: string) => {
    if (++changes > last) throw new DiskError('EIO', path)
  }
  const wrap = (file: DiskFile, path: string): DiskFile => ({
    read: (buffer, position) => file.read(buffer, position),
    write: async (chunks, position) => (step(path), file.write(chunks, position)),
    sync: async () => (step(path), file.sync()),
    truncate: async (size) => (step(path), file.truncate(size)),
    size: () => file.size(),
    close: () => file.close(),
  })
  return {
    died: () => changes > last,
    disk: {
      open: async (path, mode) => {
        if (mode === 'create') step(path)
        return wrap(await disk.open(path, mode), path)
      },
      readFile: (path) => disk.readFile(path),
      list: (path) => disk.list(path),
      exists: (path) => disk.exists(path),
      makeDirectory: async (path) => (step(path), disk.makeDirectory(path)),
      rename: async (from, to) => (step(from), disk.rename(from, to)),
      remove: async (path) => (step(path), disk.remove(path)),
      removeTree: async (path) => (step(path), disk.removeTree(path)),
      syncDirectory: async (path) => (step(path), disk.syncDirectory(path)),
    },
  }
}

async function open(path: string, under: Env) {
  const directory = await ReplicaDirectory.open(under.disk, path)
  assert.ok(directory)
  return ReplicaStateMachine.open({ env: under, directory, openBackend: openMemoryBackend })
}

test('a death at any step of staging and installing leaves the old state or the new one, whole', () =>
  inDirectory(async (root) => {
    const sourcePath = join(root, 'source')
    await ReplicaDirectory.create(env.disk, sourcePath)
    const source = await open(sourcePath, env)
    for (let index = 1; index <= 9; index++) source.apply(entry(index))
    await source.checkpoint()
    const wanted = await source.engine.hash()
    const seen = { old: 0, new: 0 }
    for (let last = 0; ; last++) {
      const path = join(root, `replica-${last}`)
      await ReplicaDirectory.create(env.disk, path)
      const before = await open(path, env)
      for (let index = 1; index <= 3; index++) before.apply(entry(index))
      await before.checkpoint()
      const old = await before.engine.hash()
      await before.close()

      const dying = dyingDisk(env.disk, last)
      const snapshot = await source.openSnapshot()
      try {
        const machine = await open(path, { ...env, disk: dying.disk })
        const staged = await machine.stageSnapshot(snapshot.meta, snapshot.chunks)
        await staged.install()
        await machine.close()
      } catch (error) {
        assert.ok(error instanceof DiskError, String(error))
      }
      await snapshot.close()

      const after = await open(path, env)
      const expected = after.appliedIndex === 9 ? wanted : old
      assert.ok(after.appliedIndex === 9 || after.appliedIndex === 3, `applied ${after.appliedIndex}`)
      assert.deepEqual(await after.engine.hash(), expected, `death after step ${last}`)
      seen[after.appliedIndex === 9 ? 'new' : 'old']++
      await after.close()
      if (!dying.died()) break
    }
    assert.ok(seen.old > 5 && seen.new > 1, JSON.stringify(seen))
    await source.close()
  }))

test('B21 and B5: a reader and a watcher go on over an installed snapshot, in order and without repeats', () =>
  inDirectory(async (root) => {
    for (const name of ['ahead', 'behind']) await ReplicaDirectory.create(env.disk, join(root, name))
    const ahead = await open(join(root, 'ahead'), env)
    const behind = await open(join(root, 'behind'), env)
    for (let index = 1; index <= 8; index++) ahead.apply(entry(index))
    for (let index = 1; index <= 3; index++) behind.apply(entry(index))
    const revisions: number[] = []
    behind.engine.watch(
      { key: Buffer.from('k'), rangeEnd: Buffer.from('l'), startRevision: 2, prevKv: false },
      { onBatch: ({ events }) => revisions.push(...events.map(({ kv }) => kv.modRevision)), onEnd: () => undefined },
    )
    const snapshot = await ahead.openSnapshot()
    const staged = await behind.stageSnapshot(snapshot.meta, snapshot.chunks)
    await snapshot.close()
    await staged.install()
    await staged.discard()
    assert.equal(behind.appliedIndex, 8)
    behind.apply(entry(9))
    for (let i = 0; revisions.length < 9 && i < 100; i++)
      await new Promise<void>((resolve) => void setImmediate(resolve))
    assert.deepEqual(revisions, [2, 3, 4, 5, 6, 7, 8, 9, 10])
    assert.equal((await behind.engine.range({ key: Buffer.from('k4') })).kvs.length, 1)
    await ahead.close()
    await behind.close()
  }))
