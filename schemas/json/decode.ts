import { SchemaError } from '../errors.ts'
import { nestingDepthMax } from '../limits.ts'
import { quantityFormatMessage } from '../scalars/quantity.ts'
import type { FieldDescriptor, FieldProblem, ObjectValue, TypeDescriptor, TypeRef } from '../types.ts'
import { wrongType } from './go-type.ts'
import type { Place } from './go-type.ts'
import { readGenericValue } from './parse.ts'
import { formatPath, MapKey, ProblemList } from './problems.ts'
import type { PathStep } from './problems.ts'
import { decodeUtf8, JsonReader, newObject } from './reader.ts'
import type { JsonKind } from './reader.ts'
import { decodeScalar, isScalar, NumberText, zeroScalar } from './scalars.ts'
import type { ScalarRef } from './scalars.ts'

export interface DecodeOptions {
  /**
   * Keep what Go leaves out when it encodes: zero values, empty lists and maps of fields with `omitempty`. Apply
   * configurations need it (`hostNetwork: false` is an opinion there); a stored object must not have two forms.
   */
  readonly keepEmpty?: boolean
}

export interface Decoded {
  readonly object: ObjectValue
  /** Unknown fields (dropped) and duplicate ones (the last counts), in order of appearance. */
  readonly problems: readonly FieldProblem[]
}

/**
 * Decodes one JSON object of `type` in one pass. The result is canonical: quantities, times and base64
 * normalised, null and (unless `keepEmpty`) empty optional fields absent, objects without prototype, integers
 * beyond 2^53 bigint. `kind` and `apiVersion` are fields like any other.
 *
 * @throws SchemaError ERR_SYNTAX, ERR_DEPTH, ERR_TYPE; a syntax error anywhere goes before a type error
 */
export function decodeJson(bytes: Uint8Array, type: TypeDescriptor, options?: DecodeOptions): Decoded {
  const text = decodeUtf8(bytes)
  const decoder = new JsonDecoder(new JsonReader(text), options)
  try {
    return decoder.decode(type)
  } catch (error) {
    if (error instanceof SchemaError && error.code === 'ERR_TYPE') requireSyntax(text)
    throw error
  }
}

function requireSyntax(text: string): void {
  const reader = new JsonReader(text)
  reader.skip()
  reader.end()
}

const noObject: readonly PathStep[] = []

class JsonDecoder {
  readonly #reader: JsonReader
  readonly #keepEmpty: boolean
  readonly #problems = new ProblemList()
  readonly #path: PathStep[] = []

  constructor(reader: JsonReader, options: DecodeOptions | undefined) {
    this.#reader = reader
    this.#keepEmpty = options?.keepEmpty === true
  }

