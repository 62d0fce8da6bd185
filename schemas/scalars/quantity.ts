/**
 * Resource quantities ("100m", "1.5Gi", "1e3"): the grammar, rounding and canonical form of Kubernetes'
 * `resource.Quantity`. A canonical quantity has no fraction, no more than three zeros at its end that a larger
 * suffix could hold, and keeps the family of suffixes it was written with:
 *
 *     "1000m" -> "1"     "0.5Gi" -> "512Mi"     "1500Mi" stays     "0.5Ki" -> "512"     "1e4" -> "10e3"
 */

/** The texts of Go's errors, which clients see behind "quantity" fields. */
export const quantityFormatMessage =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
const numericMessage = 'unable to parse numeric part of quantity'
const suffixMessage = "unable to parse quantity's suffix"

/** Why a text is not a quantity. Internal to decoding, where it becomes ERR_TYPE. */
export class QuantityError extends Error {}

/** mantissa x 10^exponent, exactly; `format` says which suffixes write it. */
export interface Quantity {
  readonly mantissa: bigint
  /** >= -9: finer values are rounded away from zero. */
  readonly exponent: number
  readonly format: 'decimal' | 'exponent' | 'binary'
}

const grammar = /^([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)$/
// The common case, canonical as it stands: below 1000 of any unit that is not itself a fraction of a larger one.
const canonicalAlready = /^[1-9][0-9]{0,2}(?:m|Ki|Mi|Gi)?$/
const nanoExponent = -9
// As in Go: amounts that need more than 18 digits are capped here.
const amountMax = 2n ** 63n - 1n
const fastDigitsMax = 18

const decimalSuffixes: ReadonlyMap<string, number> = new Map([
  ['n', -9],
  ['u', -6],
  ['m', -3],
  ['', 0],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['P', 15],
  ['E', 18],
])
const decimalSuffixOf: ReadonlyMap<number, string> = new Map([...decimalSuffixes].map(([suffix, exp]) => [exp, suffix]))
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const

function power10(exponent: number): bigint {
  return 10n ** BigInt(exponent)
}

function ceilAwayFromZero(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator
  if (quotient * denominator === numerator) return quotient
  return numerator < 0n ? quotient - 1n : quotient + 1n
}

/** @throws QuantityError with the text of the real server */
export function parseQuantity(text: string): Quantity {
  const match = grammar.exec(text)
  if (match === null || text === '') throw new QuantityError(quantityFormatMessage)
  const [, sign = '', whole = '', fraction = '', suffix = ''] = match
  if (whole === '' && fraction === '' && suffix === '' && text !== '.') throw new QuantityError(quantityFormatMessage)
  const { base, exponent, format } = interpret(suffix)
  if (whole === '' && fraction === '') throw new QuantityError(numericMessage)
  const digits = whole.replace(/^0+/, '').length + fraction.length
  let mantissa = BigInt(`${whole}${fraction}` || '0')
  let scale = -fraction.length
  if (base === 2) mantissa *= 2n ** BigInt(exponent)
  else scale += exponent
  if (mantissa === 0n) return { mantissa: 0n, exponent: 0, format }
  if (scale < nanoExponent) {
    // Nothing is finer than a nano unit. An exponent beyond all reason must not cost time or memory.
    const drop = nanoExponent - scale
    mantissa = drop > mantissa.toString().length + 1 ? 1n : ceilAwayFromZero(mantissa, power10(drop))
    scale = nanoExponent
  }
  if (digits > fastDigitsMax || scale > fastDigitsMax + 3 || (base === 2 && mantissa > amountMax)) {
    const whole = scale > 60 ? amountMax : scale > 0 ? mantissa * power10(scale) : mantissa / power10(-scale)
    if (whole >= amountMax) return { mantissa: sign === '-' ? -amountMax : amountMax, exponent: 0, format }
  }
  // Below one unit, binary suffixes cannot say it.
  const small = format === 'binary' && scale < 0 && mantissa < power10(-scale)
  return { mantissa: sign === '-' ? -mantissa : mantissa, exponent: scale, format: small ? 'decimal' : format }
}

function interpret(suffix: string): { base: 2 | 10; exponent: number; format: Quantity['format'] } {
  const decimal = decimalSuffixes.get(suffix)
  if (decimal !== undefined) return { base: 10, exponent: decimal, format: 'decimal' }
  const binary = binarySuffixes.indexOf(suffix as (typeof binarySuffixes)[number])
  if (binary > 0) return { base: 2, exponent: binary * 10, format: 'binary' }
  if (/^[eE][-+]?[0-9]+$/.test(suffix)) {
    const exponent = Number(suffix.slice(1))
    if (Number.isSafeInteger(exponent)) return { base: 10, exponent, format: 'exponent' }
  }
  throw new QuantityError(suffixMessage)
}

/** The canonical text of a quantity. */
export function formatQuantity(quantity: Quantity): string {
  const { mantissa, exponent } = quantity
  if (mantissa === 0n) return '0'
  if (quantity.format === 'binary') {
    let units = exponent >= 0 ? mantissa * power10(exponent) : ceilAwayFromZero(mantissa, power10(-exponent))
    const size = units < 0n ? -units : units
    if (size >= 1024n) {
      let times = 0
      while (times < binarySuffixes.length - 1 && units % 1024n === 0n) {
        units /= 1024n
        times++
      }
      return `${units}${binarySuffixes[times]}`
    }
  }
  return formatDecimal(mantissa, exponent, quantity.format === 'exponent')
}

function formatDecimal(mantissa: bigint, exponent: number, scientific: boolean): string {
  let amount = mantissa
  let power = exponent
  while (amount % 10n === 0n) {
    amount /= 10n
    power++
  }
  while (power % 3 !== 0 || (!scientific && power > 18)) {
    amount *= 10n
    power--
  }
  if (scientific) return power === 0 ? `${amount}` : `${amount}e${power}`
  return `${amount}${decimalSuffixOf.get(power)}`
}

/** @throws QuantityError */
export function canonicalQuantity(text: string): string {
  return canonicalAlready.test(text) ? text : formatQuantity(parseQuantity(text))
}

/** Negative, zero or positive, as `a` is less than, equal to or more than `b`. @throws QuantityError */
export function compareQuantities(a: string, b: string): number {
  const left = parseQuantity(a)
  const right = parseQuantity(b)
  const low = Math.min(left.exponent, right.exponent)
  const difference = left.mantissa * power10(left.exponent - low) - right.mantissa * power10(right.exponent - low)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

/** The sum, written with the suffixes of `a` (of `b` where `a` is zero). @throws QuantityError */
export function addQuantities(a: string, b: string): string {
  const left = parseQuantity(a)
  const right = parseQuantity(b)
  const low = Math.min(left.exponent, right.exponent)
  const mantissa = left.mantissa * power10(left.exponent - low) + right.mantissa * power10(right.exponent - low)
  return formatQuantity({ mantissa, exponent: low, format: left.mantissa === 0n ? right.format : left.format })
}

/**
 * Rounds away from zero to a multiple of 10^exponent units, as the defaults of resource lists do with -3.
 * @throws QuantityError
 */
export function roundQuantityUp(text: string, exponent: number): string {
  if (exponent <= -3 && canonicalAlready.test(text)) return text
  const quantity = parseQuantity(text)
  if (quantity.exponent >= exponent) return formatQuantity(quantity)
  const mantissa = ceilAwayFromZero(quantity.mantissa, power10(exponent - quantity.exponent))
  return formatQuantity({ mantissa, exponent, format: quantity.format })
}
