import type { ApiReply, ApiRequest } from './types.ts'

export interface HealthCheck {
  readonly name: string
  /** Which of the three endpoints run it. */
  readonly on: readonly ('healthz' | 'livez' | 'readyz')[]
  readonly healthy: () => boolean
}

/**
 * `/healthz`, `/livez`, `/readyz` with ?verbose, ?exclude=name and one path per check
 * (kubernetes/apiserver server/healthz/healthz.go).
 */
export function serveHealth(checks: readonly HealthCheck[], request: ApiRequest, reply: ApiReply): boolean {
  const match = /^\/(healthz|livez|readyz)(?:\/(.*?))?\/?$/.exec(request.info.path)
  const endpoint = match?.[1] as HealthCheck['on'][number] | undefined
  if (endpoint === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) return false
  const on = checks.filter((check) => check.on.includes(endpoint))
  const sub = match?.[2]
  const headers = { 'X-Content-Type-Options': 'nosniff' }
  const say = (status: number, text: string): void => reply.send(status, 'text/plain; charset=utf-8', text, headers)
  if (sub !== undefined && sub !== '') {
    const check = on.find(({ name }) => name === sub)
    if (check === undefined) return false
    if (check.healthy()) say(200, 'ok')
    else say(500, `internal server error: ${sub} failed\n`)
    return true
  }
  const excluded = new Set(request.query.getAll('exclude').flatMap((names) => names.split(',')))
  const lines: string[] = []
  const failed: string[] = []
  for (const { name, healthy } of on) {
    if (excluded.delete(name)) lines.push(`[+]${name} excluded: ok`)
    else if (healthy()) lines.push(`[+]${name} ok`)
    else {
      failed.push(name)
      // why is for the log: the endpoint is open to everybody
      lines.push(`[-]${name} failed: reason withheld`)
    }
  }
  const unknown = [...excluded].filter((name) => name !== '')
  if (unknown.length > 0) {
    lines.push(
      `warn: some health checks cannot be excluded: no matches for ${unknown.map((name) => `"${name}"`).join(', ')}`,
    )
  }
  if (failed.length > 0) say(500, `${lines.join('\n')}\n${endpoint} check failed\n`)
  else if (request.query.has('verbose')) say(200, `${lines.join('\n')}\n${endpoint} check passed\n`)
  else say(200, 'ok')
  return true
}
