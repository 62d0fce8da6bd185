import { createHash } from 'node:crypto'
import type { GVK, ResourceGroup, ResourceInfo } from '../../schemas/index.ts'

/** What discovery is made from: groups in the order clients see them, and everything served. */
export interface ServedApi {
  readonly groups: readonly ResourceGroup[]
  readonly resources: readonly ResourceInfo[]
}

/** The group every client finds first (kube-aggregator apiserver/handler_apis.go). */
const firstGroup = 'apiregistration.k8s.io'

/** Named groups, "" left out. */
export function namedGroups(api: ServedApi): readonly ResourceGroup[] {
  const named = api.groups.filter(({ group }) => group !== '')
  return [...named.filter(({ group }) => group === firstGroup), ...named.filter(({ group }) => group !== firstGroup)]
}

export const groupVersion = (group: string, version: string): string => (group === '' ? version : `${group}/${version}`)

/** `/api`. */
export function apiVersions(serverAddress: string): object {
  return {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
  }
}

/** `/apis`. */
export function apiGroupList(api: ServedApi): object {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: namedGroups(api).map(groupFields) }
}

/** `/apis/<group>`; undefined: no such group. */
export function apiGroup(api: ServedApi, group: string): object | undefined {
  const found = namedGroups(api).find((candidate) => candidate.group === group)
  return found && { kind: 'APIGroup', apiVersion: 'v1', ...groupFields(found) }
}

function groupFields({ group, versions }: ResourceGroup): object {
  const entries = versions.map(({ version }) => ({ groupVersion: groupVersion(group, version), version }))
  return { name: group, versions: entries, preferredVersion: entries[0] }
}

/** `/api/v1`, `/apis/<group>/<version>`; undefined: not served. */
export function apiResourceList(api: ServedApi, group: string, version: string): object | undefined {
  const known = api.groups.some(
    (entry) => entry.group === group && entry.versions.some((one) => one.version === version),
  )
  if (!known) return undefined
  const entries = api.resources
    .filter((resource) => resource.group === group)
    .flatMap((resource) => resourceEntries(resource, version))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  return {
    kind: 'APIResourceList',
    // the core group's list is older than type meta (kubernetes/apiserver endpoints/discovery/version.go)
    ...(group === '' ? {} : { apiVersion: 'v1' }),
    groupVersion: groupVersion(group, version),
    resources: entries,
  }
}

function resourceEntries(resource: ResourceInfo, version: string): { readonly name: string }[] {
  const served = resource.served.find(({ gvk }) => gvk.version === version)
  if (served === undefined) return []
  const own = {
    name: resource.plural,
    singularName: resource.singular,
    namespaced: resource.namespaced,
    ...foreignVersion(served.gvk, resource.group, version),
    kind: resource.kind,
    verbs: resource.verbs,
    ...(resource.shortNames.length > 0 ? { shortNames: resource.shortNames } : {}),
    ...(resource.categories.length > 0 ? { categories: resource.categories } : {}),
    ...(resource.storagePrefix === undefined
      ? {}
      : { storageVersionHash: storageVersionHash(resource.storageVersion) }),
  }
  const subresources = resource.subresources.map((subresource) => ({
    name: `${resource.plural}/${subresource.name}`,
    singularName: '',
    namespaced: resource.namespaced,
    ...foreignVersion(subresource.gvk, resource.group, version),
    kind: subresource.gvk.kind,
    verbs: subresource.verbs,
  }))
  return [own, ...subresources]
}

/** Group and version stand there only where they differ from the list's. */
function foreignVersion(gvk: GVK, group: string, version: string): object {
  if (gvk.group === group && (gvk.version === version || gvk.group === '')) return {}
  return gvk.group === group ? {} : { group: gvk.group, version: gvk.version }
}

/** Eight bytes of SHA-256, as kubernetes/apiserver endpoints/discovery/storageversionhash.go. */
export function storageVersionHash({ group, version, kind }: GVK): string {
  return createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
}
