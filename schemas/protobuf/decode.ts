import { SchemaError } from '../errors.ts'
import { decodeValue } from '../json/decode.ts'
import { parseJson } from '../json/parse.ts'
import { newObject } from '../json/reader.ts'
import { nestingDepthMax } from '../limits.ts'
import type { ObjectValue, TypeDescriptor } from '../types.ts'
import { wireOf, wirePlanOf } from './wire-plan.ts'
import type { WireField, WirePlan, WireType } from './wire-plan.ts'
import { wireBytes, wireError, WireReader, wireVarint } from './wire-reader.ts'
import { durationText, microTimestampText, timestampText } from './wire-scalars.ts'

/**
 * Decodes one message of `type`: the `raw` of an envelope. The result is canonical, as decodeJson's; what Go writes
 * only because it writes every field (empty strings, zeroes, empty structs that are no pointers) is absent. Unknown
 * fields are dropped without a word, as Go does. kind and apiVersion are not in the message: the caller sets them.
 *
 * @throws SchemaError ERR_SYNTAX what is no such message; ERR_DEPTH; ERR_TYPE a quantity or another text that is none
 */
export function decodeProtobuf(bytes: Uint8Array, type: TypeDescriptor): ObjectValue {
  const object = newObject()
  decodeFields(new WireReader(bytes), wirePlanOf(type), object, 1)
  return decodeValue(object, type).object
}

function decodeFields(reader: WireReader, plan: WirePlan, object: ObjectValue, depth: number): void {
  if (depth > nestingDepthMax) throw new SchemaError('ERR_DEPTH', 'exceeded max depth')
  while (!reader.done) {
    const { number, wire } = reader.tag(plan.name)
    const member = plan.byNumber.get(number)
    if (member === undefined) {
      reader.skip(wire)
    } else if ('embedded' in member) {
      requireWire(wire, wireBytes, member.embedded.name)
      decodeFields(reader.message(), member.embedded, object, depth + 1)
    } else {
      decodeField(reader, wire, member, object, depth)
    }
  }
}

function decodeField(reader: WireReader, wire: number, field: WireField, object: ObjectValue, depth: number): void {
  const { name, type } = field
  if (type.is === 'list') {
    const items = (object[name] ??= []) as unknown[]
    if (wire === wireBytes && wireOf(type.of) !== wireBytes) {
      // Packed: not how Go writes, but every decoder has to take it.
      const packed = reader.message()
      while (!packed.done) items.push(decodeOne(packed, wireOf(type.of), type.of, name, undefined, depth))
    } else {
      items.push(decodeOne(reader, wire, type.of, name, undefined, depth))
    }
    return
  }
  if (type.is === 'map') {
    requireWire(wire, wireBytes, name)
    decodeEntry(reader.message(), type.of, name, (object[name] ??= newObject()) as ObjectValue, depth + 1)
    return
  }
  // The last of several counts; parts of one message come together.
  const value = decodeOne(reader, wire, type, name, object[name], depth)
  if (value === undefined || value === null || (!field.pointer && isZero(value, type))) delete object[name]
  else object[name] = value
}

/** Zero values of what is no pointer stand for "not set", and need not be in the object. */
function isZero(value: unknown, type: WireType): boolean {
  if (value === '') return type.is === 'string'
  if (value === 0 || value === false) return true
  if (type.is !== 'message') return false
  for (const _ in value as ObjectValue) return false
  return true
}

/** @param before - What an earlier occurrence of the same message left. */
function decodeOne(
  reader: WireReader,
  wire: number,
  type: WireType,
  name: string,
  before: unknown,
  depth: number,
): unknown {
  requireWire(wire, wireOf(type), name)
  switch (type.is) {
    case 'string':
      return reader.string()
    case 'bool':
      return reader.bool()
    case 'int32':
      return reader.int32()
    case 'int64':
      return reader.int64()
    case 'double': {
      const value = reader.double()
      if (Number.isFinite(value)) return value
      throw wireError(`json: unsupported value: ${Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'}`)
    }
    case 'bytes':
      return reader.bytes().toString('base64')
    case 'message': {
      const object = (before ?? newObject()) as ObjectValue
      decodeFields(reader.message(), type.plan(), object, depth + 1)
      return object
    }
    case 'quantity':
      return decodeQuantity(reader.message())
    case 'time':
    case 'microTime':
      return decodeTime(reader.message(), type.is)
    case 'duration': {
      let nanos: number | bigint = 0
      eachField(reader.message(), 'Duration', (number, kind, at) => {
        if (number !== 1) return false
        requireWire(kind, wireVarint, 'Duration')
        nanos = at.int64()
        return true
      })
      return durationText(nanos)
    }
    case 'intOrString':
      return decodeIntOrString(reader.message())
    case 'raw':
    case 'fields':
      return decodeRaw(reader.message(), type.is === 'raw' ? 'RawExtension' : 'FieldsV1')
    case 'strings':
      return decodeStrings(reader.message())
    case 'schemaOrList':
    case 'schemaOrBool':
    case 'schemaOrStrings':
      return decodeEither(reader.message(), type.is, type.schema(), depth + 1)
    case 'list':
    case 'map':
      throw wireError(`proto: field ${goName(name)} nests lists or maps`)
  }
}

