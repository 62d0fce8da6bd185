/** One resource under test: its paths, an object of its kind, and calls whose failures say what was asked. */
import assert from 'node:assert/strict'
import { type Dispatcher, request } from 'undici'
import { type Answer, call, type CallOptions, type KubeObject } from '../control-plane.ts'
import { another, type Manifest } from '../testdata/manifests.ts'
import { groupVersionOf, type ServedResource } from './discovery.ts'

export const jsonPatch = 'application/json-patch+json'
export const mergePatch = 'application/merge-patch+json'
export const strategicPatch = 'application/strategic-merge-patch+json'

/** Where a resource's objects are made; cluster-scoped ones are told apart by name. */
export const namespaceOf = (resource: ServedResource): string =>
  `every-${resource.group.split('.')[0] || 'core'}-${resource.version}-${resource.plural}`.slice(0, 63)

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED'
  readonly resourceVersion: string
}

export class Subject {
  readonly base: string
  readonly resource: ServedResource
  readonly namespace: string
  /** The collection that objects are made in: of one namespace where the kind is namespaced. */
  readonly collection: string
  /** The collection over all namespaces; the same one for cluster-scoped kinds. */
  readonly everywhere: string
  readonly manifest: Manifest
  readonly path: string
  readonly name: string
  /** As last answered. */
  object: KubeObject
  /** Revision from which a watch sees everything that is done to the object. */
  before = ''
  readonly changes: Change[] = []
  readonly #template: Manifest

  constructor(base: string, resource: ServedResource, manifest: Manifest) {
    this.base = base
    this.resource = resource
    this.namespace = resource.namespaced ? namespaceOf(resource) : ''
    const root = `/${resource.group === '' ? 'api' : 'apis'}/${groupVersionOf(resource)}`
    this.everywhere = `${root}/${resource.plural}`
    this.collection = resource.namespaced ? `${root}/namespaces/${this.namespace}/${resource.plural}` : this.everywhere
    this.#template = { ...manifest, apiVersion: groupVersionOf(resource) }
    this.manifest = this.another('a')
    this.name = this.manifest.metadata.name
    this.path = `${this.collection}/${this.name}`
    this.object = this.manifest as unknown as KubeObject
  }

  /** "deployments.apps": a resource in error messages. */
  get qualified(): string {
    const { group, plural } = this.resource
    return group === '' ? plural : `${plural}.${group}`
  }

  get resourceVersion(): string {
    return this.object.metadata.resourceVersion
  }

  has(verb: string): boolean {
    return this.resource.verbs.includes(verb)
  }

  subresource(name: string): ServedResource['subresources'][number] | undefined {
    return this.resource.subresources.find((subresource) => subresource.name === name)
  }

  another(suffix: string): Manifest {
    return another(this.#template, suffix, this.namespace)
  }

  /** @throws AssertionError naming the request when the answer has another status. */
  async expect(
    status: number,
    method: Dispatcher.HttpMethod,
    path: string,
    body?: unknown,
    options: Omit<CallOptions, 'body'> = {},
  ): Promise<Answer> {
    const answer = await call(this.base, method, path, { ...options, ...(body !== undefined && { body }) })
    if (answer.status !== status) {
      const type = options.contentType === undefined ? '' : ` (${options.contentType})`
      assert.fail(`${method} ${path}${type}: ${answer.status} instead of ${status}: ${answer.text.slice(0, 800)}`)
    }
    return answer
  }

  /** Expects a v1 Status of a failure. */
  async refuses(
    code: number,
    reason: string,
    method: Dispatcher.HttpMethod,
    path: string,
    body?: unknown,
    options: Omit<CallOptions, 'body'> = {},
  ): Promise<Answer> {
    const answer = await this.expect(code, method, path, body, options)
    const { kind, apiVersion, status, reason: given, code: inside } = answer.json ?? {}
    assert.deepEqual(
      { kind, apiVersion, status, reason: given, code: inside },
      { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code },
      `${method} ${path}: ${answer.text}`,
    )
    return answer
  }

  /** Sends what must change nothing: 200, and the object with the revision it has. */
  async unchanged(
    method: 'PUT' | 'PATCH',
    path: string,
    body: unknown,
    contentType = 'application/json',
  ): Promise<KubeObject> {
    const { json } = await this.expect(200, method, path, body, { contentType })
    const what = `${method} ${path} (${contentType}) ${JSON.stringify(body).slice(0, 200)}`
    assert.equal(json.metadata.resourceVersion, this.resourceVersion, `${what} leaves the revision alone`)
    return json
  }

  /** Sends what must change something: 200, a new revision, which a watch has to show. */
  async changed(method: 'PUT' | 'PATCH', path: string, body: unknown, contentType?: string): Promise<KubeObject> {
    const options = contentType === undefined ? {} : { contentType }
    const { json } = await this.expect(200, method, path, body, options)
    const what = `${method} ${path}`
    assert.ok(BigInt(json.metadata.resourceVersion) > BigInt(this.resourceVersion), `${what} makes a new revision`)
    this.changes.push({ type: 'MODIFIED', resourceVersion: json.metadata.resourceVersion })
    this.object = (await this.expect(200, 'GET', this.path)).json
    assert.equal(this.resourceVersion, json.metadata.resourceVersion, `${what}: the answer is what is stored`)
    return json
  }

  async bytes(
    method: Dispatcher.HttpMethod,
    path: string,
    options: { readonly accept: string; readonly body?: Uint8Array; readonly contentType?: string },
  ): Promise<{ readonly status: number; readonly contentType: string; readonly body: Buffer }> {
    const answer = await request(`${this.base}${path}`, {
      method,
      headers: {
        accept: options.accept,
        ...(options.contentType !== undefined && { 'content-type': options.contentType }),
      },
      ...(options.body !== undefined && { body: options.body }),
    })
    const body = Buffer.from(await answer.body.arrayBuffer())
    return { status: answer.statusCode, contentType: String(answer.headers['content-type']), body }
  }
}

/** Every field of `part` is in `whole`, however deep; lists are compared as wholes. */
export function assertContains(whole: unknown, part: unknown, path: string): void {
  if (typeof part !== 'object' || part === null || Array.isArray(part)) {
    if (Array.isArray(part)) {
      assert.ok(Array.isArray(whole) && whole.length === part.length, `${path}: ${JSON.stringify(whole)}`)
      part.forEach((item, index) => assertContains((whole as unknown[])[index], item, `${path}[${index}]`))
      return
    }
    assert.deepEqual(whole, part, path)
    return
  }
  for (const [field, value] of Object.entries(part)) {
    const inner = (whole as Record<string, unknown> | undefined)?.[field]
    assertContains(inner, value, `${path}.${field}`)
  }
}
