import type { Logger } from '../storage/index.ts'

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** One JSON object a line: time, level, message, then the fields. `write` gets whole lines. */
export function createLogger(options: {
  readonly level: LogLevel
  readonly wallMs: () => number
  readonly write: (line: string) => void
}): Logger {
  const least = logLevels.indexOf(options.level)
  const make = (bound: object): Logger => {
    const at = (level: LogLevel) => (fields: object, message: string) => {
      if (logLevels.indexOf(level) < least) return
      const entry = { time: new Date(options.wallMs()).toISOString(), level, message, ...bound, ...fields }
      options.write(`${JSON.stringify(entry, plain)}\n`)
    }
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: (fields) => make({ ...bound, ...fields }),
    }
  }
  return make({})
}

/** What JSON cannot say by itself. */
function plain(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString(16)
  if (value instanceof Error) return { name: value.name, message: value.message, ...codeOf(value), stack: value.stack }
  return value
}

const codeOf = (error: Error): object => ('code' in error ? { code: error.code } : {})
