import assert from 'node:assert/strict'
import test from 'node:test'
import { readSealedFile, writeSealedFile } from '../../../storage/backend/sealed-file.ts'
import { SimNode, createSimulation } from '../../simulation/env/index.ts'

const format = { magic: 'TEST', version: 1 }

// Found by the simulation: kill -9 between the rename and its sync, a start that goes on from the new file, then power
// failure. The old CURRENT was back, and the log no longer reached to its state.
test('what was read after a kill is still there after a loss of power', async () => {
  let newSeen = 0
  for (let seed = 1; seed <= 60; seed++) {
    const simulation = createSimulation(seed)
    const node = new SimNode(simulation, 'n')
    const first = node.boot().disk
    await simulation.finish(first.makeDirectory('d'))
    await simulation.finish(writeSealedFile(first, 'd/FILE', format, Buffer.from('old')))
    // removal, creation, write, sync, rename and sync of the directory; killed in one of them.
    let killed = false
    node.disk.crashAtChange = node.disk.changeCount + 1 + (seed % 6)
    node.disk.onCrashPoint = () => {
      node.kill()
      killed = true
    }
    void writeSealedFile(first, 'd/FILE', format, Buffer.from('new'))
    await simulation.run(() => killed)
    const read = async () => {
      const payload = await simulation.finish(readSealedFile(node.boot().disk, 'd/FILE', format))
      return payload?.toString()
    }
    const before = await read()
    node.crash()
    assert.equal(await read(), before, `seed ${seed}`)
    if (before === 'new') newSeen++
  }
  assert.ok(newSeen > 10)
})
