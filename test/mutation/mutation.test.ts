import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { Laboratory } from './laboratory.ts'
import { mutations } from './mutations.ts'

const laboratory = new Laboratory()
after(() => laboratory.close())

test('the sources as they are pass what catches mutations', async () => {
  const found = await laboratory.tryUnchanged({ fromSeed: 1, points: 60 })
  assert.equal(found.caught, false, found.by)
})

for (const mutation of mutations) {
  test(`a mutation is caught: ${mutation.name}`, async (context) => {
    const found = await laboratory.try(mutation)
    assert.ok(found.caught, `survived: ${JSON.stringify(mutation)}`)
    context.diagnostic(found.by)
  })
}

test('a mutation whose text is not in the sources is refused', async () => {
  const [mutation] = mutations
  assert.ok(mutation)
  await assert.rejects(laboratory.try({ ...mutation, text: 'no such text' }), /0 times, not once/)
})
