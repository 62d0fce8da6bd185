/** Starts the built command as a user would and talks to it over its ports. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent, type Dispatcher, request } from 'undici'

const command = fileURLToPath(new URL('../apiserver/main.js', import.meta.url))

export interface StartOptions {
  /** Kept at stop() when given; a temporary one is removed. */
  readonly dataDir?: string
  readonly flags?: readonly string[]
  readonly nodeFlags?: readonly string[]
}

export interface ReadyLine {
  readonly server: string
  readonly http: string | null
  readonly kubeconfig: string
  readonly startMilliseconds: number
}

export interface ControlPlaneProcess extends ReadyLine {
  readonly http: string
  readonly dataDir: string
  readonly process: ChildProcess
  readonly pid: number
  /** All of standard error so far. */
  errors(): string
  /** Asks politely; resolves with the exit code. */
  stop(): Promise<number | null>
  /** kill -9. The data directory stays. */
  kill(): Promise<void>
}

/** Rejects with what the command wrote to standard error when it ends before it is ready. */
export async function startProcess(options: StartOptions = {}): Promise<ControlPlaneProcess> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'trireme-'))
  const flags = ['up', '--data-dir', dataDir, '--secure-port', '0', '--http-port', '0', '--output', 'json']
  const child = spawn(process.execPath, [...(options.nodeFlags ?? []), command, ...flags, ...(options.flags ?? [])], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  const forget = (): void => {
    if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true })
  }
  const ready = await new Promise<ReadyLine>((resolve, reject) => {
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      const line = output.split('\n').find((candidate) => candidate.startsWith('{"server"'))
      if (line !== undefined && output.includes('\n')) resolve(JSON.parse(line) as ReadyLine)
    })
    void exited.then((code) => {
      forget()
      reject(new Error(`trireme up ended with ${code} before it was ready: ${errors}`))
    })
  })
  return {
    ...ready,
    http: ready.http as string,
    dataDir,
    process: child,
    pid: child.pid as number,
    errors: () => errors,
    async stop() {
      child.kill('SIGTERM')
      const code = await exited
      forget()
      return code
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

export interface Credentials {
  readonly ca: Buffer
  readonly cert: Buffer
  readonly key: Buffer
}

/** What curlrc names: the authority to believe and the administrator's client certificate. */
export function adminCredentials(plane: { readonly dataDir: string }): Credentials {
  const settings = new Map(
    readFileSync(join(plane.dataDir, 'curlrc'), 'utf8')
      .split('\n')
      .map((line) => /^\s*([a-z]+)\s*=?\s*"?([^"]*)"?\s*$/.exec(line))
      .filter((match) => match !== null)
      .map((match) => [match[1] as string, match[2] as string]),
  )
  const read = (name: string): Buffer => readFileSync(settings.get(name) as string)
  return { ca: read('cacert'), cert: read('cert'), key: read('key') }
}

/** A client certificate dispatcher for the secure port. */
export function adminAgent(plane: { readonly dataDir: string }, options: { readonly allowH2?: boolean } = {}): Agent {
  return new Agent({
    // However crowded the machine: a handshake takes as long as it takes.
    connect: { ...adminCredentials(plane), allowH2: options.allowH2 ?? false, timeout: 0 },
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

export interface CallOptions {
  readonly body?: unknown
  readonly contentType?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly dispatcher?: Dispatcher
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** Parsed body; undefined when it is not JSON. */
  readonly json: KubeObject
}

/** Loose on purpose: tests look where they like. */
export interface KubeObject {
  readonly kind?: string
  readonly apiVersion?: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid: string
    readonly resourceVersion: string
    readonly continue?: string
    readonly remainingItemCount?: number
    readonly labels?: Record<string, string>
    readonly annotations?: Record<string, string>
    readonly generation?: number
    readonly deletionTimestamp?: string
    readonly creationTimestamp?: string
    readonly [field: string]: unknown
  }
  readonly items: readonly KubeObject[]
  readonly data: Record<string, string>
  readonly [field: string]: unknown
}

/** A string or bytes go as they are, anything else as JSON. */
export async function call(
  base: string,
  method: Dispatcher.HttpMethod,
  path: string,
  options: CallOptions = {},
): Promise<Answer> {
  const { body } = options
  const raw = body === undefined || typeof body === 'string' || body instanceof Uint8Array
  const answer = await request(`${base}${path}`, {
    method,
    ...(body !== undefined && { body: raw ? body : JSON.stringify(body) }),
    headers: {
      ...(body !== undefined && { 'content-type': options.contentType ?? 'application/json' }),
      ...options.headers,
    },
    ...(options.dispatcher !== undefined && { dispatcher: options.dispatcher }),
  })
  const text = await answer.body.text()
  return { status: answer.statusCode, headers: answer.headers, text, json: parseOrUndefined(text) }
}

function parseOrUndefined(text: string): KubeObject {
  try {
    return JSON.parse(text) as KubeObject
  } catch {
    return undefined as unknown as KubeObject
  }
}

export interface WatchLine {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: KubeObject & { readonly code?: number; readonly reason?: string; readonly message?: string }
}

/** Yields the events of one watch request until it ends or the signal aborts; throws on an answer other than 200. */
export async function* watch(
  base: string,
  path: string,
  options: {
    readonly signal?: AbortSignal
    readonly dispatcher?: Dispatcher
    readonly headers?: Record<string, string>
  } = {},
): AsyncGenerator<WatchLine, void, undefined> {
  const answer = await request(`${base}${path}`, {
    ...(options.signal !== undefined && { signal: options.signal }),
    ...(options.dispatcher !== undefined && { dispatcher: options.dispatcher }),
    ...(options.headers !== undefined && { headers: options.headers }),
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  if (answer.statusCode !== 200) throw new Error(`watch ${path}: ${answer.statusCode} ${await answer.body.text()}`)
  let rest = ''
  try {
    for await (const chunk of answer.body.setEncoding('utf8') as AsyncIterable<string>) {
      rest += chunk
      const lines = rest.split('\n')
      rest = lines.pop() as string
      for (const line of lines) if (line !== '') yield JSON.parse(line) as WatchLine
    }
  } catch (error) {
    if (options.signal?.aborted !== true) throw error
  }
}

export const configMap = (
  name: string,
  data: Record<string, string> = {},
): { readonly metadata: { readonly name: string }; readonly [field: string]: unknown } => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
})
