export interface GVK {
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** Null prototype: "__proto__" is an ordinary key. Integers beyond 2^53 are bigint. Never mutated once shared. */
export type ObjectValue = { [field: string]: unknown }

export type TypeRef =
  | {
      readonly is:
        | 'string'
        | 'bool'
        | 'int32'
        | 'int64'
        | 'double'
        | 'bytes'
        | 'quantity'
        | 'time'
        | 'microTime'
        | 'duration'
        | 'intOrString'
        /** RawExtension, JSON: any JSON value, kept as it came. */
        | 'raw'
        /** FieldsV1: a JSON object. */
        | 'fields'
    }
  | { readonly is: 'enum'; readonly values: readonly string[] }
  /** Lazy: types recurse. */
  | { readonly is: 'message'; readonly descriptor: () => TypeDescriptor }
  | { readonly is: 'list' | 'map'; readonly of: TypeRef; readonly nullableItems?: boolean }

export interface FieldDescriptor {
  readonly jsonName: string
  readonly protoNumber: number
  readonly type: TypeRef
  /** Go's zero-value rule when encoding: written always, left out when zero or empty, left out when absent (pointer). */
  readonly presence: 'always' | 'omitEmpty' | 'pointer'
  /** An embedded Go struct that is a nested message on the protobuf wire although flat in JSON. */
  readonly inlineMessage?: string
  readonly default?: unknown
  readonly required?: boolean
  readonly patch?: { readonly strategies: readonly ('merge' | 'replace' | 'retainKeys')[]; readonly mergeKey?: string }
  /** Server-side apply merge kind; absent = atomic. */
  readonly list?: { readonly type: 'atomic' | 'set' | 'map'; readonly keys: readonly string[] }
  /** A map, or an embedded struct, that server-side apply owns as one value. */
  readonly mapAtomic?: boolean
  /** A Go pointer that is always written: absent is `null` rather than the zero value. */
  readonly nullable?: boolean
  /** The Go type as decoding errors name it, where `type` does not tell: "v1.Protocol". */
  readonly goType?: string
  /** Served, but dropped by the strategies while this feature gate is off. */
  readonly featureGate?: string
}

export interface TypeDescriptor {
  /** As in OpenAPI: "io.k8s.api.core.v1.Pod". */
  readonly name: string
  /** Go struct order = encoding order, inline members flattened. */
  readonly fields: readonly FieldDescriptor[]
  readonly byJsonName: ReadonlyMap<string, FieldDescriptor>
  readonly preserveUnknown: boolean
  /** Server-side apply owns values of this type as one, as items of a list too. */
  readonly atomic?: boolean
}

export interface FieldProblem {
  /** "spec.containers[0].foo". */
  readonly path: string
  readonly reason: 'unknown' | 'duplicate'
  /** As the real API server says it in warnings: `unknown field "spec.foo"`, `duplicate field "spec.foo"`. */
  readonly message: string
}

/** One version of a resource as clients see it. */
export interface ServedVersion {
  readonly gvk: GVK
  readonly type: TypeDescriptor
  toStorage(object: ObjectValue): ObjectValue
  fromStorage(object: ObjectValue): ObjectValue
}

export interface ResourceInfo {
  readonly group: string
  readonly plural: string
  readonly singular: string
  readonly kind: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  /** Sorted, as discovery lists them. Create-only (virtual) resources have just "create". */
  readonly verbs: readonly string[]
  readonly subresources: readonly SubresourceInfo[]
  /** "/registry/services/specs"; undefined: not stored (reviews, bindings). */
  readonly storagePrefix: string | undefined
  readonly storageVersion: GVK
  /** In order of preference. */
  readonly served: readonly ServedVersion[]
}

export interface SubresourceInfo {
  /** "status", "scale", … */
  readonly name: string
  readonly verbs: readonly string[]
  /** The kind it takes and answers; group and version as discovery shows them. */
  readonly gvk: GVK
}

/** A group of the built-in API, in the order discovery lists them. */
export interface ResourceGroup {
  readonly group: string
  /** groupPriorityMinimum of its APIServices: higher comes first. */
  readonly priority: number
  /** In order of preference; `priority` is the versionPriority of its APIService. */
  readonly versions: readonly { readonly version: string; readonly priority: number }[]
}
