#!/usr/bin/env node
import { Command, CommanderError, Option } from 'commander'
import { defaultSettings, type Flags, OptionsError, settingsOfFlags } from './options.ts'
import { packageVersion } from './version.ts'

interface UpFlags extends Flags {
  readonly output: 'text' | 'json'
}

const exitUsage = 2

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
    .allowExcessArguments(false)
    .option('--data-dir <path>', 'where everything is kept', defaultSettings.dataDir)
    .option('--bind-address <ip>', 'address of the secure port', defaultSettings.bindAddress)
    .option('--secure-port <port>', 'HTTPS port; 0 = any free one', String(defaultSettings.securePort))
    .option('--http-port <port>', 'plain HTTP as system:masters, on 127.0.0.1; 0 = any free one (default: off)')
    .option('--kubeconfig <path>', 'kubeconfig to write or merge into (default: <data-dir>/kubeconfig)')
    .option('--replicas <count>', '1 or 3, for the life of the data directory', String(defaultSettings.replicas))
    .option('--etcd-compaction-interval <duration>', 'how often old revisions are dropped; 0 = never', '5m')
    .option('--request-timeout <duration>', 'deadline of a request that is not a watch', '60s')
    .option('--log-level <level>', 'debug, info, warn, error or silent', defaultSettings.logLevel)
    .addOption(new Option('--output <format>', 'how readiness is told').choices(['text', 'json']).default('text'))
    .action((flags: UpFlags) => run(flags))
  return command
}

async function up(flags: UpFlags): Promise<void> {
  const settings = settingsOfFlags(flags)
  const { openControlPlane } = await import('./compose.ts')
  let stopAsked = false
  let askedWhileStarting: (() => void) | undefined
  const onSignal = (): void => {
    // a second signal: somebody does not want to wait
    if (stopAsked) process.exit(1)
    stopAsked = true
    askedWhileStarting?.()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  const running = await openControlPlane(settings, { writeLog: (line) => process.stderr.write(line) })
  process.stdout.write(readyText(running, flags.output))
  // pending timers keep nothing alive (see Env), and the listeners do until the signal
  if (!stopAsked) await new Promise<void>((resolve) => (askedWhileStarting = resolve))
  await running.stop()
}

function readyText(
  running: { server: string; http: string | undefined; kubeconfig: string; startMs: number },
  output: 'text' | 'json',
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
  return text.replace(/^error: /, '').split('\n')[0] ?? ''
}

async function main(): Promise<number> {
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
    return error instanceof CommanderError || error instanceof OptionsError ? exitUsage : 1
  }
}

process.exitCode = await main()
// handles that no longer matter (a client that does not close its end) must not hold the process
process.exit()
