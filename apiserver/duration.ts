const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

/** Milliseconds of a Go duration ("1m30s", "1.5h", "0"); undefined when it is not one. */
export function parseDuration(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1
  const body = text.replace(/^[+-]/, '')
  if (body === '0') return 0
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(body)) return undefined
  let sum = 0
  for (const [, amount, unit] of body.matchAll(/(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)) {
    sum += Number(amount) * (unitMs[unit ?? ''] ?? 0)
  }
  // Go counts nanoseconds in 64 bits
  return sum > 9.2e12 ? undefined : sign * sum
}
