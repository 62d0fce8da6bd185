import protobuf from 'protobufjs/minimal.js'
import { eachField, requireWire } from './decode.ts'
import { wireBytes, wireError, WireReader } from './wire-reader.ts'

// Envelope: 6b 38 73 00 ("k8s\0") | runtime.Unknown.
// Unknown: typeMeta = 1 {apiVersion = 1, kind = 2} | raw = 2 | contentEncoding = 3 | contentType = 4.
const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00])
const typeMetaTag = (1 << 3) | wireBytes
const rawTag = (2 << 3) | wireBytes
const tail = Buffer.from([(3 << 3) | wireBytes, 0, (4 << 3) | wireBytes, 0])

/** One object as it travels: its type, and its message. */
export interface Envelope {
  readonly apiVersion: string
  readonly kind: string
  /** The message; when decoded, a view of the bytes given. */
  readonly raw: Uint8Array
}

/**
 * Opens what `application/vnd.kubernetes.protobuf` bodies are. kind and apiVersion may be empty.
 *
 * @throws SchemaError ERR_SYNTAX, in the words of apimachinery's protobuf serializer
 */
export function decodeEnvelope(bytes: Uint8Array): Envelope {
  if (bytes.length === 0) throw wireError('empty data')
  if (!magic.equals(bytes.subarray(0, magic.length))) {
    throw wireError(`provided data does not appear to be a protobuf message, expected prefix [${[...magic].join(' ')}]`)
  }
  let apiVersion = ''
  let kind = ''
  let raw: Uint8Array = new Uint8Array(0)
  eachField(new WireReader(bytes, magic.length), 'Unknown', (number, wire, reader) => {
    if (number === 1) {
      requireWire(wire, wireBytes, 'TypeMeta')
      eachField(reader.message(), 'TypeMeta', (inner, innerWire, at) => {
        if (inner !== 1 && inner !== 2) return false
        requireWire(innerWire, wireBytes, inner === 1 ? 'APIVersion' : 'Kind')
        if (inner === 1) apiVersion = at.string()
        else kind = at.string()
        return true
      })
      return true
    }
    if (number !== 2) return false
    requireWire(wire, wireBytes, 'Raw')
    raw = reader.bytes()
    return true
  })
  return { apiVersion, kind, raw }
}

export function encodeEnvelope(envelope: Envelope): Uint8Array {
  const { head, tail } = envelopeFrame(envelope, envelope.raw.length)
  return Buffer.concat([head, envelope.raw, tail])
}

/** What stands before and behind a message of `rawBytes` bytes that is written elsewhere: a long list. */
export function envelopeFrame(
  type: { readonly apiVersion: string; readonly kind: string },
  rawBytes: number,
): { readonly head: Buffer; readonly tail: Buffer } {
  const writer = protobuf.Writer.create()
  writer.uint32(typeMetaTag).fork()
  writer.uint32((1 << 3) | wireBytes).string(type.apiVersion)
  writer.uint32((2 << 3) | wireBytes).string(type.kind)
  writer.ldelim()
  writer.uint32(rawTag).uint32(rawBytes)
  return { head: Buffer.concat([magic, writer.finish()]), tail }
}
