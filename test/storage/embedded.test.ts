import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, cp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'node:test'
import { summarizeWal } from '../../raft/index.ts'
import { openLevelBackend } from '../../storage/backend-level.ts'
import { sealBytes } from '../../storage/backend/sealed-file.ts'
import { openEmbeddedStore, type EmbeddedStore, type EmbeddedStoreOptions } from '../../storage/embedded.ts'
import { openReplicas } from '../../storage/embedded-open.ts'
import { closeReplica } from '../../storage/embedded-replica.ts'
import { readManifest } from '../../storage/manifest.ts'
import type { StorageError } from '../../storage/errors.ts'
import type { WatchBatch } from '../../storage/store.ts'
import { env, inDirectory } from './backend-contract.ts'

const signal = () => AbortSignal.timeout(20_000)
const key = (name: string) => Buffer.from(`/registry/${name}`)
const everything = { key: key(''), rangeEnd: key('~') }

function open(directory: string, more: Partial<EmbeddedStoreOptions> = {}): Promise<EmbeddedStore> {
  return openEmbeddedStore({
    directory,
    env,
    compaction: { intervalMs: 0 },
    raft: { heartbeatMs: 20, electionTimeoutTicks: 10 },
    ...more,
  })
}

async function put(store: EmbeddedStore, name: string, value = name): Promise<number> {
  const op = { type: 'put' as const, key: key(name), value: Buffer.from(value) }
  return (await store.txn({ compare: [], success: [op], failure: [] }, { signal: signal() })).revision
}

async function values(store: EmbeddedStore): Promise<string[]> {
  const { kvs } = await store.range(everything, { signal: signal() })
  return kvs.map((kv) => Buffer.from(kv.value).toString())
}

/** Over names and bytes of every file. */
async function hashOf(directory: string): Promise<string> {
  const hash = createHash('sha256')
  for (const entry of (await readdir(directory, { recursive: true, withFileTypes: true })).sort((a, b) =>
    join(a.parentPath, a.name) < join(b.parentPath, b.name) ? -1 : 1,
  )) {
    hash.update(join(entry.parentPath, entry.name))
    if (entry.isFile()) hash.update(await readFile(join(entry.parentPath, entry.name)))
  }
  return hash.digest('hex')
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 1_000; i++) {
    if (await holds()) return
    await new Promise<void>((resolve) => void setTimeout(resolve, 10))
  }
  assert.fail(`never: ${what}`)
}

async function assertEqualReplicas(store: EmbeddedStore): Promise<void> {
  const ids = store.replicas().map(({ id }) => id)
  await until('all replicas applied the same', () => {
    const applied = store.replicas().map(({ raft }) => raft?.applied)
    return applied.every((index) => index !== undefined && index === applied[0])
  })
  const hashes = await Promise.all(ids.map((id) => store.hash(id)))
  for (const hash of hashes) assert.deepEqual(hash, hashes[0])
}

for (const replicas of [3, 1] as const) {
  test(`what ${replicas} replicas acknowledged is there after a close and a start`, () =>
    inDirectory(async (directory) => {
      let store = await open(directory, { replicas })
      const revision = await put(store, 'a')
      await store.close()
      await store.close()
      store = await open(directory, { replicas })
      assert.deepEqual(await values(store), ['a'])
      assert.equal(await store.currentRevision({ signal: signal() }), revision)
      await store.close()
    }))
}

test('the leader is the attached replica at rest', () =>
  inDirectory(async (directory) => {
    const store = await open(directory)
    const attached = store.replicas().find((replica) => replica.attached)
    assert.equal(attached?.raft?.role, 'leader')
    await store.close()
  }))

for (const lost of [1, 2, 3]) {
  test(`replica ${lost} gone: rebuilt before anybody votes, with a higher term`, () =>
    inDirectory(async (directory) => {
      let store = await open(directory)
      for (let i = 0; i < 20; i++) await put(store, `k${i}`)
      const before = Math.max(...store.replicas().map(({ raft }) => raft?.term ?? 0))
      await store.close()
      await rm(join(directory, `replica-${lost}`), { recursive: true })
      store = await open(directory)
      assert.equal((await values(store)).length, 20)
      assert.ok((store.replicas()[0]?.raft?.term ?? 0) > before)
      await put(store, 'after')
      await assertEqualReplicas(store)
      await store.close()
    }))
}