  decode(type: TypeDescriptor): Decoded {
    const kind = this.#reader.kind()
    let object: ObjectValue
    if (kind === 'object') {
      object = this.#message(type)
    } else if (kind === 'null') {
      this.#reader.literal()
      object = newObject()
    } else {
      throw wrongType(
        kind,
        { is: 'message', descriptor: () => type },
        { owner: undefined, field: undefined, path: noObject },
      )
    }
    this.#reader.end()
    return { object, problems: this.#problems.problems }
  }

  #message(type: TypeDescriptor): ObjectValue {
    const reader = this.#reader
    const path = this.#path
    const object = newObject()
    // Fields that were there without leaving a value (null, empty), only to notice a second one.
    let absent: Set<string> | undefined
    reader.open()
    for (let key = reader.key(true); key !== undefined; key = reader.key(false)) {
      const field = type.byJsonName.get(key)
      if (field === undefined) {
        this.#unknown(type, object, key)
        continue
      }
      const name = field.jsonName
      if (object[name] !== undefined || absent?.has(name) === true) {
        this.#problems.add('duplicate', path, name)
        delete object[name]
      }
      path.push(name)
      const value = this.#value(field.type, type, field)
      path.pop()
      if (value === undefined || (!this.#keepEmpty && leftOut(value, field))) {
        absent ??= new Set()
        absent.add(name)
      } else {
        object[name] = value
      }
    }
    return object
  }

  #unknown(type: TypeDescriptor, object: ObjectValue, key: string): void {
    if (!type.preserveUnknown) {
      this.#problems.add('unknown', this.#path, key)
      this.#reader.skip()
      return
    }
    if (key in object) this.#problems.add('duplicate', this.#path, key)
    this.#path.push(new MapKey(key))
    object[key] = readGenericValue(this.#reader, { problems: this.#problems, path: this.#path })
    this.#path.pop()
  }

  /** The value that follows; undefined for null. */
  #value(type: TypeRef, owner: TypeDescriptor, field: FieldDescriptor): unknown {
    const reader = this.#reader
    const kind = reader.kind()
    if (kind === 'null') {
      reader.literal()
      return undefined
    }
    if (type.is === 'string' && kind === 'string') return reader.string()
    if (type.is === 'message') {
      if (kind === 'object') return this.#message(type.descriptor())
    } else if (type.is === 'list') {
      if (kind === 'array') return this.#list(type, owner, field)
    } else if (type.is === 'map') {
      if (kind === 'object') return this.#map(type, owner, field)
    } else if (type.is === 'fields') {
      if (kind === 'object') return readGenericValue(reader)
    } else if (type.is === 'raw') {
      return readGenericValue(reader)
    } else {
      return this.#scalar(type as ScalarRef, kind, owner, field)
    }
    throw wrongType(kind, type, this.#place(owner, field))
  }

  #scalar(type: ScalarRef, kind: string, owner: TypeDescriptor, field: FieldDescriptor): unknown {
    const place = this.#place(owner, field)
    if (kind === 'string') return decodeScalar(this.#reader.string(), type, place)
    if (kind === 'number') return decodeScalar(new NumberText(this.#reader.number()), type, place)
    if (kind === 'bool') return decodeScalar(this.#reader.literal() === true, type, place)
    throw wrongScalar(kind, type, place)
  }

  #list(type: TypeRef & { is: 'list' | 'map' }, owner: TypeDescriptor, field: FieldDescriptor): unknown[] {
    const reader = this.#reader
    const items: unknown[] = []
    reader.open()
    for (let first = true; reader.element(first); first = false) {
      this.#path.push(items.length)
      items.push(this.#value(type.of, owner, field) ?? nullItem(type))
      this.#path.pop()
    }
    return items
  }

  #map(type: TypeRef & { is: 'list' | 'map' }, owner: TypeDescriptor, field: FieldDescriptor): ObjectValue {
    const reader = this.#reader
    const entries = newObject()
    reader.open()
    for (let key = reader.key(true); key !== undefined; key = reader.key(false)) {
      if (key in entries) this.#problems.add('duplicate', this.#path, key)
      this.#path.push(new MapKey(key))
      entries[key] = this.#value(type.of, owner, field) ?? nullItem(type)
      this.#path.pop()
    }
    return entries
  }

  #place(owner: TypeDescriptor, field: FieldDescriptor): Place {
    return { owner, field, path: this.#path }
  }
}

/** An object or array where a scalar should be. Types that decode themselves in Go put it their own way. */
function wrongScalar(kind: string, type: ScalarRef, place: Place): SchemaError {
  if (type.is === 'quantity') {
    return new SchemaError('ERR_TYPE', quantityFormatMessage, { path: formatPath(place.path) })
  }
  if (type.is === 'time' || type.is === 'microTime') return wrongType(kind, 'string', place)
  if (type.is === 'intOrString') return wrongType(kind, 'int32', place)
  return wrongType(kind, type, place)
}

/** What null stands for as an item: Go's zero value, or null itself where the item can be null. */
function nullItem(type: TypeRef & { is: 'list' | 'map' }): unknown {
  const { of } = type
  if (type.nullableItems === true || of.is === 'raw') return null
  if (isScalar(of)) return zeroScalar(of)
  return of.is === 'list' ? [] : newObject()
}

/** Whether Go forgets the field when it encodes and decodes the object again. */
function leftOut(value: unknown, field: FieldDescriptor): boolean {
  if (field.presence === 'pointer') return false
  if (field.type.is === 'list') return (value as readonly unknown[]).length === 0
  if (field.type.is === 'map') return isEmpty(value as ObjectValue)
  return field.presence === 'omitEmpty' && (value === '' || value === 0 || value === false)
}

function isEmpty(object: ObjectValue): boolean {
  for (const _ in object) return false
  return true
}

/**
 * The walk of decodeJson over a value that is already parsed (a patch's result): same checks, same canonical
 * form. `value` is not changed, and shares nothing mutable with the result but raw values.
 *
 * @throws SchemaError ERR_TYPE; ERR_DEPTH
 */
export function decodeValue(value: unknown, type: TypeDescriptor, options?: DecodeOptions): Decoded {
  return new ValueDecoder(options).decode(value, type)
}

class ValueDecoder {
  readonly #keepEmpty: boolean
  readonly #problems = new ProblemList()
  readonly #path: PathStep[] = []

  constructor(options: DecodeOptions | undefined) {
    this.#keepEmpty = options?.keepEmpty === true
  }

  decode(value: unknown, type: TypeDescriptor): Decoded {
    const kind = kindOfValue(value)
    if (kind === 'null') return { object: newObject(), problems: [] }
    if (kind !== 'object') {
      throw wrongType(
        kind,
        { is: 'message', descriptor: () => type },
        { owner: undefined, field: undefined, path: noObject },
      )
    }
    return { object: this.#message(value as ObjectValue, type), problems: this.#problems.problems }
  }

  #message(value: ObjectValue, type: TypeDescriptor): ObjectValue {
    if (this.#path.length > nestingDepthMax) throw new SchemaError('ERR_DEPTH', 'exceeded max depth')
    const object = newObject()
    for (const key of Object.keys(value)) {
      const field = type.byJsonName.get(key)
      if (field === undefined) {
        if (type.preserveUnknown) object[key] = value[key]
        else this.#problems.add('unknown', this.#path, key)
        continue
      }
      this.#path.push(key)
      const decoded = this.#value(value[key], field.type, type, field)
      this.#path.pop()
      if (decoded !== undefined && (this.#keepEmpty || !leftOut(decoded, field))) object[key] = decoded
    }
    return object
  }

  #value(value: unknown, type: TypeRef, owner: TypeDescriptor, field: FieldDescriptor): unknown {
    const kind = kindOfValue(value)
    if (kind === 'null') return undefined
    const place = { owner, field, path: this.#path }
    if (type.is === 'message') {
      if (kind === 'object') return this.#message(value as ObjectValue, type.descriptor())
    } else if (type.is === 'list') {
      if (kind === 'array') {
        return (value as readonly unknown[]).map((item, index) => this.#item(index, item, type, owner, field))
      }
    } else if (type.is === 'map') {
      if (kind === 'object') return this.#map(value as ObjectValue, type, owner, field)
    } else if (type.is === 'fields') {
      if (kind === 'object') return value
    } else if (type.is === 'raw') {
      return value
    } else {
      if (kind === 'object' || kind === 'array') throw wrongScalar(kind, type as ScalarRef, place)
      return decodeScalar(scalarOf(value), type as ScalarRef, place)
    }
    throw wrongType(kind, type, place)
  }

  #map(
    value: ObjectValue,
    type: TypeRef & { is: 'list' | 'map' },
    owner: TypeDescriptor,
    field: FieldDescriptor,
  ): ObjectValue {
    const entries = newObject()
    for (const key of Object.keys(value)) entries[key] = this.#item(new MapKey(key), value[key], type, owner, field)
    return entries
  }

  #item(
    step: PathStep,
    item: unknown,
    type: TypeRef & { is: 'list' | 'map' },
    owner: TypeDescriptor,
    field: FieldDescriptor,
  ): unknown {
    this.#path.push(step)
    const decoded = this.#value(item, type.of, owner, field) ?? nullItem(type)
    this.#path.pop()
    return decoded
  }
}

function scalarOf(value: unknown): string | boolean | NumberText {
  if (typeof value === 'string' || typeof value === 'boolean') return value
  return new NumberText(String(value))
}

function kindOfValue(value: unknown): JsonKind {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'bool'
  return typeof value === 'object' ? 'object' : 'number'
}
