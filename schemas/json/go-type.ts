import { SchemaError } from '../errors.ts'
import type { FieldDescriptor, TypeDescriptor, TypeRef } from '../types.ts'
import { formatFieldPath, formatPath } from './problems.ts'
import type { PathStep } from './problems.ts'

const scalarGoTypes = {
  string: 'string',
  enum: 'string',
  bool: 'bool',
  int32: 'int32',
  int64: 'int64',
  double: 'float64',
  bytes: '[]uint8',
  quantity: 'resource.Quantity',
  time: 'v1.Time',
  microTime: 'v1.MicroTime',
  duration: 'v1.Duration',
  intOrString: 'intstr.IntOrString',
  raw: 'runtime.RawExtension',
  fields: 'v1.FieldsV1',
} as const

/** "v1.Container" of "io.k8s.api.core.v1.Container". */
function goStruct(type: TypeDescriptor): string {
  return type.name.split('.').slice(-2).join('.')
}

function goType(type: TypeRef): string {
  if (type.is === 'message') return goStruct(type.descriptor())
  if (type.is === 'list') return `[]${goType(type.of)}`
  if (type.is === 'map') return `map[string]${goType(type.of)}`
  return scalarGoTypes[type.is]
}

/** The Go type of a field's value, or of the items `level` lists and maps deep in it. */
function goTypeOfField(field: FieldDescriptor | undefined, type: TypeRef): string {
  if (field?.goType === undefined) return goType(type)
  let named = field.goType
  let at = field.type
  while (at !== type && (at.is === 'list' || at.is === 'map')) {
    // A named list or map ("v1.ResourceList") does not tell the type of its items.
    const item = /^(?:\[\]|map\[[^\]]*\])(.*)$/.exec(named)?.[1]
    if (item === undefined) return goType(type)
    named = item
    at = at.of
  }
  return named
}

/** Where a value of the wrong type was found. */
export interface Place {
  /** The struct whose field it belongs to; undefined for the whole object. */
  readonly owner: TypeDescriptor | undefined
  readonly field: FieldDescriptor | undefined
  readonly path: readonly PathStep[]
}

/**
 * As Go's UnmarshalTypeError reads: "json: cannot unmarshal string into Go struct field PodSpec.spec.containers
 * of type []v1.Container".
 *
 * @param found - What was there: "string", "array", "number 1.5"
 * @param wanted - The type it does not fit, or the name of one
 */
export function wrongType(found: string, wanted: TypeRef | string, place: Place): SchemaError {
  const name = typeof wanted === 'string' ? wanted : goTypeOfField(place.field, wanted)
  const target =
    place.owner === undefined
      ? 'Go value'
      : `Go struct field ${place.owner.name.slice(place.owner.name.lastIndexOf('.') + 1)}.${formatFieldPath(place.path)}`
  return new SchemaError('ERR_TYPE', `json: cannot unmarshal ${found} into ${target} of type ${name}`, {
    path: formatPath(place.path),
  })
}
