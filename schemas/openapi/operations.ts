import type { GVK, ResourceInfo, ServedVersion } from '../types.ts'
import type { SchemaNode } from './type-schema.ts'

const query = (name: string, type: 'string' | 'boolean' | 'integer', description: string): SchemaNode => ({
  name,
  in: 'query',
  description,
  schema: { type, uniqueItems: true },
})

const pretty = query('pretty', 'string', 'Indent the answer.')
const dryRun = query('dryRun', 'string', 'All: do everything but store the result.')
const fieldManager = query('fieldManager', 'string', 'Who changes the fields; at most 128 printable characters.')
const fieldValidation = query(
  'fieldValidation',
  'string',
  'What unknown and duplicate fields do: Ignore, Warn or Strict.',
)
const force = query('force', 'boolean', 'Take over fields that others own; only for apply.')
const listParameters: readonly SchemaNode[] = [
  query('allowWatchBookmarks', 'boolean', 'Send BOOKMARK events on a watch.'),
  query('continue', 'string', 'Token of the next page, from the page before.'),
  query('fieldSelector', 'string', 'Only objects whose fields match.'),
  query('labelSelector', 'string', 'Only objects whose labels match.'),
  query('limit', 'integer', 'Objects in one page.'),
  query('resourceVersion', 'string', 'How fresh the answer must be.'),
  query('resourceVersionMatch', 'string', 'How resourceVersion is meant: Exact or NotOlderThan.'),
  query('sendInitialEvents', 'boolean', 'Begin a watch with what is there.'),
  query('timeoutSeconds', 'integer', 'How long a list or watch may take.'),
  query('watch', 'boolean', 'Stream changes instead of answering with a list.'),
]
const deleteParameters: readonly SchemaNode[] = [
  dryRun,
  query('gracePeriodSeconds', 'integer', 'Seconds before the object goes; 0 = at once.'),
  query('ignoreStoreReadErrorWithClusterBreakingPotential', 'boolean', 'Delete even what cannot be read.'),
  query('orphanDependents', 'boolean', 'Superseded by propagationPolicy.'),
  query('propagationPolicy', 'string', 'What happens to dependents: Orphan, Background or Foreground.'),
]
const writeParameters = [dryRun, fieldManager, fieldValidation]

const inPath = (name: string, description: string): SchemaNode => ({
  name,
  in: 'path',
  description,
  required: true,
  schema: { type: 'string', uniqueItems: true },
})

const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
]

const reference = (name: string): SchemaNode => ({ $ref: `#/components/schemas/${name}` })
const meta = (name: string): string => `io.k8s.apimachinery.pkg.apis.meta.v1.${name}`

export interface TypeNames {
  /** Component name of a kind; undefined: has no schema. */
  of(gvk: GVK): string | undefined
}

/** Path items of one resource in one version, by path. */
export function resourcePaths(resource: ResourceInfo, served: ServedVersion, names: TypeNames): [string, SchemaNode][] {
  const { group, version } = served.gvk
  const base = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const within = resource.namespaced ? `${base}/namespaces/{namespace}` : base
  const scope = resource.namespaced
    ? [inPath('namespace', 'Object name and auth scope, such as for teams and projects')]
    : []
  const tag = `${group === '' ? 'core' : group.replace(/\.k8s\.io$/, '').replaceAll(/[.-]([a-z])/g, (_, letter: string) => letter.toUpperCase())}_${version}`
  const make = new OperationMaker({ tag, gvk: served.gvk, namespaced: resource.namespaced, names })
  const collection: SchemaNode = {}
  const single: SchemaNode = {}
  for (const verb of resource.verbs) {
    switch (verb) {
      case 'list':
        collection['get'] = make.operation('list', { parameters: listParameters, listed: true })
        break
      case 'create':
        collection['post'] = make.operation('post', { parameters: writeParameters, body: served.gvk, created: true })
        break
      case 'deletecollection':
        collection['delete'] = make.operation('deletecollection', {
          parameters: [...deleteParameters, ...listParameters],
          options: true,
          status: true,
        })
        break
      case 'get':
        single['get'] = make.operation('get', { parameters: [] })
        break
      case 'update':
        single['put'] = make.operation('put', { parameters: writeParameters, body: served.gvk })
        break
      case 'patch':
        single['patch'] = make.operation('patch', { parameters: [...writeParameters, force], patch: true })
        break
      case 'delete':
        single['delete'] = make.operation('delete', { parameters: deleteParameters, options: true, status: true })
        break
      default: // watch is a parameter of list
    }
  }
  const name = inPath('name', `name of the ${resource.kind}`)
  const out: [string, SchemaNode][] = []
  const add = (path: string, item: SchemaNode, parameters: readonly SchemaNode[]): void => {
    if (Object.keys(item).length > 0) out.push([path, { ...item, parameters: [...parameters, pretty] }])
  }
  add(`${within}/${resource.plural}`, collection, scope)
  add(`${within}/${resource.plural}/{name}`, single, [name, ...scope])
  if (resource.namespaced && resource.verbs.includes('list')) {
    const everywhere = { get: make.operation('list', { parameters: listParameters, listed: true, everywhere: true }) }
    add(`${base}/${resource.plural}`, everywhere, [])
  }
  for (const subresource of resource.subresources) {
    const own = subresource.gvk.group === group ? { ...subresource.gvk, version } : subresource.gvk
    const sub = new OperationMaker({ tag, gvk: own, namespaced: resource.namespaced, names, suffix: subresource.name })
    const item: SchemaNode = {}
    for (const verb of subresource.verbs) {
      if (verb === 'get') item['get'] = sub.operation('get', { parameters: [] })
      if (verb === 'create')
        item['post'] = sub.operation('post', { parameters: writeParameters, body: own, created: true })
      if (verb === 'update') item['put'] = sub.operation('put', { parameters: writeParameters, body: own })
      if (verb === 'patch')
        item['patch'] = sub.operation('patch', { parameters: [...writeParameters, force], patch: true })
      if (verb === 'delete') item['delete'] = sub.operation('delete', { parameters: [], status: true })
    }
    add(`${within}/${resource.plural}/{name}/${subresource.name}`, item, [name, ...scope])
  }
  return out
}

