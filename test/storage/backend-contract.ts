import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { createNodeEnv } from '../../raft/env-node.ts'
import { silentLogger, type Env } from '../../raft/index.ts'
import type { RowHead, StateRecord } from '../../storage/backend.ts'
import type { OpenBackend, ReplicaBackend } from '../../storage/backend/replica-backend.ts'
import { StorageError } from '../../storage/errors.ts'

export const env: Env = createNodeEnv({ log: silentLogger })

export function head(main: number, key: string, more: Partial<RowHead> = {}): RowHead {
  return {
    main,
    sub: 0,
    tombstone: false,
    key: Buffer.from(key),
    createRevision: main,
    version: 1,
    lease: 0n,
    ...more,
  }
}

export function state(revision: number, compactRevision = 0): StateRecord {
  return {
    revision,
    compactRevision,
    membership: { voters: [1n, 2n, 0xffff_ffff_ffff_ffffn], learners: [9n] },
    leases: [{ id: -5n, ttlSeconds: 60 }],
    alarms: [{ member: 3n, type: 'CORRUPT' }],
    keyCount: 5,
  }
}

export async function inDirectory(run: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'trireme-backend-'))
  const alive = setInterval(() => undefined, 60_000)
  try {
    await run(directory)
  } finally {
    clearInterval(alive)
    await rm(directory, { recursive: true, force: true })
  }
}

export async function headsOf(backend: ReplicaBackend): Promise<RowHead[]> {
  const all: RowHead[] = []
  for await (const slice of backend.heads()) all.push(...slice)
  return all
}

const revisionsOf = async (backend: ReplicaBackend) => (await headsOf(backend)).map(({ main, sub }) => `${main}.${sub}`)

