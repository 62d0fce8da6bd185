import assert from 'node:assert/strict'
import { conversionsOf } from './conversion/index.ts'
import { readData } from './data-node.ts'
import { typeOf } from './descriptors.ts'
import type { GVK, ResourceGroup, ResourceInfo, ServedVersion, TypeDescriptor } from './types.ts'
import { lazy } from './lazy.ts'

interface ResourceRow {
  readonly group: string
  readonly plural: string
  readonly singular: string
  readonly kind: string
  readonly namespaced: boolean
  /** "*": all eight. */
  readonly verbs: readonly string[] | '*'
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly subresources?: readonly { readonly name: string; readonly verbs: readonly string[]; readonly kind: string }[]
  readonly storagePrefix?: string
  /** Served versions by preference where they are not just the group's first. */
  readonly versions?: readonly string[]
  readonly storageVersion?: string
}

interface ResourcesFile {
  readonly groups: readonly ResourceGroup[]
  readonly resources: readonly ResourceRow[]
}

const allVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const

interface Loaded {
  readonly groups: readonly ResourceGroup[]
  readonly resources: readonly ResourceInfo[]
}

const load = lazy((): Loaded => {
  const file = readData('resources.json') as ResourcesFile
  const groups = new Map(file.groups.map((group) => [group.group, group]))
  return { groups: file.groups, resources: file.resources.map((row) => resourceOf(row, groups.get(row.group))) }
})

/** Every built-in resource that is served by default, groups in order of preference, resources by name. */
export function resources(): readonly ResourceInfo[] {
  return load().resources
}

/** The built-in groups in the order of `/apis`; "" (of `/api`) is first. */
export function resourceGroups(): readonly ResourceGroup[] {
  return load().groups
}

function resourceOf(row: ResourceRow, group: ResourceGroup | undefined): ResourceInfo {
  assert(group !== undefined, `${row.plural}: no such group: ${row.group}`)
  const versions = row.versions ?? group.versions.slice(0, 1).map(({ version }) => version)
  const own = versions.map((version) => ({ group: row.group, version, kind: row.kind }))
  const first = own[0]
  assert(first !== undefined, `${row.plural}: no version`)
  const storageVersion = row.storageVersion === undefined ? first : parseGvk(row.storageVersion, first)
  return {
    group: row.group,
    plural: row.plural,
    singular: row.singular,
    kind: row.kind,
    shortNames: row.shortNames ?? [],
    categories: row.categories ?? [],
    namespaced: row.namespaced,
    verbs: row.verbs === '*' ? allVerbs : row.verbs,
    subresources: (row.subresources ?? []).map((subresource) => ({
      name: subresource.name,
      verbs: subresource.verbs,
      gvk: parseGvk(subresource.kind, first),
    })),
    storagePrefix: row.storagePrefix,
    storageVersion,
    served: own.map((gvk) => servedVersion(gvk, storageVersion)),
  }
}

function servedVersion(gvk: GVK, storageVersion: GVK): ServedVersion {
  const conversions = conversionsOf(gvk, storageVersion)
  return {
    gvk,
    // A getter: the data of a group is not read before one of its objects is.
    get type(): TypeDescriptor {
      const type = typeOf(gvk)
      assert(type !== undefined, `no type for ${gvk.group}/${gvk.version} ${gvk.kind}`)
      return type
    },
    toStorage: (object) => conversions.toStorage(object),
    fromStorage: (object) => conversions.fromStorage(object),
  }
}

/** "Pod" (in the group version of `base`), "v1 Event", "autoscaling/v1 Scale". */
function parseGvk(text: string, base: GVK): GVK {
  const [groupVersion, kind] = text.split(' ')
  if (groupVersion === undefined || kind === undefined) return { ...base, kind: text }
  const slash = groupVersion.indexOf('/')
  return { group: slash < 0 ? '' : groupVersion.slice(0, slash), version: groupVersion.slice(slash + 1), kind }
}
