import type { ObjectValue, ResourceInfo } from '../../schemas/index.ts'
import type { Env } from '../../storage/index.ts'
import { badRequest } from '../errors.ts'
import { entriesAt, metadataOf, numberAt, objectsAt, textAt, valueAt } from '../validation/object-fields.ts'
import { generatedNameLengthMax, generatedSuffixLength } from './limits.ts'

/** The server's part of metadata (kubernetes/apiserver registry/rest/{create,update,meta}.go). */

/** Second precision, UTC: "2026-01-02T03:04:05Z". */
export function timestamp(at: Date): string {
  return `${at.toISOString().slice(0, 19)}Z`
}

/** No vowels and no look-alikes: generated names spell no words. */
const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789'

export function generateName(env: Env, base: string): string {
  const prefix = base.slice(0, generatedNameLengthMax - generatedSuffixLength)
  let suffix = ''
  for (let index = 0; index < generatedSuffixLength; index++) {
    suffix += suffixAlphabet[Math.floor(env.random.float() * suffixAlphabet.length)]
  }
  return prefix + suffix
}

/** Fills in the request's namespace; refuses another one. Cluster-scoped objects lose whatever they carried. */
export function matchNamespace(object: ObjectValue, resource: ResourceInfo, requestNamespace: string): void {
  const metadata = metadataOf(object)
  const namespace = textAt(metadata, 'namespace')
  if (!resource.namespaced) delete metadata['namespace']
  else if (namespace === '') metadata['namespace'] = requestNamespace
  else if (namespace !== requestNamespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
}

/** The body's name must be the URL's. */
export function matchName(object: ObjectValue, name: string): void {
  const given = textAt(object, 'metadata', 'name')
  if (given === '') {
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`)
  }
  if (given !== name) {
    throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`)
  }
}

/** What a client may not set on create, and what the server sets instead. The name is there already. */
export function fillMetadata(object: ObjectValue, server: { readonly now: Date; readonly uid: string }): void {
  const metadata = metadataOf(object)
  for (const field of [
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
    'selfLink',
    'generation',
    'resourceVersion',
  ]) {
    delete metadata[field]
  }
  metadata['uid'] = server.uid
  metadata['creationTimestamp'] = timestamp(server.now)
}

/** System fields that an update carries over whatever the client sent. */
export function carryMetadata(object: ObjectValue, old: ObjectValue): void {
  const metadata = metadataOf(object)
  const before = metadataOf(old)
  delete metadata['resourceVersion']
  delete metadata['selfLink']
  carry(metadata, before, 'generation')
  carry(metadata, before, 'creationTimestamp')
  if (textAt(metadata, 'uid') === '') carry(metadata, before, 'uid')
  if (before['deletionTimestamp'] !== undefined) carry(metadata, before, 'deletionTimestamp')
  if (metadata['deletionGracePeriodSeconds'] === undefined) carry(metadata, before, 'deletionGracePeriodSeconds')
  // Not a field to change: the name was chosen, and generateName only says how.
  if (metadata['generateName'] === undefined) carry(metadata, before, 'generateName')
}

function carry(to: ObjectValue, from: ObjectValue, field: string): void {
  const value = from[field]
  if (value === undefined) delete to[field]
  else to[field] = value
}

export function bumpGeneration(object: ObjectValue): void {
  const metadata = metadataOf(object)
  metadata['generation'] = (numberAt(metadata, 'generation') ?? 0) + 1
}

/** Owner references with a uid named before are dropped, as they would make garbage collection ambiguous. */
export function dropDuplicateOwners(object: ObjectValue, warn: (message: string) => void): void {
  const metadata = metadataOf(object)
  const references = objectsAt(metadata, 'ownerReferences')
  if (references.length < 2) return
  const seen = new Set<string>()
  const duplicates = new Set<string>()
  const kept = references.filter((reference) => {
    const uid = textAt(reference, 'uid')
    if (!seen.has(uid)) {
      seen.add(uid)
      return true
    }
    duplicates.add(uid)
    return false
  })
  if (duplicates.size === 0) return
  metadata['ownerReferences'] = kept
  warn(
    `.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${[...duplicates].join(', ')}`,
  )
}

/** Everything that is asked about whether an object may go for good. */
export interface DeletionState {
  readonly deleting: boolean
  readonly finalizers: number
  /** undefined: none set. */
  readonly graceSeconds: number | undefined
}

export function deletionState(object: ObjectValue): DeletionState {
  const finalizers = valueAt(object, 'metadata', 'finalizers')
  return {
    deleting: textAt(object, 'metadata', 'deletionTimestamp') !== '',
    finalizers: Array.isArray(finalizers) ? finalizers.length : 0,
    graceSeconds: numberAt(object, 'metadata', 'deletionGracePeriodSeconds'),
  }
}

export const hasLabel = (object: ObjectValue, key: string): boolean =>
  entriesAt(object, 'metadata', 'labels').some(([label]) => label === key)