test('two of three replicas gone: refused, the way out named, no byte changed', () =>
  inDirectory(async (directory) => {
    const store = await open(directory)
    await put(store, 'a')
    await store.close()
    await rm(join(directory, 'replica-1'), { recursive: true })
    await rm(join(directory, 'replica-3'), { recursive: true })
    const before = await hashOf(directory)
    await assert.rejects(open(directory), (error: StorageError) => {
      assert.equal(error.code, 'ERR_DATA_DIR')
      assert.match(error.message, /put the missing ones back/)
      return true
    })
    assert.equal(await hashOf(directory), before)
  }))

test('a directory in use is refused, no byte changed, and free again when its process is gone', () =>
  inDirectory(async (directory) => {
    const store = await open(directory)
    await put(store, 'a')
    await assert.rejects(open(directory), { code: 'ERR_DATA_DIR' })
    await store.close()
    const claim = join(directory, 'LOCK.4711.then.00000000')
    await writeFile(claim, '')
    let alive = true
    const processes = {
      ownPid: 10,
      startOf: (pid: number) => Promise.resolve(pid === 10 || alive ? 'then' : undefined),
    }
    const before = await hashOf(directory)
    await assert.rejects(open(directory, { processes }), { code: 'ERR_DATA_DIR' })
    assert.equal(await hashOf(directory), before)
    alive = false
    await (await open(directory, { processes })).close()
  }))

test('the claim of a process that is gone is taken over', () =>
  inDirectory(async (directory) => {
    const processes = { ownPid: 10, startOf: (pid: number) => Promise.resolve(pid === 10 ? 'now' : undefined) }
    await writeFile(join(directory, 'LOCK.4711.then.00000000'), '')
    // The same pid, another process.
    await writeFile(join(directory, 'LOCK.10.then.00000000'), '')
    const store = await open(directory, { processes })
    const claims = (await readdir(directory)).filter((name) => name.startsWith('LOCK.'))
    assert.equal(claims.length, 1)
    assert.match(claims[0] ?? '', /^LOCK\.10\.now\./)
    await store.close()
  }))

test('another number of replicas is refused, no byte changed', () =>
  inDirectory(async (directory) => {
    await (await open(directory, { replicas: 1 })).close()
    const before = await hashOf(directory)
    await assert.rejects(open(directory, { replicas: 3 }), { code: 'ERR_DATA_DIR' })
    assert.equal(await hashOf(directory), before)
  }))

test('a manifest of a newer format is refused, no byte changed', () =>
  inDirectory(async (directory) => {
    await (await open(directory, { replicas: 1 })).close()
    await writeFile(join(directory, 'MANIFEST'), sealBytes({ magic: 'TRMF', version: 2 }, Buffer.from('new')))
    const before = await hashOf(directory)
    await assert.rejects(open(directory, { replicas: 1 }), { code: 'ERR_FORMAT' })
    assert.equal(await hashOf(directory), before)
  }))

test('replicas with data and no manifest are never started empty', () =>
  inDirectory(async (directory) => {
    const store = await open(directory)
    await put(store, 'a')
    await store.close()
    await rm(join(directory, 'MANIFEST'))
    await assert.rejects(open(directory), { code: 'ERR_DATA_DIR' })
  }))

for (const [what, damage] of [
  ['CHECKPOINT', (replica: string) => flipByte(join(replica, 'state-000001', 'CHECKPOINT'), 20)],
  ['rows', (replica: string) => rm(join(replica, 'state-000001', 'rows'), { recursive: true })],
  ['log', (replica: string) => rm(join(replica, 'wal'), { recursive: true })],
] as const) {
  test(`a replica with a damaged ${what} is kept aside and rebuilt`, () =>
    inDirectory(async (directory) => {
      let store = await open(directory)
      for (let i = 0; i < 5; i++) await put(store, `k${i}`)
      await store.close()
      await damage(join(directory, 'replica-2'))
      store = await open(directory)
      assert.equal((await values(store)).length, 5)
      await put(store, 'after')
      await assertEqualReplicas(store)
      await store.close()
      assert.ok((await readdir(directory)).includes('replica-2.damaged-1'))
    }))
}

for (const [what, path] of [
  ['CURRENT', 'CURRENT'],
  ['CHECKPOINT', 'state-000001/CHECKPOINT'],
  ['log', 'wal'],
] as const) {
  test(`a replica whose ${what} is a file of another kind is rebuilt`, () =>
    inDirectory(async (directory) => {
      let store = await open(directory)
      await put(store, 'k')
      await store.close()
      const there = join(directory, 'replica-2', path)
      await rm(there, { recursive: true })
      if (path === 'wal') await writeFile(there, '')
      else await mkdir(there)
      store = await open(directory)
      await put(store, 'after')
      await assertEqualReplicas(store)
      await store.close()
    }))
}

