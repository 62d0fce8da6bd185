import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { canonicalQuantity, compareQuantities, roundQuantityUp } from '../../../schemas/index.ts'

const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))

test('quantities have one canonical form', () => {
  const table: Readonly<Record<string, string>> = {
    '0': '0', '0Gi': '0', '-0': '0', '1': '1', '+5': '5', '-1': '-1', '5.': '5', '.5': '500m', '0.1': '100m',
    '1000m': '1', '1500m': '1500m', '1.5': '1500m', '1000': '1k', '2048': '2048', '100000000000': '100G', '1E': '1E',
    '1e3': '1e3', '12e6': '12e6', '1e4': '10e3', '1E3': '1e3', '100e-3': '100e-3',
    '0.5Gi': '512Mi', '1.5Gi': '1536Mi', '1024Mi': '1Gi', '1000Ki': '1000Ki', '0.5Ki': '512', '1.1Ki': '1127',
    '1n': '1n', '0.1n': '1n', '-0.1n': '-1n', '001': '1', '1.50': '1500m', '1u': '1u',
  } // prettier-ignore
  for (const [text, wanted] of Object.entries(table)) assert.equal(canonicalQuantity(text), wanted, text)
})

test('what is not a quantity is refused in the words of the real server', () => {
  const format = /^Error: quantities must match the regular expression/
  for (const text of ['', '1x', '1 ', '1Kib', '1.2.3', 'NaN']) {
    assert.throws(() => canonicalQuantity(text), format, text)
  }
  for (const text of ['1i', '1e', '1KiB', '1mm', 'Gi1', '--1'])
    assert.throws(() => canonicalQuantity(text), /suffix|regular/, text)
})

test('an exponent beyond all reason costs nothing', () => {
  assert.equal(canonicalQuantity('1e-999999999'), '1e-9')
  assert.match(canonicalQuantity('1e999999999'), /^9223372036854775807/)
})

test('canonicalising is idempotent and keeps the value', () => {
  const suffix = fc.constantFrom('', 'n', 'u', 'm', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi', 'e3', 'e-2')
  fc.assert(
    fc.property(fc.integer({ min: -1e9, max: 1e9 }), suffix, (number, unit) => {
      const text = `${number}${unit}`
      const canonical = canonicalQuantity(text)
      assert.equal(canonicalQuantity(canonical), canonical)
      assert.equal(compareQuantities(text, canonical), 0)
    }),
    { seed, numRuns: 500 },
  )
})

test('rounding goes away from zero to whole thousandths', () => {
  assert.equal(roundQuantityUp('1n', -3), '1m')
  assert.equal(roundQuantityUp('1500001n', -3), '2m')
  assert.equal(roundQuantityUp('-1n', -3), '-1m')
  assert.equal(roundQuantityUp('1Gi', -3), '1Gi')
})
