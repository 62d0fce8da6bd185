import { decodeJson, encodeJson, typeOf } from '../../schemas/index.ts'
import type { GVK, ObjectValue, ResourceInfo, TypeDescriptor } from '../../schemas/index.ts'
import type { Revision } from '../../storage/index.ts'
import type { CachedObject, StoredOffsets, Strategy } from '../types.ts'
import { asBuffer, NotCanonicalError, scanStored, type StoredHead } from './stored-scan.ts'

export { NotCanonicalError, scanStored, type StoredHead } from './stored-scan.ts'

/** "v1", "apps/v1". */
export function apiVersionOf(gvk: GVK): string {
  return gvk.group === '' ? gvk.version : `${gvk.group}/${gvk.version}`
}

export function descriptorOf(gvk: GVK): TypeDescriptor {
  const type = typeOf(gvk)
  if (type === undefined) throw new Error(`no type for ${apiVersionOf(gvk)} ${gvk.kind}`)
  return type
}

/** The object as the storage version has it, without resourceVersion; the caller's own copy. */
export function decodeStored(resource: ResourceInfo, stored: Uint8Array): ObjectValue {
  return decodeJson(stored, descriptorOf(resource.storageVersion)).object
}

/** Reads bytes that may not be canonical, or written in another version; `undefined` version: not served any more. */
function decodeForeign(resource: ResourceInfo, stored: Uint8Array): ObjectValue {
  const storage = resource.storageVersion
  const loose = JSON.parse(asBuffer(stored).toString('utf8')) as {
    readonly apiVersion?: unknown
    readonly kind?: unknown
  }
  if (loose.kind !== storage.kind) throw new Error(`stored kind is ${String(loose.kind)}, not ${storage.kind}`)
  if (loose.apiVersion === apiVersionOf(storage)) return decodeStored(resource, stored)
  const version = resource.served.find((served) => apiVersionOf(served.gvk) === loose.apiVersion)
  if (version === undefined) throw new Error(`stored version ${String(loose.apiVersion)} is not served`)
  return version.toStorage(decodeJson(stored, version.type).object)
}

function dropResourceVersion(object: ObjectValue): void {
  const metadata = object['metadata']
  if (typeof metadata === 'object' && metadata !== null) delete (metadata as ObjectValue)['resourceVersion']
}

const noLabels: Readonly<Record<string, string>> = Object.freeze(Object.create(null) as Record<string, string>)

/** Labels and fields are parsed when a selector first asks: most objects never are. */
class StoredObject implements CachedObject {
  readonly key: string
  readonly revision: Revision
  readonly stored: Uint8Array
  readonly offsets: StoredOffsets
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly deleting: boolean
  readonly #strategy: Strategy
  readonly #labelsFrom: number
  readonly #labelsTo: number
  #labels: Readonly<Record<string, string>> | undefined
  #fields: Readonly<Record<string, string>> | undefined

  constructor(key: string, revision: Revision, stored: Uint8Array, head: StoredHead, strategy: Strategy) {
    this.key = key
    this.revision = revision
    this.stored = stored
    this.offsets = head.offsets
    this.name = head.name
    this.namespace = head.namespace
    this.uid = head.uid
    this.deleting = head.deleting
    this.#strategy = strategy
    this.#labelsFrom = head.labelsFrom
    this.#labelsTo = head.labelsTo
  }

  get labels(): Readonly<Record<string, string>> {
    this.#labels ??= this.#parseLabels()
    return this.#labels
  }

  get fields(): Readonly<Record<string, string>> {
    this.#fields ??= this.#selectFields()
    return this.#fields
  }

  #parseLabels(): Readonly<Record<string, string>> {
    if (this.#labelsFrom === this.#labelsTo) return noLabels
    const text = asBuffer(this.stored).toString('utf8', this.#labelsFrom, this.#labelsTo)
    // Null prototype: a selector on "constructor" must not find Object's.
    return Object.assign(Object.create(null) as Record<string, string>, JSON.parse(text))
  }

  #selectFields(): Readonly<Record<string, string>> {
    const fields = Object.create(null) as Record<string, string>
    if (this.#strategy.fieldLabels.length > 0) {
      Object.assign(fields, this.#strategy.selectableFields(parseStored(this.stored)))
    }
    fields['metadata.name'] = this.name
    fields['metadata.namespace'] = this.namespace
    return fields
  }
}

/**
 * Stored bytes as a plain parsed value, for readers of a few fields (selectors, Table cells): an eighth of the cost
 * of decoding by type. Not for anything that is written back.
 */
export function parseStored(stored: Uint8Array): ObjectValue {
  return JSON.parse(asBuffer(stored).toString('utf8')) as ObjectValue
}

/**
 * One revision of one object, ready to be served. Bytes that are not canonical (another writer's, an older version's)
 * are decoded and encoded once, so `stored` of the result may differ from what was given.
 *
 * @param from.key - Store key, as text.
 * @param from.stored - Not copied; nobody may change it afterwards.
 * @throws SchemaError or Error when the bytes are no object of this resource.
 */
export function makeCachedObject(from: {
  readonly resource: ResourceInfo
  readonly strategy: Strategy
  readonly key: string
  readonly revision: Revision
  readonly stored: Uint8Array
}): CachedObject {
  const { resource, strategy, key, revision } = from
  const storage = resource.storageVersion
  try {
    const head = scanStored(from.stored)
    if (head.kind === storage.kind && head.apiVersion === apiVersionOf(storage)) {
      return new StoredObject(key, revision, from.stored, head, strategy)
    }
  } catch (error) {
    if (!(error instanceof NotCanonicalError)) throw error
  }
  const object = decodeForeign(resource, from.stored)
  dropResourceVersion(object)
  const stored = encodeJson(object, descriptorOf(storage), storage)
  return new StoredObject(key, revision, stored, scanStored(stored), strategy)
}
