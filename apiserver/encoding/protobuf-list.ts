import assert from 'node:assert/strict'
import { listChunkBytes } from '../limits.ts'
import type { WorkTurns } from '../work-turns.ts'
import type { CachedObject } from '../types.ts'
import { itemHead, type ProtobufListFraming } from './protobuf-encoder.ts'

/**
 * The pieces of a protobuf list, and how many bytes they are together. The envelope says how long the list is before
 * its first item, so every item is encoded to know its length, and once more to be written if the cache of encodings
 * has dropped it since: a list of any size takes the memory of one piece. Measuring gives the event loop back between
 * turns; it stops early, with undefined, once `signal` is aborted.
 */
export async function protobufListPieces(
  turns: WorkTurns,
  framing: ProtobufListFraming,
  objects: readonly CachedObject[],
  signal: AbortSignal,
): Promise<Generator<Buffer, undefined> | undefined> {
  let itemsBytes = 0
  let slice = turns.begin()
  for (const [index, object] of objects.entries()) {
    const { length } = framing.message(object)
    itemsBytes += itemHead(length).length + length
    if ((index & 15) !== 15 || !slice.spent()) continue
    slice = await turns.next()
    if (signal.aborted) return undefined
  }
  return pieces(framing, objects, itemsBytes)
}

function* pieces(
  framing: ProtobufListFraming,
  objects: readonly CachedObject[],
  itemsBytes: number,
): Generator<Buffer, undefined> {
  const { head, tail } = framing.around(itemsBytes)
  let parts: Uint8Array[] = [head]
  let partsBytes = head.length
  let written = 0
  for (const object of objects) {
    const message = framing.message(object)
    const before = itemHead(message.length)
    parts.push(before, message)
    partsBytes += before.length + message.length
    written += before.length + message.length
    if (partsBytes < listChunkBytes) continue
    yield Buffer.concat(parts, partsBytes)
    parts = []
    partsBytes = 0
  }
  assert(written === itemsBytes, `a list of ${itemsBytes} bytes became ${written}`)
  parts.push(tail)
  yield Buffer.concat(parts, partsBytes + tail.length)
  return undefined
}