/** What every Backend does. One after the other on a fresh directory. */
export function runBackendContract(name: string, open: OpenBackend): void {
  const check = (what: string, run: (directory: string) => Promise<void>): void => {
    void test(`${name}: ${what}`, () => inDirectory(run))
  }

  check('a new directory has no checkpoint and no rows', async (directory) => {
    const backend = await open({ directory, env })
    assert.equal(backend.checkpointed, undefined)
    assert.deepEqual(await headsOf(backend), [])
    await backend.close()
  })

  check('values are served before and after they are written, heads survive bit for bit', async (directory) => {
    const backend = await open({ directory, env })
    const rows = [
      head(2, 'b', { lease: -3n, version: 7, createRevision: 1 }),
      head(2, 'a', { sub: 1, tombstone: true, version: 0, createRevision: 0 }),
      head(2 ** 40, '\u00ff\u0000x', { lease: 2n ** 62n }),
    ]
    for (const [i, row] of rows.entries()) backend.put(row, Buffer.from(`value ${i}`))
    backend.commit({ index: 1, term: 1 })
    assert.equal(Buffer.from(backend.value(rows[0]!)).toString(), 'value 0')
    await backend.flush()
    assert.equal(backend.pendingBytes, 0)
    for (const [i, row] of rows.entries()) assert.equal(Buffer.from(backend.value(row)).toString(), `value ${i}`)
    const plain = (row: RowHead) => ({ ...row, key: Buffer.from(row.key).toString('hex') })
    assert.deepEqual((await headsOf(backend)).map(plain), rows.map(plain))
    await backend.close()
  })

  check('a reopened directory holds the checkpoint and nothing above it', async (directory) => {
    let backend = await open({ directory, env })
    backend.put(head(2, 'a'), Buffer.from('1'))
    backend.commit({ index: 5, term: 2 })
    assert.deepEqual(await backend.checkpoint(state(2)), { index: 5, term: 2 })
    backend.put(head(3, 'b'), Buffer.from('2'))
    backend.commit({ index: 6, term: 2 })
    await backend.close()
    backend = await open({ directory, env })
    assert.deepEqual(backend.checkpointed, { ...state(2), index: 5, term: 2 })
    assert.deepEqual(await revisionsOf(backend), ['2.0'])
    await backend.close()
  })

  check('rows without any checkpoint are not believed', async (directory) => {
    let backend = await open({ directory, env })
    backend.put(head(2, 'a'), Buffer.from('1'))
    backend.commit({ index: 1, term: 1 })
    await backend.close()
    backend = await open({ directory, env })
    assert.deepEqual(await headsOf(backend), [])
    await backend.close()
  })

  check('a missing row is ERR_CORRUPT and breaks the backend', async (directory) => {
    const backend = await open({ directory, env })
    const corrupt = (error: unknown) => error instanceof StorageError && error.code === 'ERR_CORRUPT'
    assert.throws(() => backend.value(head(7, 'nowhere')), corrupt)
    assert.throws(() => backend.put(head(8, 'x'), Buffer.from('')), corrupt)
    assert.ok(backend.broken)
    await backend.close()
  })

  check('a view stays as it was while rows come and go', async (directory) => {
    const backend = await open({ directory, env })
    backend.put(head(2, 'a'), Buffer.from('1'))
    backend.put(head(2, 'b', { sub: 1 }), Buffer.from('2'))
    backend.commit({ index: 1, term: 1 })
    const opening = backend.openView(state(2))
    backend.put(head(3, 'c'), Buffer.from('3'))
    backend.commit({ index: 2, term: 1 })
    const view = await opening
    await backend.checkpoint(state(3, 2))
    backend.remove(head(2, 'a'))
    backend.commit({ index: 3, term: 1 })
    await backend.flush()
    assert.equal(view.state.index, 1)
    const seen: string[] = []
    for await (const rows of view.rows())
      for (const row of rows) seen.push(`${row.head.main}=${Buffer.from(row.value)}`)
    assert.deepEqual(seen, ['2=1', '2=2'])
    await view.close()
    assert.deepEqual(await revisionsOf(backend), ['2.1', '3.0'])
    await backend.close()
  })

  check('a tombstone leaves the rows only once the removal of what it hides is durable', async (directory) => {
    const backend = await open({ directory, env })
    backend.put(head(2, 'a'), Buffer.from('1'))
    backend.commit({ index: 1, term: 1 })
    const tombstone = head(3, 'a', { tombstone: true, version: 0, createRevision: 0 })
    backend.put(tombstone, Buffer.from(''))
    backend.put(head(4, 'b'), Buffer.from('2'))
    backend.commit({ index: 2, term: 1 })
    await backend.checkpoint(state(4, 4))
    backend.remove(head(2, 'a'))
    backend.remove(tombstone)
    backend.commit({ index: 3, term: 1 })
    await backend.flush()
    assert.deepEqual(await revisionsOf(backend), ['3.0', '4.0'])
    await backend.checkpoint(state(4, 4))
    await backend.flush()
    assert.deepEqual(await revisionsOf(backend), ['4.0'])
    await backend.close()
  })

  check('a torn CHECKPOINT is ERR_CORRUPT, a newer one ERR_FORMAT', async (directory) => {
    const backend = await open({ directory, env })
    backend.put(head(2, 'a'), Buffer.from('1'))
    backend.commit({ index: 1, term: 1 })
    await backend.checkpoint(state(2))
    await backend.close()
    const path = join(directory, 'CHECKPOINT')
    const whole = Buffer.from(await env.disk.readFile(path))
    const { writeFile } = await import('node:fs/promises')
    for (let length = 0; length < whole.length; length += 7) {
      await writeFile(path, whole.subarray(0, length))
      await assert.rejects(open({ directory, env }), { code: 'ERR_CORRUPT' })
    }
    const { sealBytes } = await import('../../storage/backend/sealed-file.ts')
    await writeFile(path, sealBytes({ magic: 'TRCP', version: 2 }, Buffer.from('whatever comes')))
    await assert.rejects(open({ directory, env }), { code: 'ERR_FORMAT' })
  })

  check('rows that end before a durable checkpoint are ERR_CORRUPT', async (directory) => {
    const backend = await open({ directory, env })
    backend.put(head(2, 'a'), Buffer.from('1'))
    backend.commit({ index: 4, term: 1 })
    await backend.checkpoint(state(2))
    await backend.close()
    await rm(join(directory, 'rows'), { recursive: true })
    await assert.rejects(open({ directory, env }), { code: 'ERR_CORRUPT' })
  })
}
