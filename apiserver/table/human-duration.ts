/**
 * A duration as people read it: "7s", "5m30s", "12h", "3d4h" (apimachinery pkg/util/duration HumanDuration, same
 * steps). Up to a second in the future is clock skew; more is "<invalid>".
 */
export function humanDuration(milliseconds: number): string {
  const seconds = Math.trunc(milliseconds / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 60 * 2) return `${seconds}s`
  const minutes = Math.trunc(seconds / 60)
  if (minutes < 10) return joined(minutes, 'm', seconds % 60, 's')
  if (minutes < 60 * 3) return `${minutes}m`
  const hours = Math.trunc(minutes / 60)
  if (hours < 8) return joined(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.trunc(hours / 24)
  if (hours < 24 * 8) return joined(days, 'd', hours % 24, 'h')
  if (hours < 24 * 365 * 2) return `${days}d`
  const years = Math.trunc(days / 365)
  if (hours < 24 * 365 * 8) return joined(years, 'y', days % 365, 'd')
  return `${years}y`
}

function joined(major: number, majorUnit: string, minor: number, minorUnit: string): string {
  return minor === 0 ? `${major}${majorUnit}` : `${major}${majorUnit}${minor}${minorUnit}`
}

/** The time since an RFC 3339 timestamp; "<unknown>" without one. */
export function ageOf(timestamp: unknown, nowMs: number): string {
  if (typeof timestamp !== 'string' || timestamp === '') return '<unknown>'
  const ms = Date.parse(timestamp)
  return Number.isNaN(ms) ? '<unknown>' : humanDuration(nowMs - ms)
}
