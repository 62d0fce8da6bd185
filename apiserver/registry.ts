import type { ResourceInfo } from '../schemas/index.ts'
import type { RequestScope, ResourceRegistry, Strategy } from './types.ts'

interface Entry {
  readonly resource: ResourceInfo
  readonly strategy: Strategy
}

/** The built-in resources, found by what a path names or by where objects are stored. */
export function createResourceRegistry(options: {
  readonly resources: readonly ResourceInfo[]
  readonly strategyFor: (resource: ResourceInfo) => Strategy
}): ResourceRegistry {
  const entries: readonly Entry[] = options.resources.map((resource) => ({
    resource,
    strategy: options.strategyFor(resource),
  }))
  const scopes = new Map<string, RequestScope>()
  const prefixes = new Map<string, Entry>()
  let segmentsMost = 0
  for (const { resource, strategy } of entries) {
    for (const served of resource.served) {
      const name = scopeName(resource.group, served.gvk.version, resource.plural)
      scopes.set(scopeName(name, ''), { resource, served, strategy, subresource: undefined })
      for (const subresource of resource.subresources) {
        scopes.set(scopeName(name, subresource.name), { resource, served, strategy, subresource })
      }
    }
    if (resource.storagePrefix === undefined) continue
    // core/v1 and events.k8s.io/v1 Events share their keys: the first one's storage version is how they are stored
    if (!prefixes.has(resource.storagePrefix)) prefixes.set(resource.storagePrefix, { resource, strategy })
    segmentsMost = Math.max(segmentsMost, resource.storagePrefix.split('/').length)
  }
  return {
    find: (group, version, plural, subresource) =>
      scopes.get(scopeName(scopeName(group, version, plural), subresource)),
    all: () => entries,
    byKey(key) {
      // "/registry/services/specs/ns/name" is longer than "/registry/services/…": the longest prefix that is one
      let end = 0
      let found: Entry | undefined
      for (let segments = 1; segments <= segmentsMost; segments += 1) {
        end = key.indexOf('/', end + 1)
        if (end < 0) break
        found = prefixes.get(key.slice(0, end)) ?? found
      }
      return found
    },
  }
}

/** A space stands in no path segment that names anything. */
const scopeName = (...parts: readonly string[]): string => parts.join(' ')
