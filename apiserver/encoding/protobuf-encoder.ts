import {
  decodeJson,
  decodeValue,
  encodeEnvelope,
  encodeProtobuf,
  envelopeFrame,
  type GVK,
  type ObjectValue,
  type TypeDescriptor,
  typeOf,
} from '../../schemas/index.ts'
import type { Revision } from '../../storage/index.ts'
import { protobufCacheBytesMax } from '../limits.ts'
import type { CachedObject, RequestScope } from '../types.ts'
import { EncodingCache } from './encoding-cache.ts'
import type { AnswerFormat } from './negotiation.ts'
import { empty, type Representation, spliceMetadata, spliceObject } from './splice.ts'
import { apiVersionOf, descriptorOf } from './stored-object.ts'

const openBrace = Buffer.from('{')
const closeBrace = Buffer.from('}')
const metadataTag = 0x0a
const itemsTag = 0x12

interface Message {
  readonly bytes: Uint8Array
}

/** A list whose items are written by the caller: `head`, then `itemHead` and the message of each, then `tail`. */
export interface ProtobufListFraming {
  /** @param itemsBytes - Of all items with their heads. */
  around(itemsBytes: number): { readonly head: Buffer; readonly tail: Buffer }
  message(object: CachedObject): Uint8Array
}

/** Cached objects as protobuf. A message is made once per revision and kept while the cache has room for it. */
export class ProtobufEncoder {
  readonly #represent: (scope: RequestScope, object: CachedObject) => Representation
  readonly #messages = new EncodingCache<Message>(protobufCacheBytesMax)

  /** @param represent - The object's canonical JSON in the version asked for. */
  constructor(represent: (scope: RequestScope, object: CachedObject) => Representation) {
    this.#represent = represent
  }

  object(scope: RequestScope, format: AnswerFormat, object: CachedObject, at: Revision): Uint8Array {
    return encodeEnvelope({ ...typeMeta(kindOf(scope, format)), raw: this.#message(scope, format, object, at) })
  }

  list(
    scope: RequestScope,
    format: AnswerFormat,
    meta: {
      readonly revision: Revision
      readonly continueToken?: string
      readonly remainingItemCount?: number
    },
  ): ProtobufListFraming {
    const item = kindOf(scope, format)
    const gvk = { ...item, kind: `${item.kind}List` }
    const metadata: ObjectValue = {
      resourceVersion: String(meta.revision),
      continue: meta.continueToken,
      remainingItemCount: meta.remainingItemCount,
    }
    const type = descriptorOf({ group: 'meta.k8s.io', version: 'v1', kind: 'ListMeta' })
    const message = encodeProtobuf(metadata, type)
    const start = Buffer.concat([Buffer.of(metadataTag), lengthPrefix(message.length), message])
    return {
      around(itemsBytes) {
        const { head, tail } = envelopeFrame(typeMeta(gvk), start.length + itemsBytes)
        return { head: Buffer.concat([head, start]), tail }
      },
      message: (object) => this.#message(scope, format, object, object.revision),
    }
  }

  /** One event of a watch stream: length u32 big-endian | WatchEvent {type = 1, object = 2 {raw = 1}}. */
  frame(
    scope: RequestScope,
    format: AnswerFormat,
    event: { readonly type: string; readonly object: CachedObject; readonly at: Revision },
  ): Uint8Array {
    return watchFrame(event.type, this.object(scope, format, event.object, event.at))
  }

  /** A bookmark: of the right kind, with nothing but `metadata`. */
  bookmark(scope: RequestScope, format: AnswerFormat, metadata: ObjectValue): Uint8Array {
    const gvk = kindOf(scope, format)
    const raw = encodeProtobuf({ metadata }, descriptorOf(gvk))
    return watchFrame('BOOKMARK', encodeEnvelope({ ...typeMeta(gvk), raw }))
  }

  /** The message without its envelope. */
  #message(scope: RequestScope, format: AnswerFormat, object: CachedObject, at: Revision): Uint8Array {
    if (at !== object.revision) return this.#encode(scope, format, object, at)
    const { gvk } = scope.served
    const id = `${apiVersionOf(gvk)} ${format.as === 'Object' ? gvk.kind : ''} ${object.revision} ${object.key}`
    return this.#messages.get(id, object.stored, () => ({ bytes: this.#encode(scope, format, object, at) })).bytes
  }

  #encode(scope: RequestScope, format: AnswerFormat, object: CachedObject, at: Revision): Uint8Array {
    const representation = this.#represent(scope, object)
    const type = format.as === 'Object' ? scope.served.type : descriptorOf(kindOf(scope, format))
    const json =
      format.as === 'Object'
        ? spliceObject(representation, at, empty, empty)
        : spliceMetadata(representation, at, openBrace, closeBrace)
    return encodeProtobuf(decodeJson(json, type).object, type)
  }
}

/** `items` of a list, or one item's head: tag and length. */
export function itemHead(messageBytes: number): Buffer {
  return Buffer.concat([Buffer.of(itemsTag), lengthPrefix(messageBytes)])
}

/** An object that is not stored, with its envelope; undefined when its kind has no protobuf form. */
export function protobufValue(value: ObjectValue): Uint8Array | undefined {
  const apiVersion = String(value['apiVersion'])
  const kind = String(value['kind'])
  const [version = '', group = ''] = apiVersion.split('/').reverse()
  const type: TypeDescriptor | undefined = typeOf({ group, version, kind })
  if (type === undefined) return undefined
  return encodeEnvelope({ apiVersion, kind, raw: encodeProtobuf(decodeValue(value, type).object, type) })
}

/** @param envelope - Of the object. */
export function watchFrame(type: string, envelope: Uint8Array): Uint8Array {
  const name = Buffer.from(type)
  const raw = Buffer.concat([Buffer.of(0x0a), lengthPrefix(envelope.length), envelope])
  const event = [Buffer.of(0x0a), lengthPrefix(name.length), name, Buffer.of(0x12), lengthPrefix(raw.length), raw]
  const length = Buffer.alloc(4)
  length.writeUInt32BE(event.reduce((sum, part) => sum + part.length, 0))
  return Buffer.concat([length, ...event])
}

function lengthPrefix(length: number): Buffer {
  const bytes: number[] = []
  let rest = length
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80)
    rest = Math.floor(rest / 0x80)
  }
  bytes.push(rest)
  return Buffer.from(bytes)
}

function kindOf(scope: RequestScope, format: AnswerFormat): GVK {
  if (format.as === 'Object') return scope.served.gvk
  return { group: 'meta.k8s.io', version: format.metaVersion, kind: 'PartialObjectMetadata' }
}

function typeMeta(gvk: GVK): { readonly apiVersion: string; readonly kind: string } {
  return { apiVersion: apiVersionOf(gvk), kind: gvk.kind }
}
