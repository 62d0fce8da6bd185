/**
 * The codecs and rules of schemas/ on one pod of about 2 KB: decode, default, drop, patch and encode, in JSON and in
 * protobuf. One thread, CPU only. `node dist/test/bench/schemas.js`
 */
import { performance } from 'node:perf_hooks'
import {
  applyDefaults,
  mergePatch,
  strategicMergePatch,
  decodeJson,
  decodeProtobuf,
  dropDisabledFields,
  encodeJson,
  encodeProtobuf,
  typeDescriptor,
} from '../../schemas/index.ts'
import { benchPod } from './pods.ts'

const batchMilliseconds = 200
const batches = 5

const type = typeDescriptor('io.k8s.api.core.v1.Pod')
const gvk = { group: '', version: 'v1', kind: 'Pod' }
const json = Buffer.from(JSON.stringify(benchPod(7)))
const pod = decodeJson(json, type).object
applyDefaults(pod, type)
const stored = encodeJson(pod, type, gvk)
const wire = encodeProtobuf(pod, type)
const labelPatch = { metadata: { labels: { touched: 'yes' } } }
const imagePatch = { spec: { containers: [{ name: 'app', image: 'registry.example.test/team/app:2' }] } }

const operations: readonly (readonly [name: string, bytes: number | undefined, run: () => unknown])[] = [
  ['decode JSON, as clients send it', json.length, () => decodeJson(json, type)],
  ['decode JSON, defaulted', stored.length, () => decodeJson(stored, type)],
  ['decode protobuf, defaulted', wire.length, () => decodeProtobuf(wire, type)],
  ['encode JSON', stored.length, () => encodeJson(pod, type, gvk)],
  ['encode protobuf', wire.length, () => encodeProtobuf(pod, type)],
  ['default (already complete)', undefined, () => applyDefaults(pod, type)],
  ['drop disabled fields', undefined, () => dropDisabledFields(pod, type)],
  ['merge patch: a label', undefined, () => mergePatch(pod, labelPatch)],
  ['strategic patch: an image', undefined, () => strategicMergePatch(pod, imagePatch, type)],
]

/** Median rate per second of several batches. */
function rateOf(run: () => unknown): number {
  const rates: number[] = []
  for (let batch = 0; batch < batches; batch++) {
    let count = 0
    const start = performance.now()
    let now = start
    while (now - start < batchMilliseconds) {
      for (let index = 0; index < 50; index++) run()
      count += 50
      now = performance.now()
    }
    rates.push((count / (now - start)) * 1_000)
  }
  return rates.toSorted((a, b) => a - b)[batches >> 1] ?? 0
}

const rows = [['operation', 'bytes', 'per second', 'µs each']]
for (const [name, bytes, run] of operations) {
  const rate = rateOf(run)
  rows.push([
    name,
    bytes === undefined ? '' : String(bytes),
    Math.round(rate).toLocaleString('en'),
    (1_000_000 / rate).toFixed(1),
  ])
}
const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
for (const row of rows) {
  const cells = row.map((cell, column) =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
  )
  process.stdout.write(`${cells.join('  ').trimEnd()}\n`)
}
