import assert from 'node:assert/strict'
import test from 'node:test'
import { StorageError } from '../../../storage/index.ts'
import { decodeProposal, encodeProposal, type Proposal } from '../../../storage/proposal.ts'
import { ProgramMaker, seededRandom } from '../../contract/store/random-program.ts'
import { bytes, StoreHarness } from '../../contract/store/store-harness.ts'
import { createMemoryStore } from '../../../storage/memory-store.ts'
import { createNodeEnv } from '../../../raft/env-node.ts'
import { silentLogger } from '../../../storage/index.ts'

const store = createMemoryStore({ env: createNodeEnv({ log: silentLogger }) })

test('what was encoded is decoded, and encodes to the same bytes', () => {
  const seed = Number(process.env['SEED'] ?? 5)
  const maker = new ProgramMaker(seed, new StoreHarness(store, '/p/'))
  for (let step = 0; step < 1_000; step += 1) {
    const next = maker.next(2 ** 45 + step, 0)
    if (next.type !== 'txn') continue
    const proposal: Proposal = { type: 'txn', request: next }
    const data = encodeProposal(proposal)
    assert.deepEqual(Buffer.from(encodeProposal(decodeProposal(data))), Buffer.from(data), `SEED=${seed} step ${step}`)
  }
  const others: Proposal[] = [
    { type: 'compact', revision: Number.MAX_SAFE_INTEGER },
    { type: 'leaseGrant', id: -5n, ttlSeconds: 9_000_000_000 },
    { type: 'leaseRevoke', id: 2n ** 63n - 1n },
  ]
  for (const proposal of others) assert.deepEqual(decodeProposal(encodeProposal(proposal)), proposal)
})

test('a decoded value is a piece of the entry, not a copy', () => {
  const data = encodeProposal({
    type: 'txn',
    request: { compare: [], success: [{ type: 'put', key: bytes('a'), value: bytes('value') }], failure: [] },
  })
  const proposal = decodeProposal(data)
  assert.ok(proposal.type === 'txn')
  const [op] = proposal.request.success
  assert.ok(op?.type === 'put')
  assert.equal(op.value.buffer, data.buffer)
})

test('bytes in format 1 stay readable', () => {
  const golden = encodeProposal({
    type: 'txn',
    request: {
      compare: [{ key: bytes('ab'), op: '=', target: 'mod', is: 7 }],
      success: [{ type: 'put', key: bytes('a'), value: bytes('x'), lease: 0x0102030405060708n }],
      failure: [],
    },
  })
  assert.equal(
    Buffer.from(golden).toString('hex'),
    [
      '0101',
      '01',
      '000000',
      '026162',
      '0700000000000000',
      '01',
      '02',
      '04',
      '0161',
      '0807060504030201',
      '0178',
      '00',
    ].join(''),
  )
})

test('a newer format, a cut and any changed byte never give anything but a StorageError or a proposal', () => {
  const random = seededRandom(9)
  const data = encodeProposal({
    type: 'txn',
    request: {
      compare: [{ key: bytes('a'), op: '=', target: 'value', is: bytes('v') }],
      success: [
        { type: 'put', key: bytes('a'), value: bytes('x'), lease: 3n },
        { type: 'range', key: bytes('b'), limit: 3 },
      ],
      failure: [{ type: 'txn', compare: [], success: [{ type: 'delete', key: bytes('c') }], failure: [] }],
    },
  })
  const code = (bytesOf: Uint8Array) => {
    try {
      decodeProposal(bytesOf)
      return 'decoded'
    } catch (error) {
      assert.ok(error instanceof StorageError, String(error))
      return error.code
    }
  }
  assert.equal(code(Uint8Array.from([2, ...data.subarray(1)])), 'ERR_FORMAT')
  for (let length = 0; length < data.length; length += 1) assert.equal(code(data.subarray(0, length)), 'ERR_CORRUPT')
  assert.equal(code(Uint8Array.from([...data, 0])), 'ERR_CORRUPT')
  for (let round = 0; round < 3_000; round += 1) {
    const changed = Uint8Array.from(data)
    changed[random(changed.length)] = random(256)
    code(changed)
  }
})