test('of the damaged directories of a replica the newest two are kept', () =>
  inDirectory(async (directory) => {
    for (let round = 0; round < 4; round++) {
      const store = await open(directory)
      await put(store, `k${round}`)
      await store.close()
      await rm(join(directory, 'replica-2', 'wal'), { recursive: true })
    }
    await (await open(directory)).close()
    const kept = (await readdir(directory)).filter((name) => name.includes('damaged')).sort()
    assert.deepEqual(kept, ['replica-2.damaged-3', 'replica-2.damaged-4'])
  }))

async function flipByte(path: string, at: number): Promise<void> {
  const bytes = await readFile(path)
  bytes[at] = (bytes[at] ?? 0) ^ 1
  await writeFile(path, bytes)
}

/** Opens and rebuilds, then closes before any node runs. */
async function rebuiltLog(directory: string, name: string) {
  const manifest = await readManifest(env.disk, directory)
  assert.ok(manifest)
  const { opened } = await openReplicas({ env, directory, manifest, openBackend: openLevelBackend })
  for (const replica of opened) await closeReplica(replica)
  return summarizeWal({ disk: env.disk, directory: join(directory, name, 'wal') })
}

// A and B acknowledge, C lags, B comes back empty: voting with a fresh log it could elect C, and the write is gone.
test('B70: a lost replica never votes with an empty log, the lagging one cannot lead', () =>
  inDirectory(async (top) => {
    const live = join(top, 'live')
    let store = await open(live)
    await put(store, 'old')
    const leader = store.replicas().find(({ raft }) => raft?.role === 'leader')
    const [b, c] = store.replicas().filter(({ id }) => id !== leader?.id)
    assert.ok(leader && b && c)
    await store.killReplica(c.id)
    await put(store, 'acknowledged')
    // As a loss of power leaves it: what was acknowledged is in the log alone, a close would have made a checkpoint of it.
    const directory = join(top, 'copy')
    await cp(live, directory, { recursive: true })
    await store.close()
    for (const name of await readdir(directory)) if (name.startsWith('LOCK.')) await rm(join(directory, name))
    await rm(join(directory, b.name), { recursive: true })
    const logOf = (name: string) => summarizeWal({ disk: env.disk, directory: join(directory, name, 'wal') })
    const terms = [await logOf(leader.name), await logOf(c.name)].map((log) => log?.term ?? 0)
    const log = await rebuiltLog(directory, b.name)
    assert.equal(log?.term, Math.max(...terms) + 1)
    assert.equal(log?.vote, 0n)
    assert.equal(log?.lastIndex, (await logOf(leader.name))?.lastIndex)
    store = await open(directory)
    assert.deepEqual(await values(store), ['acknowledged', 'old'])
    await assertEqualReplicas(store)
    await store.close()
  }))

test('watchers and callers go on without gap or repeat when the replica under them is killed', () =>
  inDirectory(async (directory) => {
    const store = await open(directory)
    const batches: WatchBatch[] = []
    let ended = false
    store.watch(
      { ...everything, startRevision: 2, prevKv: false },
      { onBatch: (batch) => void batches.push(batch), onEnd: () => (ended = true) },
    )
    const acknowledged: number[] = []
    let writing = true
    const writer = (async () => {
      for (let i = 0; writing; i++) {
        try {
          acknowledged.push(await put(store, `k${i % 7}`, String(i)))
        } catch (error) {
          assert.equal((error as StorageError).code, 'ERR_OUTCOME_UNKNOWN')
        }
      }
    })()
    for (let round = 0; round < 3; round++) {
      const before = acknowledged.length
      await until('writes go on', () => acknowledged.length > before + 20)
      const attached = store.replicas().find((replica) => replica.attached)
      assert.ok(attached)
      await store.killReplica(attached.id)
      const after = acknowledged.length
      await until('writes go on without it', () => acknowledged.length > after + 20)
      await store.startReplica(attached.id)
    }
    writing = false
    await writer
    const last = await store.currentRevision({ signal: signal() })
    await until('the watcher has everything', () => (batches.at(-1)?.revision ?? 0) >= last)
    const revisions = batches
      .filter(({ events }) => events.length > 0)
      .flatMap(({ events }) => events.map((e) => e.kv.modRevision))
    assert.deepEqual(
      revisions,
      Array.from({ length: last - 1 }, (_, i) => i + 2),
    )
    assert.equal(ended, false)
    assert.deepEqual(
      acknowledged,
      [...new Set(acknowledged)].sort((a, b) => a - b),
    )
    await assertEqualReplicas(store)
    await store.close()
    assert.equal(ended, true)
  }))

