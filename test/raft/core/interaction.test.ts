import assert from 'node:assert/strict'
import test from 'node:test'
import { Interaction } from './interaction.ts'
import { rewriteScript, runScript, scripts } from './golden-script.ts'

// UPDATE_GOLDEN=1 rewrites the scripts with what happens now; read the diff as a review of the protocol.
const update = process.env['UPDATE_GOLDEN'] === '1'

for (const { name, path, text } of scripts()) {
  test(`script ${name}`, () => {
    const interaction = new Interaction()
    const actual = runScript(text, (command) => interaction.run(command))
    if (update) rewriteScript(path, actual)
    else assert.equal(actual, text)
  })
}

test('there are scripts for every feature', () => assert.ok(scripts().length >= 18))
