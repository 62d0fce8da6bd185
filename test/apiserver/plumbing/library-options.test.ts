import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import test from 'node:test'
import { OptionsError, startControlPlane } from '../../../apiserver/index.ts'

const cases: readonly (readonly [options: unknown, message: RegExp])[] = [
  [null, /^options must be an object$/],
  [{ port: 1 }, /^unknown option "port": known are dataDir, bindAddress, securePort, /],
  [{ logLevel: 'loud' }, /^invalid value "loud" for logLevel: must be one of debug, /],
  [{ securePort: '6443' }, /^invalid value "6443" for securePort: must be a number$/],
  [{ securePort: 70_000 }, /^invalid value "70000" for securePort: must be a port from 0 to 65535$/],
  [{ replicas: 2 }, /^invalid value "2" for replicas: must be 1 or 3$/],
  [{ requestTimeoutMs: 5 }, /^invalid value "5" for requestTimeoutMs: must be from 1s to 24h$/],
  [{ controllers: 'gc' }, /^invalid value "gc" for controllers: must be a list of strings$/],
  [{ writeLog: 'stderr' }, /^writeLog must be a function$/],
  [{ dataDir: '' }, /^dataDir must not be empty$/],
]

test('an option that cannot be is refused by its own name', async () => {
  for (const [options, message] of cases) {
    await assert.rejects(startControlPlane(options as object), (error: unknown) => {
      assert.ok(error instanceof OptionsError, String(error))
      assert.match(error.message, message)
      return true
    })
  }
})

test(
  'a data directory where none can be made ends the start',
  { skip: existsSync('/proc/self') ? false : 'no /proc here' },
  async () => {
    await assert.rejects(startControlPlane({ dataDir: '/proc/trireme/data' }), /\/proc\/trireme/)
  },
)
