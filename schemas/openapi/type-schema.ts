import type { FieldDescriptor, TypeDescriptor, TypeRef } from '../types.ts'

/** A node of an OpenAPI 3.0 document. */
export type SchemaNode = { [keyword: string]: unknown }

const quantity = 'io.k8s.apimachinery.pkg.api.resource.Quantity'
const time = 'io.k8s.apimachinery.pkg.apis.meta.v1.Time'
const microTime = 'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime'
const duration = 'io.k8s.apimachinery.pkg.apis.meta.v1.Duration'
const fieldsV1 = 'io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1'
const intOrString = 'io.k8s.apimachinery.pkg.util.intstr.IntOrString'

/** Types that Go writes as one JSON value; clients know them by name. */
export const wellKnownSchemas: Readonly<Record<string, SchemaNode>> = {
  [quantity]: {
    description: 'An amount with an optional suffix: 500m, 1.5, 2Gi.',
    oneOf: [{ type: 'string' }, { type: 'number' }],
  },
  [time]: { description: 'RFC 3339 time with second precision.', type: 'string', format: 'date-time' },
  [microTime]: { description: 'RFC 3339 time with microsecond precision.', type: 'string', format: 'date-time' },
  [duration]: { description: 'A duration as Go writes it: 1m30s.', type: 'string' },
  [fieldsV1]: { description: 'A set of fields, as a trie of their path elements.', type: 'object' },
  [intOrString]: {
    description: 'A number, or text such as a percentage or a port name.',
    format: 'int-or-string',
    oneOf: [{ type: 'integer' }, { type: 'string' }],
  },
}

const reference = (name: string): SchemaNode => ({ $ref: `#/components/schemas/${name}` })

/** Called with every type a schema refers to, so that the document can include it. */
export type Mention = (type: TypeDescriptor | string) => void

/** The schema of a type's fields. */
export function objectSchema(type: TypeDescriptor, mention: Mention): SchemaNode {
  const required = type.fields.filter((field) => field.required === true).map(({ jsonName }) => jsonName)
  return {
    type: 'object',
    ...(required.length > 0 ? { required } : {}),
    properties: Object.fromEntries(type.fields.map((field) => [field.jsonName, fieldSchema(field, mention)])),
    ...(type.preserveUnknown ? { 'x-kubernetes-preserve-unknown-fields': true } : {}),
    ...(type.atomic === true ? { 'x-kubernetes-map-type': 'atomic' } : {}),
  }
}

function fieldSchema(field: FieldDescriptor, mention: Mention): SchemaNode {
  const schema = schemaOf(field.type, mention)
  const extra: SchemaNode = {}
  if (field.default !== undefined) extra['default'] = field.default
  else if (field.presence === 'always' && field.type.is === 'message') extra['default'] = {}
  if (field.list !== undefined) {
    extra['x-kubernetes-list-type'] = field.list.type
    if (field.list.type === 'map') extra['x-kubernetes-list-map-keys'] = field.list.keys
  }
  if (field.mapAtomic === true) extra['x-kubernetes-map-type'] = 'atomic'
  if (field.patch !== undefined) {
    extra['x-kubernetes-patch-strategy'] = field.patch.strategies.join(',')
    if (field.patch.mergeKey !== undefined) extra['x-kubernetes-patch-merge-key'] = field.patch.mergeKey
  }
  // a $ref may have no siblings in OpenAPI 3.0
  if ('$ref' in schema && Object.keys(extra).length > 0) return { allOf: [schema], ...extra }
  return { ...schema, ...extra }
}

function schemaOf(type: TypeRef, mention: Mention): SchemaNode {
  const named = (name: string): SchemaNode => {
    mention(name)
    return reference(name)
  }
  switch (type.is) {
    case 'string':
      return { type: 'string' }
    case 'bool':
      return { type: 'boolean' }
    case 'int32':
      return { type: 'integer', format: 'int32' }
    case 'int64':
      return { type: 'integer', format: 'int64' }
    case 'double':
      return { type: 'number', format: 'double' }
    case 'bytes':
      return { type: 'string', format: 'byte' }
    case 'quantity':
      return named(quantity)
    case 'time':
      return named(time)
    case 'microTime':
      return named(microTime)
    case 'duration':
      return named(duration)
    case 'intOrString':
      return named(intOrString)
    case 'fields':
      return named(fieldsV1)
    case 'raw':
      // any JSON value: a type here would make clients refuse the others
      return { 'x-kubernetes-preserve-unknown-fields': true }
    case 'enum':
      return { type: 'string', enum: type.values }
    case 'message': {
      const descriptor = type.descriptor()
      mention(descriptor)
      return reference(descriptor.name)
    }
    case 'list':
      return { type: 'array', items: schemaOf(type.of, mention) }
    case 'map':
      return { type: 'object', additionalProperties: schemaOf(type.of, mention) }
  }
}
