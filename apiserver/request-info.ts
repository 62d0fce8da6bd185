import { pathSegmentsMax } from './http-limits.ts'
import type { RequestInfo, Verb } from './types.ts'

/** A request target taken apart. `segments` are decoded one by one, so an encoded slash never makes a new segment. */
export interface RequestTarget {
  /** Decoded path, for authorization and messages; always starts with "/". */
  readonly path: string
  readonly segments: readonly string[]
  readonly query: URLSearchParams
}

/** undefined: not decodable (bad percent-encoding, invalid UTF-8, NUL) or longer than any API path. */
export function parseTarget(target: string): RequestTarget | undefined {
  const mark = target.indexOf('?')
  let rawPath = mark < 0 ? target : target.slice(0, mark)
  // absolute-form (RFC 9112 3.2.2): a proxy's client may send the whole URL
  const absolute = /^https?:\/\/[^/]*/i.exec(rawPath)
  if (absolute) rawPath = rawPath.slice(absolute[0].length) || '/'
  const query = new URLSearchParams(mark < 0 ? '' : target.slice(mark + 1))
  const segments: string[] = []
  for (const raw of rawPath.split('/')) {
    if (raw === '') continue
    if (segments.length === pathSegmentsMax) return undefined
    try {
      segments.push(raw.includes('%') ? decodeURIComponent(raw) : raw)
    } catch {
      return undefined // malformed escape or not UTF-8
    }
    if (segments.at(-1)?.includes('\0')) return undefined
  }
  const trailing = rawPath.length > 1 && rawPath.endsWith('/') && segments.length > 0 ? '/' : ''
  return { path: `/${segments.join('/')}${trailing}`, segments, query }
}

const subresourcesOfNamespace = new Set(['status', 'finalize'])
const longRunningSubresources = new Set(['attach', 'exec', 'proxy', 'log', 'portforward'])

/** Watches and connections: no deadline, not counted as in flight (kubernetes/apiserver server/config.go). */
export function isLongRunning(info: RequestInfo): boolean {
  return info.verb === 'watch' || (info.isResourceRequest && longRunningSubresources.has(info.subresource))
}

export function isMutating(info: RequestInfo): boolean {
  return info.verb !== 'get' && info.verb !== 'list' && info.verb !== 'watch' && info.verb !== 'head'
}

/**
 * What method and path ask for (kubernetes/apiserver endpoints/request/requestinfo.go):
 *
 *     GET    /api/v1/namespaces/a/pods/p/log   get pods/log p in a
 *     GET    /apis/apps/v1/deployments?watch=1 watch deployments
 *     GET    /api/v1/watch/namespaces/a/pods   watch pods in a (legacy prefix)
 *     PUT    /api/v1/namespaces/a/finalize     update namespaces/finalize a in a
 *     DELETE /api/v1/namespaces/a/pods         deletecollection pods in a
 */
export function requestInfo(method: string, target: RequestTarget): RequestInfo {
  const { path, segments, query } = target
  const other: RequestInfo = {
    isResourceRequest: false,
    path,
    verb: method.toLowerCase() as Verb,
    apiPrefix: '',
    group: '',
    version: '',
    namespace: '',
    resource: '',
    subresource: '',
    name: '',
  }
  const apiPrefix = segments[0]
  if (apiPrefix !== 'api' && apiPrefix !== 'apis') return other
  const grouped = apiPrefix === 'apis'
  let rest = segments.slice(grouped ? 3 : 2)
  if (rest.length === 0) return { ...other, apiPrefix, group: grouped ? (segments[1] ?? '') : '' }
  const group = grouped ? (segments[1] ?? '') : ''
  const version = segments[grouped ? 2 : 1] ?? ''

  let verb = verbOf(method)
  if (verb === undefined) return { ...other, apiPrefix, group, version }
  let legacyWatch = false
  if (rest[0] === 'watch' && rest.length > 1) {
    legacyWatch = true
    verb = 'watch'
    rest = rest.slice(1)
  } else if (rest[0] === 'proxy' && rest.length > 1) {
    return { ...other, apiPrefix, group, version } // gone since 1.10
  }

  let namespace = ''
  if (rest[0] === 'namespaces' && rest.length > 1) {
    namespace = rest[1] ?? ''
    // /namespaces/a/pods is about pods; /namespaces/a and /namespaces/a/status are about the namespace itself
    if (rest.length > 2 && !subresourcesOfNamespace.has(rest[2] ?? '')) rest = rest.slice(2)
  }
  const resource = rest[0] ?? ''
  let name = rest[1] ?? ''
  const subresource = rest[2] ?? ''

  if (name === '' && verb === 'get' && !legacyWatch) verb = 'list'
  if (name === '' && verb === 'delete') verb = 'deletecollection'
  if (verb === 'list' || verb === 'get') {
    if (method === 'GET' && subresource === '' && isTrue(query.get('watch'))) verb = 'watch'
  }
  if (name === '' && (verb === 'list' || verb === 'watch' || verb === 'deletecollection')) {
    name = nameOfFieldSelector(query.get('fieldSelector'))
  }
  return { isResourceRequest: true, path, verb, apiPrefix, group, version, namespace, resource, subresource, name }
}

/** Segments behind resource, name and subresource ("log" of …/proxy/log): only proxies have them. */
export function hasTrailingPath(info: RequestInfo, target: RequestTarget): boolean {
  const lead = info.apiPrefix === 'apis' ? 3 : 2
  let rest = target.segments.slice(lead)
  if (rest[0] === 'watch' && rest.length > 1) rest = rest.slice(1)
  if (rest[0] === 'namespaces' && rest.length > 2 && !subresourcesOfNamespace.has(rest[2] ?? '')) rest = rest.slice(2)
  return rest.length > 3
}

/** The name stands in the path, not only in a field selector. */
export function namedByPath(info: RequestInfo, target: RequestTarget): boolean {
  let rest = target.segments.slice(info.apiPrefix === 'apis' ? 3 : 2)
  if (rest[0] === 'watch' && rest.length > 1) rest = rest.slice(1)
  if (rest[0] === 'namespaces' && rest.length > 2 && !subresourcesOfNamespace.has(rest[2] ?? '')) rest = rest.slice(2)
  return rest.length > 1
}

function verbOf(method: string): Verb | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return 'get'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return 'delete'
    default:
      return undefined
  }
}

/** Conversion of query booleans (apimachinery runtime/converter.go): absent, "0" and "false" are false, all else true. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

/** `metadata.name=x` alone among requirements on the name: so that RBAC's resourceNames work on collections. */
function nameOfFieldSelector(selector: string | null): string {
  if (selector === null || !selector.includes('metadata.name')) return ''
  for (const part of selector.split(',')) {
    const match = /^\s*metadata\.name\s*={1,2}\s*([^=!\\\s]+)\s*$/.exec(part)
    if (match?.[1] !== undefined) return match[1]
  }
  return ''
}
