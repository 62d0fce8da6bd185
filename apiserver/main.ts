#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { controllerNames } from './controllers/controller-names.ts'
import { defaultSettings, type Flags, OptionsError, settingsOfFlags } from './options.ts'
import { packageVersion } from './version.ts'

type Output = 'text' | 'json'

interface UpFlags extends Flags {
  readonly output?: string
}

/** Exit codes: 0 after SIGINT or SIGTERM; 1 when the start failed or a second signal cut the stop; 2 for bad flags. */
const exitFailure = 1
const exitUsage = 2

/**
 * One Ctrl-C under `npm start` comes twice within milliseconds, from the terminal and from npm. A signal that follows so
 * closely does not cut the stop but bounds it.
 */
const sameSignalMs = 250
const hurriedStopMs = 1000
/** A start that has not ended by then is not waited for when a signal asks for the end. */
const startGraceMs = 3000

function program(run: (flags: UpFlags) => Promise<void>): Command {
  const command = new Command('trireme')
    .description('A Kubernetes API server on its own three-replica Raft store, in one process')
    .version(packageVersion(), '--version', 'print the version')
    .helpOption('--help', 'show this help')
    .helpCommand(false)
    .exitOverride()
    .showSuggestionAfterError(false)
    .showHelpAfterError(false)
    .configureOutput({ writeErr: () => {} })
  command
    .command('up')
    .description('start a control plane and serve until SIGINT or SIGTERM')
    .helpOption('--help', 'show this help')
    .exitOverride()
    .showSuggestionAfterError(false)
    .configureOutput({ writeErr: () => {} })
    .allowExcessArguments(true)
    .option('--data-dir <path>', 'where everything is kept', defaultSettings.dataDir)
    .option('--bind-address <ip>', 'address of the secure port', defaultSettings.bindAddress)
    .option('--secure-port <port>', 'HTTPS port; 0 = any free one', String(defaultSettings.securePort))
    .option('--http-port <port>', 'plain HTTP as system:masters, on 127.0.0.1; 0 = any free one (default: off)')
    .option('--kubeconfig <path>', 'kubeconfig to write or merge into (default: <data-dir>/kubeconfig)')
    .option('--replicas <count>', '1 or 3, for the life of the data directory', String(defaultSettings.replicas))
    .option('--etcd-compaction-interval <duration>', 'how often old revisions are dropped; 0 = never', '5m')
    .option('--request-timeout <duration>', 'deadline of a request that is not a watch', '60s')
    .option('--log-level <level>', 'debug, info, warn, error or silent', defaultSettings.logLevel)
    .option('--controllers <list>', controllersHelp, defaultSettings.controllers.join(','))
    .option('--output <format>', 'how readiness is told: text, or one line of json', 'text')
    .action((flags: UpFlags, { args: [stray] }: Command) => {
      if (stray === undefined) return run(flags)
      throw new OptionsError(`unexpected argument ${JSON.stringify(stray)}: up takes flags alone`)
    })
  return command
}

const controllersHelp =
  'built-in controllers to run: "*" all, "foo" that one, "-foo" not that one; ' +
  `known: ${controllerNames.map(({ name }) => name).join(', ')}; ` +
  'where a kube-controller-manager does their work, say --controllers=-namespace-controller'

async function up(flags: UpFlags): Promise<void> {
  const settings = settingsOfFlags(flags)
  const output = outputOf(flags.output)
  const { openControlPlane } = await import('./compose.ts')
  const end = new EndSignal()
  const running = await openControlPlane(settings, { naming: 'flag', writeLog: (line) => process.stderr.write(line) })
  if (!end.asked) process.stdout.write(readyText(running, output))
  end.started()
  await end.wait()
  await running.stop()
}

/** SIGINT and SIGTERM: the first asks for a stop, the second for the end at once. */
class EndSignal {
  asked = false
  #askedAtMs = 0
  #starting = true
  #wake: (() => void) | undefined

  constructor() {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => this.#onSignal())
  }

  started(): void {
    this.#starting = false
  }

  /** Resolves with the first signal. Pending timers keep nothing alive (see Env), and the listeners do until then. */
  async wait(): Promise<void> {
    if (!this.asked) await new Promise<void>((resolve) => (this.#wake = resolve))
  }

  #onSignal(): void {
    const nowMs = performance.now()
    if (!this.asked) {
      this.asked = true
      this.#askedAtMs = nowMs
      this.#wake?.()
      // nobody was told that it is ready: what a start leaves unfinished the next one picks up
      if (this.#starting) exitAfter(startGraceMs, () => this.#starting)
      return
    }
    if (nowMs - this.#askedAtMs > sameSignalMs) process.exit(exitFailure)
    exitAfter(hurriedStopMs, () => true)
  }
}

function exitAfter(delayMs: number, still: () => boolean): void {
  setTimeout(() => {
    if (still()) process.exit(exitFailure)
  }, delayMs).unref()
}

function outputOf(text: string | undefined): Output {
  if (text === undefined || text === 'text' || text === 'json') return text ?? 'text'
  throw new OptionsError(`invalid value ${JSON.stringify(text)} for --output: must be text or json`)
}

function readyText(
  running: { server: string; http: string | undefined; kubeconfig: string; startMs: number },
  output: Output,
): string {
  const { server, kubeconfig, startMs } = running
  if (output === 'json') {
    return `${JSON.stringify({ server, http: running.http ?? null, kubeconfig, startMilliseconds: startMs })}\n`
  }
  const lines = [
    `trireme ${packageVersion()} is ready after ${startMs} ms`,
    '',
    `  API server   ${server}`,
    ...(running.http === undefined ? [] : [`  plain HTTP   ${running.http}  (acts as system:masters)`]),
    `  kubeconfig   ${kubeconfig}`,
    '',
    `  kubectl --kubeconfig ${shellWord(kubeconfig)} --context trireme get namespaces`,
    '',
  ]
  return `${lines.join('\n')}\n`
}

const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`

/** One line: errors come with several, and what matters stands first. */
function oneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  const line = text.replace(/^error: /, '').split('\n')[0] ?? ''
  if (error instanceof OptionsError || !(error instanceof CommanderError)) return line
  return `${line}, try \`trireme ${error.code === 'commander.unknownCommand' ? '' : 'up '}--help\``
}

async function main(): Promise<number> {
  // whoever read our output may be gone (`trireme up | head -1`): that is no reason to stop serving
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  const command = program(up)
  if (process.argv.length <= 2) {
    process.stderr.write('trireme: no command given, try `trireme up` or `trireme --help`\n')
    return exitUsage
  }
  try {
    await command.parseAsync(process.argv)
    return 0
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0
    process.stderr.write(`trireme: ${oneLine(error)}\n`)
    return error instanceof CommanderError || error instanceof OptionsError ? exitUsage : exitFailure
  }
}

process.exitCode = await main()
// handles that no longer matter (a client that does not close its end) must not hold the process
process.exit()
