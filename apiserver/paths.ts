import type { Env } from '../storage/index.ts'
import type { DiscoveryPaths } from './discovery/discovery-paths.ts'
import { methodNotAllowed } from './errors.ts'
import { groupVersion, namedGroups, type ServedApi } from './discovery/legacy-discovery.ts'
import { OpenApiPaths } from './discovery/openapi-paths.ts'
import type { PathHandler } from './dispatch.ts'
import { type HealthCheck, serveHealth } from './health.ts'
import { goJson } from './status.ts'
import { versionInfo } from './version.ts'
import type { WorkTurns } from './work-turns.ts'

/** Everything that is not a resource. */
export function createPaths(options: {
  readonly checks: readonly HealthCheck[]
  readonly discovery: DiscoveryPaths
  readonly api: ServedApi
  readonly env: Env
  readonly turns: WorkTurns
  /** The text of /metrics. */
  readonly metrics: () => string
}): PathHandler {
  const openapi = new OpenApiPaths(options)
  const unhealthy = (endpoint: string, why: string): void => options.env.log.warn({ why }, `${endpoint} check failed`)
  return async (request, reply) => {
    const { path } = request.info
    if (path === '/' || path === '/index.html') {
      reply.send(200, 'application/json', `${goJson({ paths: allPaths(options) }, 2)}\n`)
      return true
    }
    if (path === '/version' || path === '/version/') {
      if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed()
      reply.send(200, 'application/json', goJson(versionInfo(), 2))
      return true
    }
    if (path === '/metrics') {
      if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed()
      reply.send(200, 'text/plain; version=0.0.4; charset=utf-8', options.metrics())
      return true
    }
    if (await serveHealth({ checks: options.checks, onFailure: unhealthy }, request, reply)) return true
    if (path.startsWith('/openapi/')) return openapi.serve(request, reply)
    return options.discovery.serve(request, reply)
  }
}

function allPaths({ api, checks }: { readonly api: ServedApi; readonly checks: readonly HealthCheck[] }): string[] {
  const groups = namedGroups(api).flatMap(({ group, versions }) => [
    `/apis/${group}`,
    ...versions.map(({ version }) => `/apis/${groupVersion(group, version)}`),
  ])
  const health = (['healthz', 'livez', 'readyz'] as const).flatMap((endpoint) => [
    `/${endpoint}`,
    ...checks.filter((check) => check.on.includes(endpoint)).map(({ name }) => `/${endpoint}/${name}`),
  ])
  return ['/api', '/api/v1', '/apis', ...groups, ...health, '/metrics', '/openapi/v2', '/openapi/v3', '/version'].sort()
}
