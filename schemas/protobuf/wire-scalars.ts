import { wireError } from './wire-reader.ts'

/** 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z: outside, RFC 3339 has no words. */
const secondsMin = -62_167_219_200
const secondsMax = 253_402_300_799
const nanosPerSecond = 1_000_000_000

/** "2026-11-30T05:20:00Z" of seconds since 1970. */
export function timestampText(seconds: number | bigint): string {
  return `${secondsText(seconds)}Z`
}

/** "2026-11-30T05:20:00.123456Z"; nanos are cut to micros. */
export function microTimestampText(seconds: number | bigint, nanos: number): string {
  // Go's time.Unix takes any nanos and carries them over.
  const carried = Math.floor(nanos / nanosPerSecond)
  const micros = Math.floor((nanos - carried * nanosPerSecond) / 1000)
  return `${secondsText(typeof seconds === 'number' ? seconds + carried : seconds)}.${String(micros).padStart(6, '0')}Z`
}

function secondsText(seconds: number | bigint): string {
  if (typeof seconds === 'bigint' || seconds < secondsMin || seconds > secondsMax) {
    throw wireError('Time.MarshalJSON: year outside of range [0,9999]')
  }
  return new Date(seconds * 1000).toISOString().slice(0, 'yyyy-mm-ddThh:mm:ss'.length)
}

/** Seconds since 1970 and nanoseconds of a canonical Time or MicroTime. */
export function timeParts(text: string): { readonly seconds: number; readonly nanos: number } {
  const seconds = Date.parse(`${text.slice(0, 'yyyy-mm-ddThh:mm:ss'.length)}Z`) / 1000
  const fraction = /\.(\d{1,9})/.exec(text)?.[1] ?? ''
  return { seconds, nanos: Number(fraction.padEnd(9, '0')) }
}

const unitNanos: ReadonlyMap<string, bigint> = new Map([
  ['h', 3_600_000_000_000n],
  ['m', 60_000_000_000n],
  ['s', 1_000_000_000n],
  ['ms', 1_000_000n],
  ['us', 1_000n],
  ['µs', 1_000n],
  ['ns', 1n],
])

/** Nanoseconds of a Go duration ("1h30m", "-1.5s"). Text that is none counts as zero: it was checked when it came in. */
export function durationNanos(text: string): bigint {
  let total = 0n
  for (const [, whole = '', fraction = '', unit = ''] of text.matchAll(/(\d*)(?:\.(\d*))?(h|ms|m|s|us|µs|ns)/g)) {
    const nanos = unitNanos.get(unit) ?? 0n
    total += BigInt(whole || '0') * nanos
    if (fraction !== '') total += (BigInt(fraction) * nanos) / 10n ** BigInt(fraction.length)
  }
  return text.startsWith('-') ? -total : total
}

/** As Go's Duration.String: "1h0m0s", "1.5s", "300ms", "0s". */
export function durationText(nanos: number | bigint): string {
  const value = BigInt(nanos)
  const sign = value < 0n ? '-' : ''
  const size = value < 0n ? -value : value
  if (size === 0n) return '0s'
  for (const [unit, below, digits] of [
    ['ns', 1_000n, 0],
    ['µs', 1_000_000n, 3],
    ['ms', 1_000_000_000n, 6],
  ] as const) {
    if (size < below) return `${sign}${decimal(size, digits)}${unit}`
  }
  const minutes = size / 60_000_000_000n
  const seconds = `${decimal(size % 60_000_000_000n, 9)}s`
  if (minutes === 0n) return sign + seconds
  const hours = minutes / 60n
  return `${sign}${hours === 0n ? '' : `${hours}h`}${minutes % 60n}m${seconds}`
}

/** value / 10^digits without zeros at the end. */
function decimal(value: bigint, digits: number): string {
  const scale = 10n ** BigInt(digits)
  const fraction =
    digits === 0
      ? ''
      : String(value % scale)
          .padStart(digits, '0')
          .replace(/0+$/, '')
  return fraction === '' ? String(value / scale) : `${value / scale}.${fraction}`
}
