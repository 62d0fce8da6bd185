import assert from 'node:assert/strict'
import { request } from 'undici'
import { openWatchEvent, type ProtobufObject, protobufType } from './protobuf-wire.ts'

export interface ProtobufEvent {
  readonly type: string
  readonly object: ProtobufObject
}

/** Reads a watch in protobuf (frames: length u32 big-endian, then a WatchEvent) through the first event of type `until`. */
export async function protobufWatch(base: string, path: string, until: string): Promise<readonly ProtobufEvent[]> {
  const abort = new AbortController()
  const accept = `${protobufType};stream=watch`
  const answer = await request(`${base}${path}`, { headers: { accept }, signal: abort.signal, bodyTimeout: 0 })
  assert.equal(answer.statusCode, 200)
  assert.equal(answer.headers['content-type'], accept)
  const events: ProtobufEvent[] = []
  let rest = Buffer.alloc(0)
  try {
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      rest = Buffer.concat([rest, chunk])
      while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE(0)) {
        const end = 4 + rest.readUInt32BE(0)
        const event = openWatchEvent(rest.subarray(4, end))
        rest = rest.subarray(end)
        events.push(event)
        if (event.type === until || event.type === 'ERROR') {
          abort.abort()
          return events
        }
      }
    }
  } catch (error) {
    if (!abort.signal.aborted) throw error
  }
  return events
}
