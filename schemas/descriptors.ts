import assert from 'node:assert/strict'
import { readData } from './data-node.ts'
import { packages } from './packages.ts'
import type { Package } from './packages.ts'
import type { FieldDescriptor, GVK, TypeDescriptor, TypeRef } from './types.ts'

/** `[jsonName, protoNumber, type, presence, extras?]`: see data/README.md. */
type FieldRow = readonly [string, number, string, 'a' | 'o' | 'p' | 'n', FieldExtras?]

interface FieldExtras {
  readonly d?: unknown
  readonly r?: 1
  readonly ps?: readonly ('merge' | 'replace' | 'retainKeys')[]
  readonly pk?: string
  readonly lt?: 'set' | 'map'
  readonly lk?: readonly string[]
  readonly ma?: 1
  readonly in?: string
  readonly g?: string
  readonly go?: string
}

interface PackageFile {
  readonly package: string
  readonly enums: Readonly<Record<string, readonly string[]>>
  readonly types: Readonly<Record<string, { readonly atomic?: 1; readonly fields: readonly FieldRow[] }>>
}

const meta: Package = packageNamed('io.k8s.apimachinery.pkg.apis.meta.v1')

// Immutable data of the package, read when first asked for: one file per group version, one descriptor per type.
const files = new Map<string, PackageFile>()
const descriptors = new Map<string, TypeDescriptor>()

function packageNamed(name: string): Package {
  const found = packages.find((candidate) => candidate.name === name)
  assert(found !== undefined, `no such package of types: ${name}`)
  return found
}

function fileOf(source: Package): PackageFile {
  let file = files.get(source.name)
  if (file === undefined) {
    file = readData(source.file) as PackageFile
    assert(file.package === source.name, `${source.file} holds ${file.package}`)
    files.set(source.name, file)
  }
  return file
}

function split(name: string): { readonly source: Package; readonly local: string } {
  const dot = name.lastIndexOf('.')
  return { source: packageNamed(name.slice(0, dot)), local: name.slice(dot + 1) }
}

/**
 * The descriptor of a built-in type by its OpenAPI name ("io.k8s.api.core.v1.Pod"). The same object each time.
 *
 * @throws AssertionError when there is no such type: names come from code and data, not from clients.
 */
export function typeDescriptor(name: string): TypeDescriptor {
  let descriptor = descriptors.get(name)
  if (descriptor === undefined) {
    const { source, local } = split(name)
    descriptor = build(source, local)
    descriptors.set(name, descriptor)
  }
  return descriptor
}

/**
 * The type behind a group, version and kind. Kinds of the API machinery (Status, DeleteOptions, Table, …) are
 * found under every group version, as the real server registers them.
 */
export function typeOf(gvk: GVK): TypeDescriptor | undefined {
  const source = packages.find((candidate) => candidate.group === gvk.group && candidate.version === gvk.version)
  if (source !== undefined && Object.hasOwn(fileOf(source).types, gvk.kind)) {
    return typeDescriptor(`${source.name}.${gvk.kind}`)
  }
  if (source === undefined && gvk.group !== 'meta.k8s.io') return undefined
  return Object.hasOwn(fileOf(meta).types, gvk.kind) ? typeDescriptor(`${meta.name}.${gvk.kind}`) : undefined
}

/** OpenAPI names of all built-in types, in the order of the data. Loads every data file. */
export function typeNames(): readonly string[] {
  return packages.flatMap((source) => Object.keys(fileOf(source).types).map((local) => `${source.name}.${local}`))
}

function build(source: Package, local: string): TypeDescriptor {
  const entry = fileOf(source).types[local]
  assert(entry !== undefined, `no such type: ${source.name}.${local}`)
  const fields = entry.fields.map((row) => buildField(source, row))
  return {
    name: `${source.name}.${local}`,
    fields,
    byJsonName: new Map(fields.map((field) => [field.jsonName, field])),
    preserveUnknown: false,
    ...(entry.atomic === 1 && { atomic: true }),
  }
}

function buildField(source: Package, row: FieldRow): FieldDescriptor {
  const [jsonName, protoNumber, type, presence, extras = {}] = row
  return {
    jsonName,
    protoNumber,
    type: buildType(source, type),
    presence: presence === 'o' ? 'omitEmpty' : presence === 'p' ? 'pointer' : 'always',
    ...(presence === 'n' && { nullable: true }),
    ...(extras.in !== undefined && { inlineMessage: extras.in }),
    ...('d' in extras && { default: extras.d }),
    ...(extras.r === 1 && { required: true }),
    ...(extras.ps !== undefined && {
      patch: { strategies: extras.ps, ...(extras.pk !== undefined && { mergeKey: extras.pk }) },
    }),
    ...(extras.lt !== undefined && { list: { type: extras.lt, keys: extras.lk ?? [] } }),
    ...(extras.ma === 1 && { mapAtomic: true }),
    ...(extras.go !== undefined && { goType: extras.go }),
    ...(extras.g !== undefined && { featureGate: extras.g }),
  }
}

const scalarTypes: ReadonlyMap<string, TypeRef> = new Map(
  (
    [
      'string',
      'bool',
      'int32',
      'int64',
      'double',
      'bytes',
      'quantity',
      'time',
      'microTime',
      'duration',
      'intOrString',
      'raw',
      'fields',
    ] as const
  ).map((is) => [is, { is }]),
)

function buildType(source: Package, type: string): TypeRef {
  if (type.startsWith('[]')) return { is: 'list', of: buildType(source, type.slice(2)) }
  if (type.startsWith('{}')) return { is: 'map', of: buildType(source, type.slice(2)) }
  const scalar = scalarTypes.get(type)
  if (scalar !== undefined) return scalar
  if (type.startsWith('enum:')) {
    const name = type.slice('enum:'.length)
    const at = name.includes('.') ? split(name) : { source, local: name }
    const values = fileOf(at.source).enums[at.local]
    assert(values !== undefined, `no such enumeration: ${name}`)
    return { is: 'enum', values }
  }
  const name = type.includes('.') ? type : `${source.name}.${type}`
  return { is: 'message', descriptor: () => typeDescriptor(name) }
}
