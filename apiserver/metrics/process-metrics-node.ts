import { readdirSync } from 'node:fs'
import { gauge, type Metric } from './metrics.ts'

/** What Prometheus' client libraries say of every process. */
export function processMetrics(): readonly Metric[] {
  const startSeconds = Math.round(Date.now() - process.uptime() * 1000) / 1000
  const one = (
    name: string,
    help: string,
    read: () => number | undefined,
    type: 'counter' | 'gauge' = 'gauge',
  ): Metric =>
    gauge({ name, help, type }, () => {
      const value = read()
      return value === undefined ? [] : [{ value }]
    })
  return [
    one('process_cpu_seconds_total', 'User and system CPU time, in seconds.', cpuSeconds, 'counter'),
    one('process_resident_memory_bytes', 'Resident memory, in bytes.', () => process.memoryUsage.rss()),
    one('process_start_time_seconds', 'When the process began, in seconds since 1970.', () => startSeconds),
    one('process_open_fds', 'Open file descriptors.', openDescriptors),
    one('nodejs_heap_size_used_bytes', 'Live and not yet collected objects.', () => process.memoryUsage().heapUsed),
  ]
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** undefined where the system does not say. */
function openDescriptors(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return undefined
  }
}
