/**
 * Timestamps. `Time` is RFC 3339 in whole seconds, UTC ("2026-11-30T04:16:00Z"); `MicroTime` has exactly six
 * digits of fraction. Errors read as those of Go's time.Parse. The zero time of Go (year 1) means "not set".
 */

/** Why a text is not a time. Internal to decoding, where it becomes ERR_TYPE. */
export class TimeError extends Error {}

const timeLayout = '2006-01-02T15:04:05Z07:00'
const microTimeLayout = '2006-01-02T15:04:05.000000Z07:00'

const canonicalTime =
  /^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$/
const zeroYear = '0001-01-01T00:00:00'

/** What each part of the layout accepts at the front of what is left. */
const parts: readonly (readonly [layout: string, accepts: RegExp])[] = [
  ['2006', /^[0-9]{4}/],
  ['-', /^-/],
  ['01', /^[0-9]{2}/],
  ['-', /^-/],
  ['02', /^[0-9]{2}/],
  ['T', /^T/],
  ['15', /^[0-9]{2}/],
  [':', /^:/],
  ['04', /^[0-9]{2}/],
  [':', /^:/],
  ['05', /^[0-9]{2}/],
]
const zone: readonly [string, RegExp] = ['Z07:00', /^(?:Z|[+-][0-9]{2}:[0-9]{2})/]
const anyFraction: readonly [string, RegExp] = ['', /^(?:[.,][0-9]+)?/]
const microFraction: readonly [string, RegExp] = ['.000000', /^[.,][0-9]{6}/]

/** The canonical text, or undefined for Go's zero time. @throws TimeError with the text of Go's error */
export function canonicalTimestamp(text: string): string | undefined {
  if (canonicalTime.test(text) && !text.startsWith('0001-')) return text
  const { seconds } = parse(text, timeLayout, anyFraction)
  return seconds === zeroYear ? undefined : `${seconds}Z`
}

/** As canonicalTimestamp, of a MicroTime. */
export function canonicalMicroTimestamp(text: string): string | undefined {
  const { seconds, fraction } = parse(text, microTimeLayout, microFraction)
  return seconds === zeroYear && fraction === '000000' ? undefined : `${seconds}.${fraction}Z`
}

function parse(
  text: string,
  layout: string,
  fraction: readonly [string, RegExp],
): { seconds: string; fraction: string } {
  const found: string[] = []
  let rest = text
  for (const [part, accepts] of [...parts, fraction, zone]) {
    const match = accepts.exec(rest)
    if (match === null) {
      throw new TimeError(
        `parsing time ${quote(text)} as ${quote(layout)}: cannot parse ${quote(rest)} as ${quote(part)}`,
      )
    }
    found.push(match[0])
    rest = rest.slice(match[0].length)
  }
  if (rest !== '') throw new TimeError(`parsing time ${quote(text)}: extra text: ${quote(rest)}`)
  const [year = '', , month = '', , day = '', , hour = '', , minute = '', , second = '', digits = '', offset = ''] =
    found
  const range = outOfRange(Number(year), Number(month), Number(day), Number(hour), Number(minute), Number(second))
  if (range !== undefined) throw new TimeError(`parsing time ${quote(text)}: ${range} out of range`)
  const seconds = `${year}-${month}-${day}T${hour}:${minute}:${second}`
  return { seconds: offset === 'Z' ? seconds : toUtc(text, seconds, offset), fraction: digits.slice(1) }
}

function outOfRange(year: number, month: number, day: number, hour: number, minute: number, second: number) {
  if (month < 1 || month > 12) return 'month'
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  const days = month === 2 ? (leap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31
  if (day < 1 || day > days) return 'day'
  if (hour > 23) return 'hour'
  if (minute > 59) return 'minute'
  if (second > 59) return 'second'
  return undefined
}

function toUtc(text: string, seconds: string, offset: string): string {
  const minutes = Number(offset.slice(1, 3)) * 60 + Number(offset.slice(4, 6))
  if (Number(offset.slice(1, 3)) > 24 || Number(offset.slice(4, 6)) > 59) {
    throw new TimeError(`parsing time ${quote(text)}: time zone offset hour out of range`)
  }
  const utc = new Date(Date.parse(`${seconds}Z`) - (offset.startsWith('-') ? -minutes : minutes) * 60_000)
  const iso = utc.toISOString()
  // Years outside 0000..9999 have no RFC 3339 form; Go refuses to write them.
  if (iso.length !== '2006-01-02T15:04:05.000Z'.length)
    throw new TimeError(`parsing time ${quote(text)}: year out of range`)
  return iso.slice(0, zeroYear.length)
}

function quote(text: string): string {
  return JSON.stringify(text)
}
