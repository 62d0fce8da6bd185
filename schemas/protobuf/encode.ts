import protobuf from 'protobufjs/minimal.js'
import { decodeValue } from '../json/decode.ts'
import { encodeGenericJson } from '../json/encode.ts'
import { newObject } from '../json/reader.ts'
import type { ObjectValue, TypeDescriptor } from '../types.ts'
import { isPlain, wireOf, wirePlanOf } from './wire-plan.ts'
import type { NestedType, PlainType, WireField, WirePlan, WireType } from './wire-plan.ts'
import { wireBytes, wireFixed64, wireVarint } from './wire-reader.ts'
import { durationNanos, timeParts } from './wire-scalars.ts'

type Writer = protobuf.Writer

/**
 * One message of `type`, byte for byte as Go's generated code writes it: fields by number, everything that is no
 * pointer, list, map or bytes written even when zero, lists not packed, map entries sorted by the bytes of their
 * keys. Equal objects give equal bytes. kind and apiVersion belong to the envelope.
 *
 * @param object - Canonical, as a decoder of this module leaves it. Not changed.
 */
export function encodeProtobuf(object: ObjectValue, type: TypeDescriptor): Uint8Array {
  const writer = protobuf.Writer.create()
  encodeFields(writer, object, wirePlanOf(type))
  return writer.finish()
}

function encodeFields(writer: Writer, object: ObjectValue, plan: WirePlan): void {
  for (const member of plan.members) {
    if ('embedded' in member) {
      tag(writer, member.number, wireBytes).fork()
      encodeFields(writer, object, member.embedded)
      writer.ldelim()
    } else {
      encodeField(writer, object[member.name], member)
    }
  }
}

function encodeField(writer: Writer, value: unknown, field: WireField): void {
  const { number, type } = field
  if (value === undefined || value === null) {
    if (!field.pointer) encodeZero(writer, number, type)
  } else if (type.is === 'list') {
    for (const item of value as readonly unknown[]) encodeItem(writer, number, item, type.of)
  } else if (type.is === 'map') {
    const entries = value as ObjectValue
    for (const key of sortedKeys(entries)) {
      tag(writer, number, wireBytes).fork()
      tag(writer, 1, wireBytes).string(key)
      encodeItem(writer, 2, entries[key], type.of)
      writer.ldelim()
    }
  } else {
    encodeOne(writer, number, value, type)
  }
}

/** Items and map values are always there, null being Go's zero value. */
function encodeItem(writer: Writer, number: number, item: unknown, type: WireType): void {
  if (item === undefined || item === null) encodeZero(writer, number, type)
  else encodeOne(writer, number, item, type)
}

function encodeZero(writer: Writer, number: number, type: WireType): void {
  switch (type.is) {
    case 'string':
      tag(writer, number, wireBytes).string('')
      return
    case 'bool':
    case 'int32':
    case 'int64':
      tag(writer, number, wireVarint).uint32(0)
      return
    case 'double':
      tag(writer, number, wireFixed64).double(0)
      return
    case 'message':
      tag(writer, number, wireBytes).fork()
      // A struct that is no pointer cannot contain itself: this ends.
      encodeFields(writer, noFields, type.plan())
      writer.ldelim()
      return
    case 'quantity':
      encodeOne(writer, number, '0', type)
      return
    case 'duration':
      encodeOne(writer, number, '0s', type)
      return
    case 'intOrString':
      encodeOne(writer, number, 0, type)
      return
    case 'time':
    case 'microTime':
    case 'raw':
    case 'fields':
    case 'schemaOrList':
    case 'schemaOrStrings':
      tag(writer, number, wireBytes).uint32(0)
      return
    case 'schemaOrBool':
      encodeOne(writer, number, false, type)
      return
    // Slices and maps that are nil.
    case 'bytes':
    case 'strings':
    case 'list':
    case 'map':
  }
}

const noFields: ObjectValue = Object.freeze(newObject())

