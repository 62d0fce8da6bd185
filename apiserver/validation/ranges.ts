import type { Cause } from '../types.ts'
import { invalidValue } from './field-error.ts'

/** Numbers in their ranges, in apimachinery's words. Absent numbers are fine. */

export const int32Max = 2_147_483_647

export function nonNegative(value: number | undefined, at: string): readonly Cause[] {
  return value !== undefined && value < 0 ? [invalidValue(at, value, 'must be greater than or equal to 0')] : []
}

export function positive(value: number | undefined, at: string): readonly Cause[] {
  return value !== undefined && value <= 0 ? [invalidValue(at, value, 'must be greater than zero')] : []
}

export function inRange(value: number | bigint | undefined, min: number, max: number, at: string): readonly Cause[] {
  if (value === undefined || (value >= min && value <= max)) return []
  return [invalidValue(at, value, `must be between ${min} and ${max}, inclusive`)]
}

/** Unix user and group ids (libcontainer's range). */
export const validateId = (value: number | bigint | undefined, at: string): readonly Cause[] =>
  inRange(value, 0, int32Max, at)

/** Bits of a file's mode: 0 to 0777 in octal. */
export function validateFileMode(mode: number | undefined, at: string): readonly Cause[] {
  if (mode === undefined || (mode >= 0 && mode <= 0o777)) return []
  return [invalidValue(at, mode, 'must be a number between 0 and 0777 (octal), both inclusive')]
}

const percentProblem =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"

/** A count that is not negative, or a percentage; above 100% only where `overAll` allows it. */
export function validateCountOrPercent(value: unknown, at: string, overAll: boolean): readonly Cause[] {
  if (typeof value === 'number') return nonNegative(value, at)
  if (typeof value !== 'string') return []
  if (!/^[0-9]+%$/.test(value)) return [invalidValue(at, value, percentProblem)]
  return overAll || Number(value.slice(0, -1)) <= 100 ? [] : [invalidValue(at, value, 'must not be greater than 100%')]
}

/** Whether a count or percentage says "none". */
export const isNone = (value: unknown): boolean =>
  value === undefined || value === 0 || (typeof value === 'string' && /^0+%?$/.test(value))
