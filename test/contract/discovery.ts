/** What a server says it serves: both discovery forms, read as a client reads them, and held against each other. */
import assert from 'node:assert/strict'
import { call } from '../control-plane.ts'

export interface ServedKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

export interface ServedResource extends ServedKind {
  readonly plural: string
  readonly singular: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly (ServedKind & { readonly name: string; readonly verbs: readonly string[] })[]
}

interface LegacyEntry {
  readonly name: string
  readonly singularName: string
  readonly namespaced: boolean
  readonly group?: string
  readonly version?: string
  readonly kind: string
  readonly verbs: readonly string[]
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly storageVersionHash?: string
}

interface AggregatedKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

interface AggregatedEntry {
  readonly resource: string
  readonly responseKind: AggregatedKind
  readonly scope: 'Namespaced' | 'Cluster'
  readonly singularResource: string
  readonly verbs: readonly string[]
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly subresources?: readonly {
    readonly subresource: string
    readonly responseKind: AggregatedKind
    readonly verbs: readonly string[]
  }[]
}

interface AggregatedGroup {
  readonly metadata: { readonly name?: string }
  readonly versions: readonly {
    readonly version: string
    readonly freshness: string
    readonly resources: readonly AggregatedEntry[]
  }[]
}

export const groupVersionOf = ({ group, version }: { readonly group: string; readonly version: string }): string =>
  group === '' ? version : `${group}/${version}`

/** "apps/v1 deployments": names a resource in test output. */
export const titleOf = (resource: ServedResource): string => `${groupVersionOf(resource)} ${resource.plural}`

/** What manifests and errors of a resource go by: "/pods", "apps/deployments". */
export const keyOf = (resource: { readonly group: string; readonly plural: string }): string =>
  `${resource.group}/${resource.plural}`

const byTitle = (a: ServedResource, b: ServedResource): number => (titleOf(a) < titleOf(b) ? -1 : 1)

/** `/api`, `/apis` and every group version below: one request each, as clients before aggregated discovery do. */
export async function legacyDiscovery(base: string): Promise<readonly ServedResource[]> {
  const core = (await answer(base, '/api')) as { readonly versions: readonly string[] }
  const named = (await answer(base, '/apis')) as {
    readonly groups: readonly {
      readonly name: string
      readonly versions: readonly { readonly groupVersion: string; readonly version: string }[]
      readonly preferredVersion: { readonly version: string }
    }[]
  }
  const all: ServedResource[] = []
  for (const version of core.versions) all.push(...(await resourceList(base, '', version)))
  for (const { name, versions, preferredVersion } of named.groups) {
    const group = (await answer(base, `/apis/${name}`)) as (typeof named.groups)[number]
    assert.deepEqual(group.versions, versions, `/apis/${name} and /apis list the same versions`)
    assert.equal(preferredVersion.version, versions[0]?.version)
    for (const { version, groupVersion } of versions) {
      assert.equal(groupVersion, `${name}/${version}`)
      all.push(...(await resourceList(base, name, version)))
    }
  }
  return all.sort(byTitle)
}

async function resourceList(base: string, group: string, version: string): Promise<readonly ServedResource[]> {
  const groupVersion = groupVersionOf({ group, version })
  const list = (await answer(base, `/${group === '' ? 'api' : 'apis'}/${groupVersion}`)) as {
    readonly kind: string
    readonly groupVersion: string
    readonly resources: readonly LegacyEntry[]
  }
  assert.equal(list.kind, 'APIResourceList')
  assert.equal(list.groupVersion, groupVersion)
  const kindOf = (entry: LegacyEntry): ServedKind => ({
    group: entry.group ?? group,
    version: entry.version ?? version,
    kind: entry.kind,
  })
  const main = list.resources.filter(({ name }) => !name.includes('/'))
  const parents = new Set(main.map(({ name }) => name))
  for (const { name, singularName } of list.resources.filter((entry) => entry.name.includes('/'))) {
    assert.ok(parents.has(name.slice(0, name.indexOf('/'))), `${name} has a parent`)
    assert.equal(singularName, '', name)
  }
  return main.map((entry) => {
    const stored = entry.verbs.includes('watch')
    assert.equal(entry.storageVersionHash !== undefined, stored, `${entry.name}: what is stored has a version hash`)
    if (stored) assert.equal(Buffer.from(entry.storageVersionHash as string, 'base64').length, 8, entry.name)
    assert.deepEqual(entry.verbs, [...entry.verbs].sort(), `${entry.name}: verbs are sorted`)
    return {
      ...kindOf(entry),
      plural: entry.name,
      singular: entry.singularName,
      namespaced: entry.namespaced,
      verbs: entry.verbs,
      shortNames: entry.shortNames ?? [],
      categories: entry.categories ?? [],
      subresources: list.resources
        .filter(({ name }) => name.startsWith(`${entry.name}/`))
        .map((sub) => {
          assert.equal(sub.namespaced, entry.namespaced, sub.name)
          return { ...kindOf(sub), name: sub.name.slice(entry.name.length + 1), verbs: sub.verbs }
        }),
    }
  })
}

/** The same from two requests (KEP-3352). */
export async function aggregatedDiscovery(base: string, version: 'v2' | 'v2beta1'): Promise<readonly ServedResource[]> {
  const all: ServedResource[] = []
  for (const path of ['/api', '/apis']) {
    const accept = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`
    const { status, text, json, headers } = await call(base, 'GET', path, { headers: { accept } })
    assert.equal(status, 200, text)
    assert.equal(headers['content-type'], accept)
    assert.equal(json.kind, 'APIGroupDiscoveryList')
    assert.equal(json.apiVersion, `apidiscovery.k8s.io/${version}`)
    for (const group of json.items as unknown as readonly AggregatedGroup[]) {
      for (const one of group.versions) {
        assert.equal(one.freshness, 'Current')
        all.push(...one.resources.map((entry) => fromAggregated(group.metadata.name ?? '', one.version, entry)))
      }
    }
  }
  return all.sort(byTitle)
}

/** A kind of the group version itself leaves both empty, as servers do that build this from the legacy entries. */
function fromAggregated(group: string, version: string, entry: AggregatedEntry): ServedResource {
  const kindOf = (of: AggregatedKind): ServedKind => (of.version === '' ? { group, version, kind: of.kind } : of)
  return {
    ...kindOf(entry.responseKind),
    plural: entry.resource,
    singular: entry.singularResource,
    namespaced: entry.scope === 'Namespaced',
    verbs: entry.verbs,
    shortNames: entry.shortNames ?? [],
    categories: entry.categories ?? [],
    subresources: (entry.subresources ?? []).map(({ subresource, responseKind, verbs }) => ({
      ...kindOf(responseKind),
      name: subresource,
      verbs,
    })),
  }
}

async function answer(base: string, path: string): Promise<unknown> {
  const { status, text, json } = await call(base, 'GET', path)
  assert.equal(status, 200, `${path}: ${text}`)
  return json
}
