import { FAILSAFE_SCHEMA, type Schema, Type } from 'js-yaml'

const nullWords = new Set(['', '~', 'null', 'Null', 'NULL'])
const trueWords = new Set(['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'])
const falseWords = new Set(['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'])

const nothing = new Type('tag:yaml.org,2002:null', {
  kind: 'scalar',
  resolve: (text: string | null) => text === null || nullWords.has(text),
  construct: () => null,
})

const truth = new Type('tag:yaml.org,2002:bool', {
  kind: 'scalar',
  resolve: (text: string | null) => text !== null && (trueWords.has(text) || falseWords.has(text)),
  construct: (text: string) => trueWords.has(text),
})

/** More digits are beyond every integer; what is longer is never handed to BigInt, whose time is not linear. */
const integerDigitsMax = 70

/** Go's strconv.ParseInt with base 0: 10, 0x1f, 0o17, 017, 0b1, with underscores; undefined beyond 64 bits. */
function integerOf(text: string): bigint | undefined {
  if (text.length > integerDigitsMax) return undefined
  const match = /^([-+]?)(0x[0-9a-f]+|0b[01]+|0o?[0-7]+|0|[1-9][0-9]*)$/i.exec(text.replaceAll('_', ''))
  if (match === null) return undefined
  const [, sign = '', digits = ''] = match
  const octal = /^0([0-7]+)$/.exec(digits)
  const size = BigInt(octal === null ? digits.toLowerCase() : `0o${octal[1]}`)
  const value = sign === '-' ? -size : size
  return BigInt.asIntN(64, value) === value || BigInt.asUintN(64, value) === value ? value : undefined
}

function floatOf(text: string): number | undefined {
  if (!/^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:e[-+]?[0-9]+)?$/i.test(text)) {
    const special = /^([-+]?)(?:\.(inf|Inf|INF)|\.(nan|NaN|NAN))$/.exec(text)
    if (special === null) return undefined
    return special[2] === undefined ? Number.NaN : special[1] === '-' ? -Infinity : Infinity
  }
  const value = Number(text)
  return Number.isFinite(value) ? value : undefined
}

const integer = new Type('tag:yaml.org,2002:int', {
  kind: 'scalar',
  resolve: (text: string | null) => text !== null && integerOf(text) !== undefined,
  construct: (text: string) => integerOf(text),
})

const float = new Type('tag:yaml.org,2002:float', {
  kind: 'scalar',
  resolve: (text: string | null) => text !== null && floatOf(text.replaceAll('_', '')) !== undefined,
  construct: (text: string) => floatOf(text.replaceAll('_', '')),
})

/** The tag alone makes the library merge. */
const mergeKey = new Type('tag:yaml.org,2002:merge', { kind: 'scalar', resolve: (text: unknown) => text === '<<' })

/**
 * What plain scalars mean to the API server's YAML library (goyaml v2, resolve.go): YAML 1.1 without sexagesimal numbers
 * and with timestamps as text. Integers are bigint.
 */
export const goSchema: Schema = FAILSAFE_SCHEMA.extend({ implicit: [nothing, truth, integer, float, mergeKey] })
