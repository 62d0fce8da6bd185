import { silentLogger, type Disk, type Env, type Timer } from '../../storage/index.ts'
import type { ApiReply, ApiRequest, ByteStream, RequestInfo, UserInfo } from '../../apiserver/types.ts'

export interface TestEnv extends Env {
  /** Moves the clock and runs the timers that fall due, in order. */
  advance(ms: number): void
}

/**
 * A clock and timers that move when the test says so; `soon` is the real event loop's next turn.
 *
 * @param options.tickMs - The clock also moves by this whenever it is read, so that long loops find their slice used up.
 */
export function createTestEnv(seed = 1, options: { readonly tickMs?: number } = {}): TestEnv {
  let nowMs = 0
  let order = 0
  let state = seed >>> 0
  const timers = new Map<number, { dueMs: number; periodMs: number | undefined; run: () => void }>()
  const add = (delayMs: number, periodMs: number | undefined, run: () => void): Timer => {
    const id = order++
    timers.set(id, { dueMs: nowMs + delayMs, periodMs, run })
    return { cancel: () => void timers.delete(id) }
  }
  const noDisk = new Proxy({} as Disk, {
    get: () => () => Promise.reject(new Error('this environment has no disk')),
  })
  const float = (): number => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    clock: { monotonicMs: () => (nowMs += options.tickMs ?? 0), wallMs: () => Date.UTC(2030, 0, 1) + nowMs },
    random: { float, bytes: (length) => Uint8Array.from({ length }, () => Math.floor(float() * 256)) },
    scheduler: {
      after: (delayMs, run) => add(delayMs, undefined, run),
      every: (periodMs, run) => add(periodMs, periodMs, run),
      soon: (run) => void setImmediate(run),
    },
    disk: noDisk,
    log: silentLogger,
    advance(ms) {
      const until = nowMs + ms
      for (;;) {
        let next: number | undefined
        for (const [id, timer] of timers) {
          if (timer.dueMs <= until && (next === undefined || timer.dueMs < timers.get(next)!.dueMs)) next = id
        }
        if (next === undefined) break
        const timer = timers.get(next)!
        nowMs = Math.max(nowMs, timer.dueMs)
        if (timer.periodMs === undefined) timers.delete(next)
        else timer.dueMs += timer.periodMs
        timer.run()
      }
      nowMs = until
    },
  }
}

/** Lets everything that is ready to run, run: promises and turns of the event loop. */
export async function settle(turns = 20): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Turns the event loop until the condition holds; throws when it does not within many turns. */
export async function until(condition: () => boolean, what = 'condition'): Promise<void> {
  for (let turn = 0; turn < 20_000; turn++) {
    if (condition()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error(`${what} did not come about`)
}

/** A connection in memory. By default it takes everything at once; `blocked` makes it take nothing. */
export class MemoryStream implements ByteStream {
  readonly chunks: Uint8Array[] = []
  blocked = false
  closed = false
  headSent = false
  ended = false
  destroyed = false
  bufferedBytes = 0
  bufferedBytesMost = 0
  #drains: (() => void)[] = []
  #closes: (() => void)[] = []

  write(bytes: Uint8Array): void {
    if (this.closed) throw new Error('write after the end')
    this.headSent = true
    this.chunks.push(bytes)
    if (!this.blocked) return
    this.bufferedBytes += bytes.length
    this.bufferedBytesMost = Math.max(this.bufferedBytesMost, this.bufferedBytes)
  }

  flushHead(): void {
    this.headSent = true
  }

  onDrain(run: () => void): void {
    if (this.closed || this.bufferedBytes === 0) queueMicrotask(run)
    else this.#drains.push(run)
  }

  /** The client takes what is there; `blocked` stays as it is. */
  drain(): void {
    this.bufferedBytes = 0
    const drains = this.#drains
    this.#drains = []
    for (const run of drains) run()
  }

  end(): void {
    if (this.closed) return
    this.ended = true
    this.#close()
  }

  destroy(): void {
    if (this.closed) return
    this.destroyed = true
    this.#close()
  }

  /** The client goes away. */
  disconnect(): void {
    if (!this.closed) this.#close()
  }

  onClose(run: () => void): void {
    if (this.closed) queueMicrotask(run)
    else this.#closes.push(run)
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString('utf8')
  }

  #close(): void {
    this.closed = true
    this.drain()
    const closes = this.#closes
    this.#closes = []
    for (const run of closes) run()
  }
}

export class MemoryReply implements ApiReply {
  status = 0
  contentType = ''
  headers: Readonly<Record<string, string>> = {}
  body: Uint8Array | undefined
  readonly #stream = new MemoryStream()
  #started = false

  /** Of a streamed answer; may be blocked before it starts. */
  get memory(): MemoryStream {
    return this.#stream
  }

  get streamed(): boolean {
    return this.#started && this.body === undefined
  }

  send(
    status: number,
    contentType: string,
    body: Uint8Array | string,
    headers?: Readonly<Record<string, string>>,
  ): void {
    this.#start(status, contentType, headers)
    this.body = typeof body === 'string' ? Buffer.from(body) : body
  }

  stream(status: number, contentType: string, headers?: Readonly<Record<string, string>>): ByteStream {
    this.#start(status, contentType, headers)
    return this.#stream
  }

  get text(): string {
    return this.body === undefined ? this.#stream.text : Buffer.from(this.body).toString('utf8')
  }

  #start(status: number, contentType: string, headers: Readonly<Record<string, string>> | undefined): void {
    if (this.#started) throw new Error('answered twice')
    this.#started = true
    this.status = status
    this.contentType = contentType
    this.headers = headers ?? {}
  }
}

const admin: UserInfo = { name: 'admin', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }

/** A request as handlers see it; `info` is what matters for most. */
export function createRequest(
  info: Partial<RequestInfo>,
  options: {
    readonly query?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: Uint8Array | string
    readonly signal?: AbortSignal
    readonly method?: string
    readonly warnings?: string[]
  } = {},
): ApiRequest {
  const { body = '' } = options
  return {
    info: {
      isResourceRequest: true,
      path: '',
      verb: 'get',
      apiPrefix: 'api',
      group: '',
      version: 'v1',
      namespace: '',
      resource: '',
      subresource: '',
      name: '',
      ...info,
    },
    method: options.method ?? 'GET',
    query: new URLSearchParams(options.query ?? ''),
    headers: options.headers ?? {},
    user: admin,
    signal: options.signal ?? new AbortController().signal,
    body: () => Promise.resolve(typeof body === 'string' ? Buffer.from(body) : body),
    warn: (message) => void options.warnings?.push(message),
  }
}