function decodeEntry(reader: WireReader, of: WireType, name: string, entries: ObjectValue, depth: number): void {
  let key = ''
  let value: unknown
  let given = false
  eachField(reader, goName(name), (number, wire, at) => {
    if (number === 1) {
      requireWire(wire, wireBytes, name)
      key = at.string()
      return true
    }
    if (number !== 2) return false
    value = decodeOne(at, wire, of, name, undefined, depth)
    given = true
    return true
  })
  // decodeValue turns null into the zero value of the type.
  entries[key] = given ? value : null
}

function decodeQuantity(reader: WireReader): string {
  let text = ''
  eachField(reader, 'Quantity', (number, wire, at) => {
    if (number !== 1) return false
    requireWire(wire, wireBytes, 'String')
    text = at.string()
    return true
  })
  return text
}

/** An empty message is the zero time: not set. */
function decodeTime(reader: WireReader, is: 'time' | 'microTime'): string | undefined {
  if (reader.done) return undefined
  let seconds: number | bigint = 0
  let nanos = 0
  eachField(reader, 'Timestamp', (number, wire, at) => {
    if (number !== 1 && number !== 2) return false
    requireWire(wire, wireVarint, number === 1 ? 'Seconds' : 'Nanos')
    if (number === 1) seconds = at.int64()
    else nanos = at.int32()
    return true
  })
  return is === 'time' ? timestampText(seconds) : microTimestampText(seconds, nanos)
}

function decodeIntOrString(reader: WireReader): string | number {
  let kind: number | bigint = 0
  let int = 0
  let text = ''
  eachField(reader, 'IntOrString', (number, wire, at) => {
    if (number < 1 || number > 3) return false
    requireWire(wire, number === 3 ? wireBytes : wireVarint, ['Type', 'IntVal', 'StrVal'][number - 1] ?? '')
    if (number === 1) kind = at.int64()
    else if (number === 2) int = at.int32()
    else text = at.string()
    return true
  })
  if (kind === 0) return int
  if (kind === 1) return text
  throw wireError('impossible IntOrString.Type')
}

/** The JSON in {raw = 1}; undefined when there is none. */
function decodeRaw(reader: WireReader, message: string): unknown {
  let raw: Buffer | undefined
  eachField(reader, message, (number, wire, at) => {
    if (number !== 1) return false
    requireWire(wire, wireBytes, 'Raw')
    raw = at.bytes()
    return true
  })
  return raw === undefined ? undefined : parseRaw(raw)
}

function parseRaw(raw: Buffer): unknown {
  return raw.length === 0 ? undefined : (parseJson(raw).value ?? undefined)
}

function decodeStrings(reader: WireReader): string[] {
  const items: string[] = []
  eachField(reader, 'ExtraValue', (number, wire, at) => {
    if (number !== 1) return false
    requireWire(wire, wireBytes, 'Items')
    items.push(at.string())
    return true
  })
  return items
}

/** JSONSchemaPropsOrArray {schema = 1, list = 2}, OrBool {allows = 1, schema = 2}, OrStringArray {schema = 1, list = 2}. */
function decodeEither(
  reader: WireReader,
  is: 'schemaOrList' | 'schemaOrBool' | 'schemaOrStrings',
  type: TypeDescriptor,
  depth: number,
): unknown {
  let schema: ObjectValue | undefined
  let allows = false
  const list: unknown[] = []
  const readSchema = (at: WireReader): ObjectValue => {
    const read = newObject()
    decodeFields(at.message(), wirePlanOf(type), read, depth + 1)
    return read
  }
  const schemaNumber = is === 'schemaOrBool' ? 2 : 1
  eachField(reader, 'JSONSchemaProps', (number, wire, at) => {
    if (number !== 1 && number !== 2) return false
    if (number === schemaNumber) {
      requireWire(wire, wireBytes, 'Schema')
      schema = readSchema(at)
    } else if (is === 'schemaOrBool') {
      requireWire(wire, wireVarint, 'Allows')
      allows = at.bool()
    } else {
      requireWire(wire, wireBytes, is === 'schemaOrList' ? 'JSONSchemas' : 'Property')
      list.push(is === 'schemaOrList' ? canonical(readSchema(at), type) : at.string())
    }
    return true
  })
  if (is === 'schemaOrBool') return schema === undefined ? allows : canonical(schema, type)
  // As Go writes them as JSON: a list when there is one, else the schema.
  if (list.length > 0) return list
  return schema === undefined ? undefined : canonical(schema, type)
}

/** Raw values are not walked again: what is in them has to be canonical by itself. */
function canonical(schema: ObjectValue, type: TypeDescriptor): ObjectValue {
  return decodeValue(schema, type).object
}

/** @param take - Reads the value of a field it knows and says so; others are passed over. */
export function eachField(
  reader: WireReader,
  message: string,
  take: (number: number, wire: number, reader: WireReader) => boolean,
): void {
  while (!reader.done) {
    const { number, wire } = reader.tag(message)
    if (!take(number, wire, reader)) reader.skip(wire)
  }
}

export function requireWire(found: number, wanted: number, field: string): void {
  if (found !== wanted) throw wireError(`proto: wrong wireType = ${found} for field ${goName(field)}`)
}

function goName(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}
