import { controllerNames, unknownController } from './controllers/controller-names.ts'
import { parseDuration } from './duration.ts'
import { requestTimeoutMsDefault } from './http-limits.ts'
import { isIpAddress } from './ip-address.ts'
import { logLevels, type LogLevel } from './logger.ts'

/** Everything a control plane is started with; all checked. */
export interface Settings {
  readonly dataDir: string
  readonly bindAddress: string
  /** 0 = any free one. */
  readonly securePort: number
  /** undefined = no plain HTTP; 0 = any free one. */
  readonly httpPort: number | undefined
  /** undefined = `<dataDir>/kubeconfig`. */
  readonly kubeconfig: string | undefined
  readonly replicas: 1 | 3
  /** 0 = never. */
  readonly compactionIntervalMs: number
  readonly requestTimeoutMs: number
  readonly logLevel: LogLevel
  /** As kube-controller-manager's `--controllers`, see controllers/controller-names.ts. */
  readonly controllers: readonly string[]
}

export const defaultSettings: Settings = {
  dataDir: '.trireme',
  bindAddress: '127.0.0.1',
  securePort: 6443,
  httpPort: undefined,
  kubeconfig: undefined,
  replicas: 3,
  compactionIntervalMs: 300_000,
  requestTimeoutMs: requestTimeoutMsDefault,
  logLevel: 'warn',
  controllers: ['*'],
}

/** Somebody asked for what cannot be; the message is one line and says what and why. */
export class OptionsError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'OptionsError'
  }
}

/** The command's flags as text, by their names in camel case. */
export interface Flags {
  readonly dataDir?: string
  readonly bindAddress?: string
  readonly securePort?: string
  readonly httpPort?: string
  readonly kubeconfig?: string
  readonly replicas?: string
  readonly etcdCompactionInterval?: string
  readonly requestTimeout?: string
  readonly logLevel?: string
  readonly controllers?: string
}

/** @throws OptionsError naming the first bad flag */
export function settingsOfFlags(flags: Flags): Settings {
  const own = defaultSettings
  return checkSettings(
    {
      dataDir: flags.dataDir ?? own.dataDir,
      bindAddress: flags.bindAddress ?? own.bindAddress,
      securePort: portOf('--secure-port', flags.securePort) ?? own.securePort,
      httpPort: portOf('--http-port', flags.httpPort),
      kubeconfig: flags.kubeconfig,
      replicas: replicasOf(flags.replicas) ?? own.replicas,
      compactionIntervalMs:
        durationOf('--etcd-compaction-interval', flags.etcdCompactionInterval) ?? own.compactionIntervalMs,
      requestTimeoutMs: durationOf('--request-timeout', flags.requestTimeout) ?? own.requestTimeoutMs,
      logLevel: logLevelOf(flags.logLevel) ?? own.logLevel,
      controllers: flags.controllers?.split(',').map((entry) => entry.trim()) ?? own.controllers,
    },
    'flag',
  )
}

/** What a setting is called where it was given: a flag of the command, or an option of the library. */
export type Naming = 'flag' | 'option'

const flagNames: Readonly<Record<keyof Settings, string>> = {
  dataDir: '--data-dir',
  bindAddress: '--bind-address',
  securePort: '--secure-port',
  httpPort: '--http-port',
  kubeconfig: '--kubeconfig',
  replicas: '--replicas',
  compactionIntervalMs: '--etcd-compaction-interval',
  requestTimeoutMs: '--request-timeout',
  logLevel: '--log-level',
  controllers: '--controllers',
}

export const settingName = (setting: keyof Settings, naming: Naming): string =>
  naming === 'flag' ? flagNames[setting] : setting

/**
 * Whatever a program hands over, of any type: without types to check it, a misspelt option would just have no effect.
 *
 * @throws OptionsError naming the first bad option
 */
