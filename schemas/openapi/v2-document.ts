import { resourceGroups } from '../resources.ts'
import { openApiV3Document } from './document.ts'
import type { SchemaNode } from './type-schema.ts'

/**
 * The OpenAPI 2.0 document of the whole API, for kubectl before 1.28, which reads it before any create, apply or
 * explain. Made from the 3.0 documents: what they say twice is said once, `oneOf` becomes its string form. It takes a
 * tenth of a second in all: a generator, so that the caller can do other work between the steps.
 */
export function* openApiV2Document(version: string): Generator<undefined, SchemaNode> {
  const definitions = new Map<string, SchemaNode>()
  const paths = new Map<string, SchemaNode>()
  for (const { group, versions } of resourceGroups()) {
    for (const one of versions) {
      const document = openApiV3Document({ group, version: one.version }, version)
      yield
      const { schemas } = document['components'] as { schemas: Record<string, SchemaNode> }
      for (const [name, schema] of Object.entries(schemas)) {
        addDefinition(definitions, name, schema)
        yield
      }
      for (const [path, item] of Object.entries(document['paths'] as Record<string, SchemaNode>)) {
        paths.set(path, pathItemOf(item))
        yield
      }
    }
  }
  const sorted = <T>(entries: ReadonlyMap<string, T>): Record<string, T> =>
    Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)))
  return {
    swagger: '2.0',
    info: { title: 'Kubernetes', version },
    paths: sorted(paths),
    definitions: sorted(definitions),
    securityDefinitions: {
      BearerToken: { description: 'Bearer Token authentication', type: 'apiKey', name: 'authorization', in: 'header' },
    },
    security: [{ BearerToken: [] }],
  }
}

const kinds = 'x-kubernetes-group-version-kind'

/** `schema` as 3.0 has it. Shared types (DeleteOptions, Status) are kinds of every group: their lists are joined. */
function addDefinition(definitions: Map<string, SchemaNode>, name: string, schema: SchemaNode): void {
  const known = definitions.get(name)
  if (known === undefined) {
    definitions.set(name, definitionOf(schema))
    return
  }
  const joined = [...((known[kinds] as object[] | undefined) ?? []), ...((schema[kinds] as object[] | undefined) ?? [])]
  const byText = new Map(joined.map((gvk) => [JSON.stringify(gvk), gvk]))
  if (byText.size > 0) definitions.set(name, { ...known, [kinds]: [...byText.values()] })
}

function definitionOf(schema: SchemaNode): SchemaNode {
  const out: SchemaNode = {}
  for (const [keyword, value] of Object.entries(schema)) {
    switch (keyword) {
      case '$ref':
        out['$ref'] = String(value).replace('#/components/schemas/', '#/definitions/')
        break
      case 'oneOf':
        out['type'] = 'string'
        break
      case 'allOf':
        // one reference with annotations beside it: 2.0 allows them there
        Object.assign(out, definitionOf((value as SchemaNode[])[0] ?? {}))
        break
      case 'default':
        break // of no use to those who still read this form
      case 'items':
      case 'additionalProperties':
        out[keyword] = definitionOf(value as SchemaNode)
        break
      case 'properties':
        out[keyword] = Object.fromEntries(
          Object.entries(value as Record<string, SchemaNode>).map(([name, property]) => [name, definitionOf(property)]),
        )
        break
      default:
        out[keyword] = value
    }
  }
  return out
}

const methods = new Set(['get', 'put', 'post', 'delete', 'patch'])

function pathItemOf(item: SchemaNode): SchemaNode {
  return Object.fromEntries(
    Object.entries(item).map(([key, value]) => [
      key,
      methods.has(key) ? operationOf(value as SchemaNode) : (value as SchemaNode[]).map(parameterOf),
    ]),
  )
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: SchemaNode }>>
  readonly required?: boolean
  readonly description?: string
}

function operationOf(operation: SchemaNode): SchemaNode {
  const { parameters, requestBody, responses, ...rest } = operation
  const body = requestBody as Content | undefined
  const [firstBody] = Object.values(body?.content ?? {})
  const answers = Object.entries(responses as Record<string, Content>).map(([code, { description, content }]) => {
    const [first] = Object.values(content ?? {})
    return [code, { description, ...(first === undefined ? {} : { schema: definitionOf(first.schema) }) }]
  })
  return {
    ...rest,
    consumes: Object.keys(body?.content ?? { '*/*': 1 }),
    produces: ['application/json', 'application/yaml'],
    parameters: [
      ...(firstBody === undefined
        ? []
        : [
            {
              name: 'body',
              in: 'body',
              ...(body?.required ? { required: true } : {}),
              schema: definitionOf(firstBody.schema),
            },
          ]),
      ...(parameters as SchemaNode[]).map(parameterOf),
    ],
    responses: Object.fromEntries(answers) as SchemaNode,
  }
}

function parameterOf(parameter: SchemaNode): SchemaNode {
  const { schema, ...rest } = parameter
  return { ...rest, ...(schema as SchemaNode) }
}
