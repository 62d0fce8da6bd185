import { SchemaError } from '../errors.ts'
import type { FieldProblem } from '../types.ts'
import { MapKey, ProblemList } from './problems.ts'
import type { PathStep } from './problems.ts'
import { decodeUtf8, JsonReader, newObject } from './reader.ts'

/**
 * Parses JSON without a type: patches, custom resources. Objects have no prototype; integers are numbers up
 * to 2^53, bigint up to the range of int64, and doubles beyond it.
 *
 * @returns The value and the duplicate fields in it; of those the last one counts.
 * @throws SchemaError ERR_SYNTAX, ERR_DEPTH; ERR_TYPE for a number that no double holds
 */
export function parseJson(bytes: Uint8Array): { readonly value: unknown; readonly problems: readonly FieldProblem[] } {
  const reader = new JsonReader(decodeUtf8(bytes))
  const problems = new ProblemList()
  const value = readGenericValue(reader, { problems, path: [] })
  reader.end()
  return { value, problems: problems.problems }
}

/** Where generic reading reports duplicates; without it they go unreported, as inside RawExtensions in Go. */
export interface DuplicateReport {
  readonly problems: ProblemList
  readonly path: PathStep[]
}

/** Takes the value that follows in `reader`. */
export function readGenericValue(reader: JsonReader, report?: DuplicateReport): unknown {
  switch (reader.kind()) {
    case 'string':
      return reader.string()
    case 'number':
      return genericNumber(reader.number())
    case 'bool':
    case 'null':
      return reader.literal()
    case 'object':
      return readObject(reader, report)
    case 'array':
      return readArray(reader, report)
  }
}

function readObject(reader: JsonReader, report?: DuplicateReport): unknown {
  const object = newObject()
  reader.open()
  for (let key = reader.key(true); key !== undefined; key = reader.key(false)) {
    if (report !== undefined) {
      if (key in object) report.problems.add('duplicate', report.path, key)
      report.path.push(new MapKey(key))
    }
    object[key] = readGenericValue(reader, report)
    report?.path.pop()
  }
  return object
}

function readArray(reader: JsonReader, report?: DuplicateReport): unknown {
  const array: unknown[] = []
  reader.open()
  for (let first = true; reader.element(first); first = false) {
    report?.path.push(array.length)
    array.push(readGenericValue(reader, report))
    report?.path.pop()
  }
  return array
}

const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n
/** No longer than any integer of 64 bits: BigInt of millions of digits takes seconds. */
const integer = /^-?[0-9]{1,40}$/

/** An integer of the text's value within int64, as number where that is exact; undefined for any other text. */
export function parseInteger(text: string): number | bigint | undefined {
  if (!integer.test(text)) return undefined
  // Also turns "-0" into 0.
  const value = Number(text) + 0
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value
  const exact = BigInt(text)
  return exact < int64Min || exact > int64Max ? undefined : exact
}

function genericNumber(text: string): number | bigint {
  const value = parseInteger(text) ?? Number(text)
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new SchemaError('ERR_TYPE', `json: cannot unmarshal number ${text} into Go value of type float64`)
  }
  return value
}
