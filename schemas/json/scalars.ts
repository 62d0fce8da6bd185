import { SchemaError } from '../errors.ts'
import { Base64Error, canonicalBase64 } from '../scalars/base64.ts'
import { canonicalQuantity, QuantityError } from '../scalars/quantity.ts'
import { canonicalMicroTimestamp, canonicalTimestamp, TimeError } from '../scalars/time.ts'
import type { TypeRef } from '../types.ts'
import { wrongType } from './go-type.ts'
import type { Place } from './go-type.ts'
import { parseInteger } from './parse.ts'
import { formatPath } from './problems.ts'

/** A number by its text: decoding must tell 1 from 1.0, and 0.10 is a quantity. */
export class NumberText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Types whose JSON is one string, number or boolean. */
export type ScalarRef =
  | { readonly is: Exclude<TypeRef['is'], 'enum' | 'message' | 'list' | 'map' | 'raw' | 'fields'> }
  | Extract<TypeRef, { is: 'enum' }>

export function isScalar(type: TypeRef): type is ScalarRef {
  return type.is !== 'message' && type.is !== 'list' && type.is !== 'map' && type.is !== 'raw' && type.is !== 'fields'
}

/**
 * The canonical value of a scalar; undefined where Go has its zero value for "not set" (the zero time).
 *
 * @throws SchemaError ERR_TYPE in the words of Go's decoder
 */
export function decodeScalar(value: string | boolean | NumberText, type: ScalarRef, place: Place): unknown {
  switch (type.is) {
    case 'string':
    case 'enum':
    case 'duration':
      if (typeof value === 'string') return value
      throw wrongType(kindOf(value), type, place)
    case 'bool':
      if (typeof value === 'boolean') return value
      throw wrongType(kindOf(value), type, place)
    case 'int32':
      return decodeInteger(value, 'int32', place)
    case 'int64':
      return decodeInteger(value, 'int64', place)
    case 'double':
      return decodeDouble(value, type, place)
    case 'bytes':
      if (typeof value !== 'string') throw wrongType(kindOf(value), type, place)
      return worded(place, () => canonicalBase64(value))
    case 'quantity': {
      if (typeof value === 'boolean') return worded(place, () => canonicalQuantity(String(value)))
      const text = typeof value === 'string' ? value.trim() : value.text
      return worded(place, () => canonicalQuantity(text))
    }
    case 'time':
      if (typeof value !== 'string') throw wrongType(kindOf(value), 'string', place)
      return worded(place, () => canonicalTimestamp(value))
    case 'microTime':
      if (typeof value !== 'string') throw wrongType(kindOf(value), 'string', place)
      return worded(place, () => canonicalMicroTimestamp(value))
    case 'intOrString':
      if (typeof value === 'string') return value
      return decodeInteger(value, 'int32', place, 'int32')
  }
}

function decodeInteger(
  value: string | boolean | NumberText,
  is: 'int32' | 'int64',
  place: Place,
  name?: string,
): number | bigint {
  if (!(value instanceof NumberText)) throw wrongType(kindOf(value), name ?? { is }, place)
  const integer = parseInteger(value.text)
  const fits = integer !== undefined && (is === 'int64' || (typeof integer === 'number' && integer === (integer | 0)))
  if (!fits) throw wrongType(`number ${value.text}`, name ?? { is }, place)
  return integer
}

function decodeDouble(value: string | boolean | NumberText, type: ScalarRef, place: Place): number {
  if (!(value instanceof NumberText)) throw wrongType(kindOf(value), type, place)
  const double = Number(value.text)
  if (!Number.isFinite(double)) throw wrongType(`number ${value.text}`, type, place)
  return double
}

function kindOf(value: string | boolean | NumberText): string {
  return typeof value === 'string' ? 'string' : typeof value === 'boolean' ? 'bool' : 'number'
}

/** Runs a decoder of texts whose errors are already worded as Go's, and gives them code and place. */
function worded<T>(place: Place, decode: () => T): T {
  try {
    return decode()
  } catch (error) {
    if (error instanceof QuantityError || error instanceof TimeError || error instanceof Base64Error) {
      throw new SchemaError('ERR_TYPE', error.message, { cause: error, path: formatPath(place.path) })
    }
    throw error
  }
}

/** The value of a scalar that a null item of a list or map stands for. */
export function zeroScalar(type: ScalarRef): unknown {
  switch (type.is) {
    case 'bool':
      return false
    case 'int32':
    case 'int64':
    case 'double':
    case 'intOrString':
      return 0
    case 'quantity':
      return '0'
    case 'time':
    case 'microTime':
      return null
    case 'string':
    case 'enum':
    case 'duration':
    case 'bytes':
      return ''
  }
}
