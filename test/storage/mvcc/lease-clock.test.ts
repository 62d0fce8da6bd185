import assert from 'node:assert/strict'
import test from 'node:test'
import { LeaseClock } from '../../../storage/mvcc/lease-clock.ts'
import { rejects } from '../../contract/store/store-harness.ts'
import { EngineRig, ManualClock } from './manual-env.ts'

function leader() {
  const rig = new EngineRig()
  const clock = new ManualClock()
  const leases = new LeaseClock({ clock, leases: rig.engine })
  leases.promote()
  leases.reconfirmed()
  /** As the leader does: a look every half second. */
  const pass = (ms: number) => {
    const found: bigint[] = []
    for (let passed = 0; passed < ms; passed += 500) {
      clock.nowMs += 500
      found.push(...leases.expired())
    }
    return found
  }
  return { rig, clock, leases, pass }
}

const confirmed = () => Promise.resolve()

test('a lease is handed out when its time is over, not before, and again when its revocation is lost', () => {
  const { rig, leases, pass } = leader()
  rig.apply({ type: 'leaseGrant', id: 1n, ttlSeconds: 5 })
  assert.deepEqual(pass(4_500), [])
  assert.equal(leases.remainingSeconds(1n), 0)
  assert.deepEqual(pass(500), [1n])
  assert.deepEqual(pass(2_500), [])
  assert.deepEqual(pass(500), [1n])
  rig.apply({ type: 'leaseRevoke', id: 1n })
  assert.deepEqual(pass(10_000), [])
})

test('renewing gives the whole time again', async () => {
  const { rig, leases, pass } = leader()
  rig.apply({ type: 'leaseGrant', id: 1n, ttlSeconds: 5 })
  pass(4_000)
  assert.equal(await leases.keepAlive(1n, confirmed), 5)
  assert.deepEqual(pass(4_500), [])
  assert.deepEqual(pass(500), [1n])
  await rejects(leases.keepAlive(1n, confirmed), 'ERR_LEASE_NOT_FOUND')
})

test('B32: after a stall nothing expires until leadership is confirmed, and the stall is given back', () => {
  const { rig, clock, leases, pass } = leader()
  rig.apply({ type: 'leaseGrant', id: 1n, ttlSeconds: 5 })
  pass(1_000)
  clock.nowMs += 60_000
  assert.deepEqual([leases.expired(), leases.frozen], [[], true])
  assert.deepEqual(pass(10_000), [])
  leases.reconfirmed()
  assert.deepEqual(leases.expired(), [1n])
  // A stall that ends in a confirmation costs nobody a lease.
  rig.apply({ type: 'leaseGrant', id: 2n, ttlSeconds: 5 })
  clock.nowMs += 60_000
  leases.reconfirmed()
  assert.deepEqual(pass(4_500).includes(2n), false)
})

test('B33: a renewal does not succeed when the lease is revoked before it is confirmed', async () => {
  const { rig, leases } = leader()
  rig.apply({ type: 'leaseGrant', id: 1n, ttlSeconds: 5 })
  const renewal = leases.keepAlive(1n, async () => {
    rig.apply({ type: 'leaseRevoke', id: 1n })
  })
  await rejects(renewal, 'ERR_LEASE_NOT_FOUND')
})

test('a new leader gives every lease its whole time, a former one renews nothing', async () => {
  const { rig, leases, pass } = leader()
  rig.apply({ type: 'leaseGrant', id: 1n, ttlSeconds: 5 })
  pass(4_000)
  leases.demote()
  await rejects(leases.keepAlive(1n, confirmed), 'ERR_NO_LEADER')
  assert.deepEqual([pass(10_000), leases.remainingSeconds(1n)], [[], undefined])
  leases.promote()
  assert.equal(leases.remainingSeconds(1n), 5)
  assert.equal(leases.frozen, true)
  const lost = leases.keepAlive(1n, async () => leases.demote())
  await rejects(lost, 'ERR_NO_LEADER')
})
