import type { GVK, ResourceGroup, ResourceInfo } from '../../schemas/index.ts'
import { namedGroups, type ServedApi } from './legacy-discovery.ts'

export type AggregatedVersion = 'v2' | 'v2beta1'

/** `/api` (the core group) or `/apis` (all others) as one APIGroupDiscoveryList (KEP-3352). */
export function apiGroupDiscoveryList(api: ServedApi, prefix: 'api' | 'apis', as: AggregatedVersion): object {
  const groups = prefix === 'api' ? api.groups.filter(({ group }) => group === '') : namedGroups(api)
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${as}`,
    metadata: {},
    items: groups.map((group) => groupDiscovery(group, api.resources)),
  }
}

function groupDiscovery({ group, versions }: ResourceGroup, resources: readonly ResourceInfo[]): object {
  const own = resources.filter((resource) => resource.group === group).sort((a, b) => (a.plural < b.plural ? -1 : 1))
  return {
    metadata: group === '' ? {} : { name: group },
    versions: versions.map(({ version }) => ({
      version,
      resources: own.flatMap((resource) => resourceDiscovery(resource, version)),
      freshness: 'Current',
    })),
  }
}

function resourceDiscovery(resource: ResourceInfo, version: string): object[] {
  const served = resource.served.find(({ gvk }) => gvk.version === version)
  if (served === undefined) return []
  const subresources = [...resource.subresources].sort((a, b) => (a.name < b.name ? -1 : 1))
  return [
    {
      resource: resource.plural,
      responseKind: responseKind(served.gvk, resource),
      scope: resource.namespaced ? 'Namespaced' : 'Cluster',
      singularResource: resource.singular,
      verbs: resource.verbs,
      ...(resource.shortNames.length > 0 ? { shortNames: resource.shortNames } : {}),
      ...(resource.categories.length > 0 ? { categories: resource.categories } : {}),
      ...(subresources.length > 0
        ? {
            subresources: subresources.map(({ name, gvk, verbs }) => ({
              subresource: name,
              responseKind: responseKind(gvk, resource),
              verbs,
            })),
          }
        : {}),
    },
  ]
}

/** Empty where it is the resource's own group version, as in the legacy list (kubernetes api/discovery/aggregated_v2.json). */
function responseKind(gvk: GVK, resource: ResourceInfo): object {
  if (gvk.group === resource.group) return { group: '', version: '', kind: gvk.kind }
  return { group: gvk.group, version: gvk.version, kind: gvk.kind }
}