// etcd-io/etcd#15271: a member that was restored from a snapshot sent old revisions to its watchers again.
test('B5: a lagging replica gets a snapshot; states are equal and stay so after a restart', () =>
  inDirectory(async (directory) => {
    const raft = { heartbeatMs: 20, electionTimeoutTicks: 10, checkpointEntries: 50, catchUpEntries: 10 }
    let store = await open(directory, { raft })
    await put(store, 'first')
    const follower = store.replicas().find(({ attached }) => !attached)
    assert.ok(follower)
    await store.killReplica(follower.id)
    for (let i = 0; i < 300; i++) await put(store, `k${i % 40}`, `${i}`)
    await store.startReplica(follower.id)
    await assertEqualReplicas(store)
    const states = (await readdir(join(directory, follower.name))).filter((name) => name.startsWith('state-'))
    assert.deepEqual(states, ['state-000002'])
    await store.close()
    store = await open(directory, { raft })
    await assertEqualReplicas(store)
    assert.equal((await values(store)).length, 41)
    await store.close()
  }))

test('B23: replicas are equal after random load, kills and compactions', async (context) => {
  const seed = Number(process.env['SEED'] ?? 7)
  context.diagnostic(`SEED=${seed}`)
  let state = seed >>> 0
  const next = (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  await inDirectory(async (directory) => {
    const raft = { heartbeatMs: 20, electionTimeoutTicks: 10, checkpointEntries: 40, catchUpEntries: 20 }
    let store = await open(directory, { raft })
    for (let round = 0; round < 4; round++) {
      for (let i = 0; i < 60; i++) {
        if (next(4) > 0) await put(store, `k${next(20)}`, `${round}.${i}`)
        else {
          const op = { type: 'delete' as const, key: key(`k${next(20)}`) }
          await store.txn({ compare: [], success: [op], failure: [] }, { signal: signal() })
        }
      }
      const { revision, compactRevision } = store.status()
      const target = compactRevision + 1 + next(revision - compactRevision)
      await store.compact({ revision: Math.min(target, revision), physical: next(2) === 0 }, { signal: signal() })
      const followers = store.replicas().filter(({ attached }) => !attached)
      const victim = followers[next(followers.length)]
      assert.ok(victim)
      await store.killReplica(victim.id)
      for (let i = 0; i < 10; i++) await put(store, `k${next(20)}`, `late ${i}`)
      await store.startReplica(victim.id)
      await assertEqualReplicas(store)
      const before = await values(store)
      await store.close()
      store = await open(directory, { raft })
      await assertEqualReplicas(store)
      assert.deepEqual(await values(store), before)
    }
    await store.close()
  })
})

test('a start that fails leaves nothing open and the directory free', () =>
  inDirectory(async (directory) => {
    let store = await open(directory)
    await put(store, 'a')
    await store.close()
    for (const name of ['replica-1', 'replica-2']) {
      await rename(join(directory, name, 'wal'), join(directory, name, 'elsewhere'))
    }
    await assert.rejects(open(directory), { code: 'ERR_DATA_DIR' })
    assert.deepEqual(
      (await readdir(directory)).filter((name) => name.startsWith('LOCK.')),
      [],
    )
    for (const name of ['replica-1', 'replica-2']) {
      await rename(join(directory, name, 'elsewhere'), join(directory, name, 'wal'))
    }
    store = await open(directory)
    assert.deepEqual(await values(store), ['a'])
    await store.close()
  }))

test('a copy taken while it runs starts with everything acknowledged: the log alone is the durability point', () =>
  inDirectory(async (directory) => {
    const live = join(directory, 'live')
    const store = await open(live)
    for (let i = 0; i < 30; i++) await put(store, `k${String(i).padStart(2, '0')}`)
    const copy = join(directory, 'copy')
    await cp(live, copy, { recursive: true })
    await store.close()
    for (const name of await readdir(copy)) if (name.startsWith('LOCK.')) await rm(join(copy, name))
    for (const name of ['replica-1', 'replica-2', 'replica-3']) {
      const rows = join(copy, name, 'state-000001', 'rows')
      for (const file of await readdir(rows)) if (file.endsWith('.log')) await rm(join(rows, file))
    }
    const again = await open(copy)
    assert.equal((await values(again)).length, 30)
    await assertEqualReplicas(again)
    await again.close()
  }))
