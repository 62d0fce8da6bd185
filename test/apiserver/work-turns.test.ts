import assert from 'node:assert/strict'
import test from 'node:test'
import { WorkTurns } from '../../apiserver/work-turns.ts'
import { createTestEnv, until } from './doubles.ts'

test('loops take turns: one of them works in a turn of the event loop, in order', async () => {
  const env = createTestEnv()
  const turns = new WorkTurns(env)
  let turn = 0
  let running = true
  const count = (): void => {
    turn += 1
    if (running) setImmediate(count)
  }
  setImmediate(count)
  const worked: { readonly loop: number; readonly turn: number }[] = []
  const loop = async (name: number): Promise<void> => {
    for (let slice = 0; slice < 3; slice++) {
      await turns.next()
      worked.push({ loop: name, turn })
    }
  }
  await Promise.all(Array.from({ length: 50 }, (_, name) => loop(name)))
  running = false
  assert.deepEqual(
    worked.map((work) => work.loop),
    Array.from({ length: 150 }, (_, at) => at % 50),
  )
  assert.equal(new Set(worked.map((work) => work.turn)).size, 150, 'never two in one turn')
})

test('a slice is spent after its time; the head start is shorter and waits for nobody', async () => {
  const env = createTestEnv()
  const turns = new WorkTurns(env)
  const first = await turns.next()
  let second = false
  void turns.next().then(() => (second = true))
  const begun = turns.begin()
  assert.equal(begun.spent(), false)
  env.advance(1)
  assert.deepEqual([begun.spent(), first.spent()], [true, false])
  env.advance(5)
  assert.equal(first.spent(), true)
  assert.equal(second, false)
  await until(() => second, 'the second turn')
})

test('whoever waits for something else gives the rest of the turn to the next one', async () => {
  const env = createTestEnv()
  const turns = new WorkTurns(env)
  let turned = false
  setImmediate(() => (turned = true))
  await turns.next()
  const second = turns.next()
  const third = turns.next()
  turns.pass()
  const slice = await second
  assert.deepEqual([turned, slice.spent()], [false, false])
  env.advance(6)
  assert.equal(slice.spent(), true, 'all of them work in the time of one')
  turns.pass()
  await third
  assert.equal(turned, true)
})

test('when nobody works the next slice is there at once', async () => {
  const turns = new WorkTurns(createTestEnv())
  let turned = false
  setImmediate(() => (turned = true))
  await turns.next()
  assert.equal(turned, false)
})