export function settingsOfOptions(options: Readonly<Record<string, unknown>>): Settings {
  const known = Object.keys(flagNames)
  const given: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(options)) {
    if (!known.includes(name)) throw new OptionsError(`unknown option "${name}": known are ${known.join(', ')}`)
    if (value !== undefined) given[name] = value
  }
  for (const [name, type] of Object.entries(optionTypes)) {
    if (name in given && typeof given[name] !== type) throw bad(name, shown(given[name]), `a ${type}`)
  }
  const { controllers = [] } = given
  if (!Array.isArray(controllers) || controllers.some((entry) => typeof entry !== 'string')) {
    throw bad('controllers', shown(controllers), 'a list of strings')
  }
  return checkSettings({ ...defaultSettings, ...given }, 'option')
}

const optionTypes: Readonly<Partial<Record<keyof Settings, 'string' | 'number'>>> = {
  dataDir: 'string',
  bindAddress: 'string',
  securePort: 'number',
  httpPort: 'number',
  kubeconfig: 'string',
  replicas: 'number',
  compactionIntervalMs: 'number',
  requestTimeoutMs: 'number',
  logLevel: 'string',
}

const shown = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? typeof value))

function checkSettings(settings: Settings, naming: Naming): Settings {
  const name = (setting: keyof Settings): string => settingName(setting, naming)
  const time = (ms: number): string => (naming === 'flag' ? `${ms}ms` : String(ms))
  const { bindAddress, securePort, httpPort, replicas, logLevel } = settings
  if (settings.dataDir === '') throw new OptionsError(`${name('dataDir')} must not be empty`)
  if (settings.kubeconfig === '') throw new OptionsError(`${name('kubeconfig')} must not be empty`)
  if (!isIpAddress(bindAddress)) throw bad(name('bindAddress'), bindAddress, 'an IP address')
  if (!isPort(securePort)) throw bad(name('securePort'), String(securePort), 'a port from 0 to 65535')
  if (httpPort !== undefined && !isPort(httpPort)) {
    throw bad(name('httpPort'), String(httpPort), 'a port from 0 to 65535')
  }
  if (httpPort !== undefined && httpPort !== 0 && httpPort === securePort) {
    const both = `${name('httpPort')} and ${name('securePort')} are both ${httpPort}`
    throw new OptionsError(`${both}: give them two, or 0 for any free one`)
  }
  if (replicas !== 1 && replicas !== 3) throw bad(name('replicas'), String(replicas), '1 or 3')
  if (!logLevels.includes(logLevel)) throw bad(name('logLevel'), logLevel, `one of ${logLevels.join(', ')}`)
  const { compactionIntervalMs: interval, requestTimeoutMs: timeout } = settings
  if (!(interval === 0 || (interval >= 1000 && interval <= dayMs * 365))) {
    throw bad(name('compactionIntervalMs'), time(interval), '0 (never) or from 1s to a year')
  }
  if (!(timeout >= 1000 && timeout <= dayMs)) throw bad(name('requestTimeoutMs'), time(timeout), 'from 1s to 24h')
  const unknown = unknownController(settings.controllers)
  if (unknown !== undefined) {
    const known = controllerNames.map((controller) => controller.name).join(', ')
    throw bad(name('controllers'), unknown, `a list of "*", names and -names; known is ${known}`)
  }
  return settings
}

const dayMs = 86_400_000
const isPort = (port: number): boolean => Number.isInteger(port) && port >= 0 && port <= 65535

const bad = (flag: string, value: string, wanted: string): OptionsError =>
  new OptionsError(`invalid value ${JSON.stringify(value)} for ${flag}: must be ${wanted}`)

function portOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,5}$/.test(text)) throw bad(flag, text, 'a port from 0 to 65535')
  return Number(text)
}

function replicasOf(text: string | undefined): 1 | 3 | undefined {
  if (text === undefined) return undefined
  if (text === '1') return 1
  if (text === '3') return 3
  throw bad('--replicas', text, '1 or 3')
}

function durationOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text)
  if (ms === undefined || ms < 0) throw bad(flag, text, 'a duration such as 30s, 5m or 1h')
  return ms
}

function logLevelOf(text: string | undefined): LogLevel | undefined {
  if (text === undefined) return undefined
  const level = logLevels.find((candidate) => candidate === text)
  if (level === undefined) throw bad('--log-level', text, `one of ${logLevels.join(', ')}`)
  return level
}
