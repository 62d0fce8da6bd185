/** Preloaded into the server by benchmarks (`node --import`): on SIGUSR2 writes the event-loop delay since the last one. */
import { appendFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const file = process.env.TRIREME_PROBE_FILE
if (file !== undefined) {
  const histogram = monitorEventLoopDelay({ resolution: 1 })
  histogram.enable()
  process.on('SIGUSR2', () => {
    const milliseconds = (nanoseconds: number): number => Math.round(nanoseconds / 1e4) / 100
    const line = {
      p50: milliseconds(histogram.percentile(50)),
      p99: milliseconds(histogram.percentile(99)),
      max: milliseconds(histogram.max),
    }
    histogram.reset()
    appendFileSync(file, `${JSON.stringify(line)}\n`)
  })
}
