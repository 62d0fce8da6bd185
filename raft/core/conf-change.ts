import type { ConfChange } from '../types.ts'

// Data of a confChange entry (raft/FORMATS.md): version u8 = 1 | type u8 | member u64, big-endian.
const version = 1
const sizeBytes = 10
const types = ['addVoter', 'addLearner', 'remove'] as const

export function encodeConfChange(change: ConfChange): Uint8Array {
  const bytes = new Uint8Array(sizeBytes)
  const view = new DataView(bytes.buffer)
  view.setUint8(0, version)
  view.setUint8(1, types.indexOf(change.type) + 1)
  view.setBigUint64(2, change.member)
  return bytes
}

/** Undefined when `data` is not a change this version knows. */
export function decodeConfChange(data: Uint8Array): ConfChange | undefined {
  if (data.byteLength !== sizeBytes) return undefined
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const type = types[view.getUint8(1) - 1]
  if (view.getUint8(0) !== version || type === undefined) return undefined
  return { type, member: view.getBigUint64(2) }
}
