import { typeDescriptor, typeOf } from '../descriptors.ts'
import { resources } from '../resources.ts'
import type { GVK, TypeDescriptor } from '../types.ts'
import { resourcePaths, type TypeNames } from './operations.ts'
import { objectSchema, type SchemaNode, wellKnownSchemas } from './type-schema.ts'

const metaPackage = 'io.k8s.apimachinery.pkg.apis.meta.v1'

/**
 * The OpenAPI 3.0 document of one group version, with everything its schemas refer to (KEP-2896). Made anew on every
 * call: the caller caches.
 *
 * @param version - Of the Kubernetes release, as info.version says it.
 */
export function openApiV3Document(
  of: { readonly group: string; readonly version: string },
  version: string,
): SchemaNode {
  const served = resources()
    .filter((resource) => resource.group === of.group)
    .flatMap((resource) =>
      resource.served.filter(({ gvk }) => gvk.version === of.version).map((one) => ({ resource, served: one })),
    )
  const collected = new SchemaCollector()
  const names: TypeNames = { of: (gvk) => collected.kind(gvk) }
  const paths = served.flatMap(({ resource, served: one }) => resourcePaths(resource, one, names))
  for (const name of ['Status', 'DeleteOptions', 'WatchEvent']) collected.add(typeDescriptor(`${metaPackage}.${name}`))
  collected.addKind(typeDescriptor(`${metaPackage}.DeleteOptions`), {
    group: of.group,
    version: of.version,
    kind: 'DeleteOptions',
  })
  collected.addKind(typeDescriptor(`${metaPackage}.Status`), { group: '', version: 'v1', kind: 'Status' })
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version },
    paths: Object.fromEntries(paths.sort(([a], [b]) => (a < b ? -1 : 1))),
    components: {
      schemas: collected.schemas(),
      securitySchemes: {
        BearerToken: {
          type: 'apiKey',
          description: 'Bearer Token authentication',
          name: 'authorization',
          in: 'header',
        },
      },
    },
  }
}

/** Gathers types as they are mentioned, each once, until nothing new is mentioned. */
class SchemaCollector {
  readonly #types = new Map<string, TypeDescriptor>()
  readonly #wellKnown = new Set<string>()
  readonly #kinds = new Map<string, GVK[]>()

  /** Component name of a kind, which joins the document. */
  kind(gvk: GVK): string | undefined {
    const type = typeOf(gvk)
    if (type === undefined) return undefined
    this.addKind(type, gvk)
    return type.name
  }

  addKind(type: TypeDescriptor, gvk: GVK): void {
    this.add(type)
    const kinds = this.#kinds.get(type.name) ?? []
    const same = ({ group, version, kind }: GVK): boolean =>
      group === gvk.group && version === gvk.version && kind === gvk.kind
    if (!kinds.some(same)) this.#kinds.set(type.name, [...kinds, gvk])
  }

  add(type: TypeDescriptor): void {
    if (!this.#types.has(type.name)) this.#types.set(type.name, type)
  }

  schemas(): SchemaNode {
    const out = new Map<string, SchemaNode>()
    // types added while others are described are visited too: a Map iterates over what joins it
    for (const [name, type] of this.#types) {
      const kinds = this.#kinds.get(name)
      const schema = objectSchema(type, (mentioned) => {
        if (typeof mentioned === 'string') this.#wellKnown.add(mentioned)
        else this.add(mentioned)
      })
      out.set(name, {
        ...schema,
        ...(kinds === undefined
          ? {}
          : {
              'x-kubernetes-group-version-kind': kinds.map(({ group, version, kind }) => ({ group, kind, version })),
            }),
      })
    }
    for (const name of this.#wellKnown) {
      const schema = wellKnownSchemas[name]
      if (schema !== undefined) out.set(name, schema)
    }
    out.set(`${metaPackage}.Patch`, { description: 'A patch in the form that its content type names.', type: 'object' })
    return Object.fromEntries([...out].sort(([a], [b]) => (a < b ? -1 : 1)))
  }
}