interface OperationShape {
  readonly parameters: readonly SchemaNode[]
  /** Kind of the request body. */
  readonly body?: GVK
  readonly patch?: boolean
  /** DeleteOptions may be the body. */
  readonly options?: boolean
  readonly listed?: boolean
  readonly everywhere?: boolean
  readonly created?: boolean
  /** Answers a Status. */
  readonly status?: boolean
}

const verbTexts: Readonly<Record<string, string>> = {
  list: 'list or watch objects of kind',
  get: 'read the specified',
  post: 'create a',
  put: 'replace the specified',
  patch: 'partially update the specified',
  delete: 'delete a',
  deletecollection: 'delete collection of',
}

const idWords: Readonly<Record<string, string>> = {
  list: 'list',
  get: 'read',
  post: 'create',
  put: 'replace',
  patch: 'patch',
  delete: 'delete',
  deletecollection: 'deleteCollection',
}

class OperationMaker {
  readonly #tag: string
  readonly #gvk: GVK
  readonly #namespaced: boolean
  readonly #names: TypeNames
  readonly #suffix: string

  constructor(options: { tag: string; gvk: GVK; namespaced: boolean; names: TypeNames; suffix?: string }) {
    this.#tag = options.tag
    this.#gvk = options.gvk
    this.#namespaced = options.namespaced
    this.#names = options.names
    this.#suffix = options.suffix ?? ''
  }

  operation(action: string, shape: OperationShape): SchemaNode {
    const kind = this.#gvk.kind
    const own = this.#names.of(this.#gvk)
    const answered = shape.status
      ? meta('Status')
      : shape.listed
        ? this.#names.of({ ...this.#gvk, kind: `${kind}List` })
        : own
    const answer = {
      description: 'OK',
      content: { 'application/json': { schema: answered === undefined ? { type: 'string' } : reference(answered) } },
    }
    const where = shape.everywhere ? 'ForAllNamespaces' : ''
    const scope = this.#namespaced && !shape.everywhere ? 'Namespaced' : ''
    const id = `${idWords[action]}${capital(this.#tag)}${scope}${kind}${capital(this.#suffix)}${where}`
    return {
      tags: [this.#tag],
      description: `${verbTexts[action]} ${kind}`,
      operationId: id.replaceAll(/[^A-Za-z0-9]/g, ''),
      parameters: shape.parameters,
      ...this.#body(shape),
      responses: {
        '200': answer,
        ...(shape.created || action === 'put' || action === 'patch'
          ? { '201': { ...answer, description: 'Created' } }
          : {}),
        ...(shape.created || action === 'delete' ? { '202': { ...answer, description: 'Accepted' } } : {}),
        '401': { description: 'Unauthorized' },
      },
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': { group: this.#gvk.group, kind, version: this.#gvk.version },
    }
  }

  #body(shape: OperationShape): SchemaNode {
    if (shape.patch) {
      const schema = reference(meta('Patch'))
      return {
        requestBody: { content: Object.fromEntries(patchTypes.map((type) => [type, { schema }])), required: true },
      }
    }
    const name = shape.options ? meta('DeleteOptions') : shape.body && this.#names.of(shape.body)
    if (name === undefined) return {}
    const content = { '*/*': { schema: reference(name) } }
    return { requestBody: shape.options ? { content } : { content, required: true } }
  }
}

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)
