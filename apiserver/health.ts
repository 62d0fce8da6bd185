import type { ApiReply, ApiRequest } from './types.ts'

export type HealthEndpoint = 'healthz' | 'livez' | 'readyz'

export interface HealthCheck {
  readonly name: string
  /** Which of the three endpoints run it. */
  readonly on: readonly HealthEndpoint[]
  /** undefined: healthy. Else why not, for the log alone: the endpoints are open to everybody. */
  readonly problem: () => string | undefined | Promise<string | undefined>
}

const endpointPath = /^\/(healthz|livez|readyz)(?:\/(.*?))?\/?$/

/**
 * `/healthz`, `/livez`, `/readyz` with ?verbose, ?exclude=name and one path per check, byte for byte as
 * kubernetes/apiserver server/healthz/healthz.go writes them. False: not such a path.
 */
export async function serveHealth(
  options: { readonly checks: readonly HealthCheck[]; readonly onFailure: (endpoint: string, why: string) => void },
  request: ApiRequest,
  reply: ApiReply,
): Promise<boolean> {
  const match = endpointPath.exec(request.info.path)
  const endpoint = match?.[1] as HealthEndpoint | undefined
  if (endpoint === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) return false
  const on = options.checks.filter((check) => check.on.includes(endpoint))
  const say = (status: number, text: string): void =>
    reply.send(status, 'text/plain; charset=utf-8', text, { 'X-Content-Type-Options': 'nosniff' })

  const one = match?.[2] ?? ''
  if (one !== '') {
    const check = on.find(({ name }) => name === one)
    if (check === undefined) return false
    const problem = await check.problem()
    // a path of its own needs a permission of its own, so it says why
    if (problem === undefined) say(200, 'ok')
    else say(500, `internal server error: ${problem}\n`)
    return true
  }

  const excluded = new Set(request.query.getAll('exclude').filter((name) => name !== ''))
  const results = await Promise.all(
    on.map(async ({ name, problem }) => ({ name, problem: excluded.has(name) ? undefined : await problem() })),
  )
  const failed = results.filter(({ problem }) => problem !== undefined)
  let lines = ''
  for (const { name, problem } of results) {
    if (excluded.delete(name)) lines += `[+]${name} excluded: ok\n`
    else lines += problem === undefined ? `[+]${name} ok\n` : `[-]${name} failed: reason withheld\n`
  }
  if (excluded.size > 0) {
    const names = [...excluded].sort().map((name) => JSON.stringify(name))
    lines += `warn: some health checks cannot be excluded: no matches for ${names.join(',')}\n`
  }
  if (failed.length > 0) {
    options.onFailure(endpoint, failed.map(({ name, problem }) => `${name}: ${problem ?? ''}`).join('; '))
    say(500, `${lines}${endpoint} check failed\n`)
  } else say(200, request.query.has('verbose') ? `${lines}${endpoint} check passed\n` : 'ok')
  return true
}
