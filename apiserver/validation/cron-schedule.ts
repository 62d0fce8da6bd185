/**
 * Schedules of CronJobs: five fields of numbers, names, ranges, steps and lists, or a word such as @daily. The texts are
 * those of the cron library that the real server parses with.
 */

interface FieldBounds {
  readonly min: number
  readonly max: number
  readonly names: readonly string[]
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

const fieldBounds: readonly FieldBounds[] = [
  { min: 0, max: 59, names: [] },
  { min: 0, max: 23, names: [] },
  { min: 1, max: 31, names: [] },
  { min: 1, max: 12, names: months },
  { min: 0, max: 6, names: weekdays },
]

const words = new Set(['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'])
const everyPrefix = '@every '
const duration = /^[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/
/** More text than any duration has; a pattern that repeats a group is not tried on it. */
const durationCharactersMax = 100

/** Why the schedule is none; undefined when it is one. */
export function scheduleProblem(schedule: string): string | undefined {
  if (schedule.includes('TZ')) return 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'
  if (schedule.startsWith('@')) return wordProblem(schedule)
  const fields = schedule.split(/\s+/).filter((field) => field !== '')
  if (fields.length !== fieldBounds.length) {
    return `expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`
  }
  for (const [index, bounds] of fieldBounds.entries()) {
    const problem = fieldProblem(fields[index] ?? '', bounds)
    if (problem !== undefined) return problem
  }
  return undefined
}

function wordProblem(schedule: string): string | undefined {
  if (words.has(schedule)) return undefined
  if (!schedule.startsWith(everyPrefix)) return `unrecognized descriptor: ${schedule}`
  const text = schedule.slice(everyPrefix.length)
  if (text.length <= durationCharactersMax && duration.test(text)) return undefined
  return `failed to parse duration ${schedule}: time: invalid duration ${JSON.stringify(text)}`
}

function fieldProblem(field: string, bounds: FieldBounds): string | undefined {
  for (const range of field.split(',')) {
    const problem = range === '' ? undefined : rangeProblem(range, bounds)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** `*`, `n`, `a-b`, each with `/step`. */
function rangeProblem(range: string, bounds: FieldBounds): string | undefined {
  const [span = '', step, ...tooMuch] = range.split('/')
  const [low = '', high, ...more] = span.split('-')
  let start: number
  let end: number
  if (low === '*' || low === '?') {
    start = bounds.min
    end = bounds.max
  } else {
    const first = numberOf(low, bounds)
    if (typeof first === 'string') return first
    start = first
    end = first
    if (more.length > 0) return `too many hyphens: ${range}`
    if (high !== undefined) {
      const last = numberOf(high, bounds)
      if (typeof last === 'string') return last
      end = last
    }
  }
  if (tooMuch.length > 0) return `too many slashes: ${range}`
  if (step !== undefined) {
    const size = numberOf(step, { min: 0, max: 0, names: [] })
    if (typeof size === 'string') return size
    if (size === 0) return `step of range should be a positive number: ${range}`
    if (high === undefined) end = bounds.max
  }
  if (start < bounds.min) return `beginning of range (${start}) below minimum (${bounds.min}): ${range}`
  if (end > bounds.max) return `end of range (${end}) above maximum (${bounds.max}): ${range}`
  return start > end ? `beginning of range (${start}) beyond end of range (${end}): ${range}` : undefined
}

function numberOf(text: string, bounds: FieldBounds): number | string {
  const named = bounds.names.indexOf(text.toLowerCase())
  if (named >= 0) return named + bounds.min
  if (/^\+?\d{1,9}$/.test(text)) return Number(text)
  return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`
}

/** An IANA name, never the machine's own zone. */
export function timeZoneProblem(zone: string): string | undefined {
  if (zone === '') return 'timeZone must be nil or non-empty string'
  if (zone.toLowerCase() === 'local') {
    return 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'
  }
  // Offsets such as "+02:00" are zones to the engine but not to Go.
  if (!/^[A-Za-z]/.test(zone) || !isKnownZone(zone)) return `unknown time zone ${zone}`
  return undefined
}

function isKnownZone(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone !== ''
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}
