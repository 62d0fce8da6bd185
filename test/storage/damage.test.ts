import assert from 'node:assert/strict'
import { cp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'node:test'
import { openEmbeddedStore, type EmbeddedStore } from '../../storage/embedded.ts'
import { StorageError } from '../../storage/errors.ts'
import { env, inDirectory } from './backend-contract.ts'

const seed = Number(process.env['SEED'] ?? 1)
const options = () => ({ signal: AbortSignal.timeout(20_000) })
const everything = { key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0) }

function open(directory: string): Promise<EmbeddedStore> {
  return openEmbeddedStore({
    directory,
    env,
    compaction: { intervalMs: 0 },
    raft: { heartbeatMs: 20, electionTimeoutTicks: 10, stopCatchUpBytes: 4_000 },
  })
}

async function put(store: EmbeddedStore, name: string, text: string): Promise<void> {
  const op = { type: 'put' as const, key: Buffer.from(name), value: Buffer.from(text) }
  await store.txn({ compare: [], success: [op], failure: [] }, options())
}

async function contents(store: EmbeddedStore): Promise<string[]> {
  const { kvs } = await store.range(everything, options())
  return kvs.map((kv) => `${kv.modRevision} ${Buffer.from(kv.key).toString()} ${Buffer.from(kv.value).toString()}`)
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let i = 0; i < 500; i++) {
    if (holds()) return
    await new Promise<void>((resolve) => void setTimeout(resolve, 10))
  }
  assert.fail(`never: ${what}`)
}

/** A closed store with rows in tables and in the log, some deleted and some compacted; its contents. */
async function fill(directory: string): Promise<readonly string[]> {
  const store = await open(directory)
  for (let i = 0; i < 60; i++) await put(store, `key/${i % 40}`, `${i} `.repeat(50))
  await store.compact({ revision: 30, physical: true }, options())
  const removed = { type: 'delete' as const, key: Buffer.from('key/7') }
  await store.txn({ compare: [], success: [removed], failure: [] }, options())
  for (let i = 60; i < 80; i++) await put(store, `key/${i}`, `${i} `.repeat(50))
  const expected = await contents(store)
  await store.close()
  return expected
}

async function filesOf(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return files.map((path) => path.slice(directory.length + 1)).sort()
}

/**
 * Replica 2 is damaged; whatever that does, nothing but the right contents is ever read, from the damaged one neither:
 * it is found damaged at the start, or ends when it is read, or was not harmed. In the end all three are whole.
 */
async function check(directory: string, expected: readonly string[], what: string): Promise<void> {
  let store = await open(directory)
  assert.deepEqual(await contents(store), expected, what)
  // Every row of the damaged replica, through its own rows. Followers as it is: it must be there first.
  const { id } = store.replicas()[1] ?? {}
  assert.ok(id !== undefined)
  await put(store, 'after', what)
  const current = await contents(store)
  const applied = () => store.replicas().map(({ raft }) => raft?.applied)
  await until(`${what}: every replica has caught up or ended`, () => {
    return new Set(applied().filter((index) => index !== undefined)).size === 1
  })
  const hashes = await Promise.allSettled(store.replicas().map((replica) => store.hash(replica.id)))
  const whole = hashes.flatMap((hash) => (hash.status === 'fulfilled' ? [hash.value] : []))
  assert.ok(whole.length >= 2, what)
  for (const hash of whole) assert.deepEqual(hash, whole[0], what)
  assert.deepEqual(await contents(store), current, what)
  if (whole.length === 2) {
    await until(`${what}: it ends`, () => store.replicas()[1]?.state === 'broken')
    await assert.rejects(store.startReplica(id), (error: StorageError) => error.code === 'ERR_CORRUPT', what)
  }
  await store.close()
  store = await open(directory)
  assert.deepEqual(await contents(store), current, what)
  const states = store.replicas().map(({ state }) => state)
  assert.deepEqual(states, ['running', 'running', 'running'], what)
  const again = await Promise.all(store.replicas().map((replica) => store.hash(replica.id)))
  for (const hash of again) assert.equal(hash.hash, again[0]?.hash, what)
  await store.close()
}

test(`each file of a replica damaged, cut short or gone: never served, made whole from the others (seed ${seed})`, async (context) => {
  let draw = seed
  const between = (low: number, high: number) => {
    draw = (Math.imul(draw, 1664525) + 1013904223) >>> 0
    return low + Math.floor((draw / 2 ** 32) * (high - low))
  }
  await inDirectory(async (top) => {
    const whole = join(top, 'whole')
    const expected = await fill(whole)
    const files = await filesOf(join(whole, 'replica-2'))
    context.diagnostic(files.join(' '))
    for (const kind of ['MANIFEST', 'CHECKPOINT', '.wal', '.ldb', '.log']) {
      assert.ok(
        files.some((file) => file.includes(kind)),
        kind,
      )
    }
    const directory = join(top, 'copy')
    for (const file of files) {
      const path = join(directory, 'replica-2', file)
      const { size } = await stat(join(whole, 'replica-2', file))
      // Of a log segment, where something is written.
      const used = file.endsWith('.wal') ? Math.min(size, 3_000) : size
      const damages: readonly (readonly [string, () => Promise<void>])[] = [
        ['gone', () => rm(path)],
        ['cut', () => truncate(path, between(0, used))],
        ...[1, 2, 3].map((): readonly [string, () => Promise<void>] => ['flipped', () => flip(path, between(0, used))]),
      ]
      for (const [what, damage] of size === 0 ? damages.slice(0, 1) : damages) {
        await cp(whole, directory, { recursive: true })
        await damage()
        await check(directory, expected, `${file} ${what}`)
        await rm(directory, { recursive: true })
      }
    }
  })
})

test('all three replicas damaged: refused with the names of the files, and nothing is thrown away', () =>
  inDirectory(async (directory) => {
    await fill(directory)
    const damaged = [1, 2, 3].map((number) => join(directory, `replica-${number}`, 'state-000001', 'CHECKPOINT'))
    for (const path of damaged) await flip(path, 30)
    await assert.rejects(open(directory), (error: StorageError) => {
      assert.equal(error.code, 'ERR_DATA_DIR')
      for (const path of damaged) assert.ok(error.message.includes(path), error.message)
      return true
    })
    for (const path of damaged) await flip(path, 30)
    const store = await open(directory)
    assert.equal((await contents(store)).length, 59)
    await store.close()
  }))

async function flip(path: string, at: number): Promise<void> {
  const bytes = await readFile(path)
  bytes[at] = (bytes[at] ?? 0) ^ 1
  await writeFile(path, bytes)
}
