import assert from 'node:assert/strict'
import test from 'node:test'
import { keyRange, rangeHolds, type KeyRange } from '../../../storage/mvcc/key-range.ts'
import { WatcherIndex } from '../../../storage/mvcc/watcher-index.ts'
import { bytes } from '../../contract/store/store-harness.ts'
import { seededRandom } from '../../contract/store/random-program.ts'

test('the index finds the watchers that a look at every range finds', () => {
  const seed = Number(process.env['SEED'] ?? 3)
  const random = seededRandom(seed)
  const name = () => Array.from({ length: 1 + random(3) }, () => 'ab/0\xff'[random(5)]).join('')
  const index = new WatcherIndex<{ readonly range: KeyRange }>()
  const all = new Set<{ readonly range: KeyRange }>()
  for (let step = 0; step < 3_000; step += 1) {
    if (random(3) > 0) {
      const key = name()
      // A key, a prefix, anything else, an open range.
      const ends = [
        undefined,
        key.slice(0, -1) + String.fromCharCode((key.charCodeAt(key.length - 1) + 1) % 256),
        name(),
        '\0',
      ]
      const end = ends[random(4)]
      const watcher = { range: keyRange(bytes(key), end === undefined ? undefined : bytes(end)) }
      index.add(watcher)
      all.add(watcher)
    } else {
      const [oldest] = all
      if (oldest !== undefined) {
        index.remove(oldest)
        index.remove(oldest)
        all.delete(oldest)
      }
    }
    const key = name()
    const found: unknown[] = []
    index.forEachMatch(key, (watcher) => void found.push(watcher))
    const expected = [...all].filter(({ range }) => rangeHolds(range, key))
    assert.equal(found.length, expected.length, `SEED=${seed} step ${step}`)
    assert.deepEqual(new Set(found), new Set(expected), `SEED=${seed} step ${step}`)
    assert.equal(index.size, all.size)
  }
  assert.equal([...index].length, all.size)
})
