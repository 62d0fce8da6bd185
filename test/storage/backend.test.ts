import assert from 'node:assert/strict'
import { cp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'node:test'
import { openLevelBackend } from '../../storage/backend-level.ts'
import { openMemoryBackend } from '../../storage/backend-memory.ts'
import { env, head, headsOf, inDirectory, runBackendContract, state } from './backend-contract.ts'

runBackendContract('LevelDB backend', openLevelBackend)
runBackendContract('memory backend', openMemoryBackend)

// google/leveldb#193: a write is durable only with the log it is in; after a rotation an older log can be lost while a
// newer one survives.
test('B69: whichever LevelDB log is lost, the checkpoint is whole and nothing above it is believed', () =>
  inDirectory(async (directory) => {
    const live = join(directory, 'live')
    await env.disk.makeDirectory(live)
    const backend = await openLevelBackend({ directory: live, env })
    for (let i = 1; i <= 20; i++) {
      backend.put(head(i + 1, `k${i}`), Buffer.alloc(100, i))
      backend.commit({ index: i, term: 1 })
    }
    await backend.checkpoint(state(21))
    // More than two write buffers: the log rotates under it.
    for (let i = 21; i <= 80; i++) {
      backend.put(head(i + 1, `k${i}`), Buffer.alloc(100_000, i))
      backend.commit({ index: i, term: 1 })
      if (i % 10 === 0) await backend.flush()
    }
    const copy = join(directory, 'copy')
    await cp(live, copy, { recursive: true })
    await backend.close()
    const logs = (await readdir(join(copy, 'rows'))).filter((name) => name.endsWith('.log'))
    assert.ok(logs.length > 0)
    for (const lost of logs) {
      const damaged = join(directory, `damaged-${lost}`)
      await cp(copy, damaged, { recursive: true })
      await rm(join(damaged, 'rows', lost))
      const reopened = await openLevelBackend({ directory: damaged, env })
      assert.equal(reopened.checkpointed?.index, 20)
      assert.deepEqual(
        (await headsOf(reopened)).map(({ main }) => main),
        Array.from({ length: 20 }, (_, i) => i + 2),
      )
      await reopened.close()
    }
  }))

test('a LevelDB checkpoint moves the rows out of the unsynced log', () =>
  inDirectory(async (directory) => {
    const backend = await openLevelBackend({ directory, env })
    backend.put(head(2, 'a'), Buffer.alloc(50_000, 1))
    backend.commit({ index: 1, term: 1 })
    await backend.checkpoint(state(2))
    const rows = join(directory, 'rows')
    let logBytes = 0
    for (const name of await readdir(rows)) if (name.endsWith('.log')) logBytes += (await stat(join(rows, name))).size
    assert.ok(logBytes < 1_000, `${logBytes} bytes lie in the log`)
    await backend.close()
  }))
