/**
 * Just enough of the protobuf wire format to handle an object without knowing its kind, and without the codec under test:
 * every object has its metadata in field 1, every list its items in field 2 (kubernetes/api, generated.proto).
 */
import assert from 'node:assert/strict'

export const protobufType = 'application/vnd.kubernetes.protobuf'

const magic = Buffer.from('k8s\0')

interface Field {
  readonly number: number
  /** 0 varint, 1 fixed 64, 2 length-delimited, 5 fixed 32. */
  readonly wire: number
  /** Tag and value, as they stand in the message. */
  readonly whole: Buffer
  /** Of a length-delimited field: what is inside. */
  readonly content: Buffer
}

export interface ProtobufObject {
  readonly apiVersion: string
  readonly kind: string
  /** The object's own message. */
  readonly raw: Buffer
}

/** Opens the envelope: the magic bytes, then runtime.Unknown {typeMeta = 1 {apiVersion = 1, kind = 2}, raw = 2}. */
export function openEnvelope(bytes: Buffer): ProtobufObject {
  assert.deepEqual(bytes.subarray(0, 4), magic, 'the envelope begins with k8s\\0')
  const unknown = fieldsOf(bytes.subarray(4))
  const typeMeta = fieldsOf(contentOf(unknown, 1))
  return {
    apiVersion: contentOf(typeMeta, 1).toString(),
    kind: contentOf(typeMeta, 2).toString(),
    raw: contentOf(unknown, 2),
  }
}

export function closeEnvelope({ apiVersion, kind, raw }: ProtobufObject): Buffer {
  const typeMeta = Buffer.concat([delimited(1, Buffer.from(apiVersion)), delimited(2, Buffer.from(kind))])
  return Buffer.concat([magic, delimited(1, typeMeta), delimited(2, raw)])
}

/** metadata.name of an object's message. */
export const nameOf = (raw: Buffer): string => contentOf(fieldsOf(contentOf(fieldsOf(raw), 1)), 1).toString()

/** The items' messages of a list's message. */
export const itemsOf = (raw: Buffer): readonly Buffer[] =>
  fieldsOf(raw)
    .filter(({ number }) => number === 2)
    .map(({ content }) => content)

/** The object as a client would create it again: without ObjectMeta.uid (5) and resourceVersion (6). */
export function withoutIdentity(raw: Buffer): Buffer {
  return Buffer.concat(
    fieldsOf(raw).map((field) => {
      if (field.number !== 1) return field.whole
      const kept = fieldsOf(field.content).filter(({ number }) => number !== 5 && number !== 6)
      return delimited(1, Buffer.concat(kept.map(({ whole }) => whole)))
    }),
  )
}

/** One frame's WatchEvent {type = 1, object RawExtension = 2 {raw = 1}}; the raw is an envelope again. */
export function openWatchEvent(frame: Buffer): { readonly type: string; readonly object: ProtobufObject } {
  const event = fieldsOf(frame)
  return {
    type: contentOf(event, 1).toString(),
    object: openEnvelope(contentOf(fieldsOf(contentOf(event, 2)), 1)),
  }
}

function contentOf(fields: readonly Field[], number: number): Buffer {
  return fields.find((field) => field.number === number)?.content ?? Buffer.alloc(0)
}

function fieldsOf(message: Buffer): readonly Field[] {
  const fields: Field[] = []
  for (let at = 0; at < message.length;) {
    const start = at
    const [tag, afterTag] = varint(message, at)
    const wire = tag & 7
    let content = message.subarray(afterTag, afterTag)
    at = afterTag
    if (wire === 0) at = varint(message, afterTag)[1]
    else if (wire === 1) at += 8
    else if (wire === 5) at += 4
    else {
      assert.equal(wire, 2, `wire type ${wire}`)
      const [length, from] = varint(message, afterTag)
      content = message.subarray(from, from + length)
      at = from + length
    }
    assert.ok(at <= message.length, 'a field ends inside its message')
    fields.push({ number: tag >>> 3, wire, whole: message.subarray(start, at), content })
  }
  return fields
}

/** Value (exact up to 2^53: lengths and tags are) and the offset behind it. */
function varint(bytes: Buffer, from: number): readonly [value: number, next: number] {
  let value = 0
  for (let at = from, scale = 1; ; at += 1, scale *= 128) {
    const byte = bytes[at]
    assert.ok(byte !== undefined, 'a varint ends inside its message')
    value += (byte & 0x7f) * scale
    if (byte < 0x80) return [value, at + 1]
  }
}

function delimited(number: number, content: Buffer): Buffer {
  const head: number[] = [(number << 3) | 2]
  let length = content.length
  while (length >= 0x80) {
    head.push((length & 0x7f) | 0x80)
    length >>>= 7
  }
  head.push(length)
  return Buffer.concat([Buffer.from(head), content])
}