function encodeOne(writer: Writer, number: number, value: unknown, type: WireType): void {
  if (isPlain(type)) {
    encodePlain(tag(writer, number, wireOf(type)), value, type)
  } else if ('of' in type) {
    throw new Error('lists and maps do not nest on the wire')
  } else {
    tag(writer, number, wireBytes).fork()
    encodeNested(writer, value, type)
    writer.ldelim()
  }
}

function encodePlain(writer: Writer, value: unknown, { is }: PlainType): void {
  switch (is) {
    case 'string':
      writer.string(wellFormed(value as string))
      return
    case 'bool':
      writer.bool(value as boolean)
      return
    case 'int32':
    case 'int64':
      int(writer, value as number | bigint)
      return
    case 'double':
      writer.double(value as number)
      return
    case 'bytes':
      writer.bytes(Buffer.from(value as string, 'base64'))
  }
}

/** What is inside the message that stands for the value. */
function encodeNested(writer: Writer, value: unknown, type: NestedType): void {
  switch (type.is) {
    case 'message':
      encodeFields(writer, value as ObjectValue, type.plan())
      return
    case 'quantity':
      tag(writer, 1, wireBytes).string(value as string)
      return
    case 'time':
    case 'microTime': {
      const { seconds, nanos } = timeParts(value as string)
      tag(writer, 1, wireVarint).int64(seconds)
      tag(writer, 2, wireVarint).int32(nanos)
      return
    }
    case 'duration':
      int(tag(writer, 1, wireVarint), durationNanos(value as string))
      return
    case 'intOrString':
      tag(writer, 1, wireVarint).uint32(typeof value === 'string' ? 1 : 0)
      int(tag(writer, 2, wireVarint), typeof value === 'string' ? 0 : (value as number))
      tag(writer, 3, wireBytes).string(typeof value === 'string' ? wellFormed(value) : '')
      return
    case 'raw':
    case 'fields':
      tag(writer, 1, wireBytes).string(encodeGenericJson(value))
      return
    case 'strings':
      for (const text of value as readonly string[]) tag(writer, 1, wireBytes).string(wellFormed(text))
      return
    case 'schemaOrList':
      if (Array.isArray(value)) for (const item of value) schema(writer, 2, item, type.schema())
      else schema(writer, 1, value, type.schema())
      return
    case 'schemaOrBool':
      tag(writer, 1, wireVarint).bool(value !== false)
      if (typeof value !== 'boolean') schema(writer, 2, value, type.schema())
      return
    case 'schemaOrStrings':
      if (!Array.isArray(value)) schema(writer, 1, value, type.schema())
      else for (const item of value as readonly unknown[]) tag(writer, 2, wireBytes).string(wellFormed(String(item)))
      return
  }
}

/** Raw values hold what a client sent, never looked at by type. */
function schema(writer: Writer, number: number, value: unknown, type: TypeDescriptor): void {
  tag(writer, number, wireBytes).fork()
  encodeFields(writer, decodeValue(value, type).object, wirePlanOf(type))
  writer.ldelim()
}

function tag(writer: Writer, number: number, wire: number): Writer {
  return writer.uint32(((number << 3) | wire) >>> 0)
}

/** Negative numbers take ten bytes, of either width. */
function int(writer: Writer, value: number | bigint): void {
  if (typeof value === 'number') {
    writer.int64(value)
    return
  }
  const low = Number(BigInt.asUintN(32, value))
  const high = Number(BigInt.asUintN(32, value >> 32n))
  // protobufjs takes the halves of a Long.
  writer.int64({ low, high, unsigned: false })
}

const loneSurrogate = /\p{Surrogate}/u
const loneSurrogates = new RegExp(loneSurrogate, 'gu')

/** Half a character has no UTF-8. */
function wellFormed(text: string): string {
  return loneSurrogate.test(text) ? text.replaceAll(loneSurrogates, '\ufffd') : text
}

/** Go sorts map keys by their UTF-8 bytes; UTF-16 order differs only where there are surrogates. */
function sortedKeys(entries: ObjectValue): readonly string[] {
  const keys = Object.keys(entries)
  if (keys.length < 2) return keys
  keys.sort()
  return keys.some((key) => /[\ud800-\udfff]/.test(key))
    ? keys.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    : keys
}
