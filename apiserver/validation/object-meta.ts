import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { forbiddenField, immutableText, invalidValue, required, tooLong } from './field-error.ts'
import {
  byteLength,
  dnsLabelProblems,
  labelValueProblems,
  maskedPrefix,
  type NameRule,
  qualifiedNameProblems,
} from './names.ts'
import { entriesAt, flagAt, numberAt, objectAt, objectsAt, textAt, textsAt, valueAt } from './object-fields.ts'
import { appendAll } from '../append.ts'

/** apimachinery pkg/api/validation/objectmeta.go. */

export const annotationBytesMax = 256 * 1024

/** Checks metadata on create and update alike. */
export function validateObjectMeta(
  object: ObjectValue,
  rules: { readonly namespaced: boolean; readonly nameRule: NameRule },
): readonly Cause[] {
  const causes: Cause[] = []
  const at = 'metadata'
  const metadata = objectAt(object, 'metadata') ?? {}
  const name = textAt(metadata, 'name')
  const generateName = textAt(metadata, 'generateName')
  const namespace = textAt(metadata, 'namespace')
  if (generateName !== '') {
    const problems = rules.nameRule(maskedPrefix(generateName))
    appendAll(
      causes,
      problems.map((problem) => invalidValue(`${at}.generateName`, generateName, problem)),
    )
  }
  if (name === '') causes.push(required(`${at}.name`, 'name or generateName is required'))
  else
    appendAll(
      causes,
      rules.nameRule(name).map((problem) => invalidValue(`${at}.name`, name, problem)),
    )
  if (rules.namespaced) {
    if (namespace === '') causes.push(required(`${at}.namespace`))
    else {
      const problems = dnsLabelProblems(namespace)
      appendAll(
        causes,
        problems.map((problem) => invalidValue(`${at}.namespace`, namespace, problem)),
      )
    }
  } else if (namespace !== '') causes.push(forbiddenField(`${at}.namespace`, 'not allowed on this type'))
  const generation = numberAt(metadata, 'generation') ?? 0
  if (generation < 0) {
    causes.push(invalidValue(`${at}.generation`, generation, 'must be greater than or equal to 0'))
  }
  appendAll(causes, validateLabels(metadata, 'labels', `${at}.labels`))
  appendAll(causes, validateAnnotations(metadata, `${at}.annotations`))
  appendAll(causes, validateOwnerReferences(metadata, `${at}.ownerReferences`))
  appendAll(causes, validateFinalizers(metadata, `${at}.finalizers`))
  return causes
}

export function validateLabels(parent: ObjectValue, field: string, at: string): readonly Cause[] {
  const causes: Cause[] = []
  for (const [key, value] of entriesAt(parent, field)) {
    appendAll(
      causes,
      qualifiedNameProblems(key).map((problem) => invalidValue(at, key, problem)),
    )
    appendAll(
      causes,
      labelValueProblems(value).map((problem) => invalidValue(at, value, problem)),
    )
  }
  return causes
}

export function validateAnnotations(metadata: ObjectValue, at: string): readonly Cause[] {
  const causes: Cause[] = []
  let bytes = 0
  for (const [key, value] of entriesAt(metadata, 'annotations')) {
    appendAll(
      causes,
      qualifiedNameProblems(key.toLowerCase()).map((problem) => invalidValue(at, key, problem)),
    )
    bytes += byteLength(key) + byteLength(value)
  }
  if (bytes > annotationBytesMax) causes.push(tooLong(at, annotationBytesMax))
  return causes
}

const controllerCausesMax = 8

function validateOwnerReferences(metadata: ObjectValue, at: string): readonly Cause[] {
  const causes: Cause[] = []
  let controller: string | undefined
  let controllers = 0
  for (const [index, reference] of objectsAt(metadata, 'ownerReferences').entries()) {
    const where = `${at}[${index}]`
    const apiVersion = textAt(reference, 'apiVersion')
    const [version, ...more] = apiVersion.split('/').toReversed()
    if (apiVersion === '') causes.push(required(`${where}.apiVersion`, 'must not be empty'))
    else if (version === '' || more.length > 1) {
      causes.push(invalidValue(`${where}.apiVersion`, apiVersion, 'must be <group>/<version> or <version>'))
    }
    for (const field of ['kind', 'name', 'uid'] as const) {
      if (textAt(reference, field) === '') causes.push(required(`${where}.${field}`, 'must not be empty'))
    }
    if (apiVersion === 'v1' && textAt(reference, 'kind') === 'Event') {
      causes.push(invalidValue(where, reference, '/v1, Kind=Event is disallowed from being an owner'))
    }
    if (flagAt(reference, 'controller')) {
      const name = `${textAt(reference, 'kind')}/${textAt(reference, 'name')}`
      if (controller !== undefined) {
        // each says all references: of thousands, the first few are told
        if (++controllers > controllerCausesMax) continue
        const text = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${name}`
        causes.push(invalidValue(at, valueAt(metadata, 'ownerReferences'), text))
      } else controller = name
    }
  }
  return causes
}

function validateFinalizers(metadata: ObjectValue, at: string): readonly Cause[] {
  const finalizers = textsAt(metadata, 'finalizers')
  const causes: Cause[] = []
  for (const finalizer of finalizers) {
    appendAll(
      causes,
      qualifiedNameProblems(finalizer).map((problem) => invalidValue(at, finalizer, problem)),
    )
  }
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    causes.push(invalidValue(at, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'))
  }
  return causes
}

const immutableFields = [
  'name',
  'namespace',
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
] as const

/** What an update may not do to metadata; `object` has been through updateMetadata already. */
export function validateObjectMetaUpdate(object: ObjectValue, old: ObjectValue): readonly Cause[] {
  const causes: Cause[] = []
  const metadata = objectAt(object, 'metadata') ?? {}
  const before = objectAt(old, 'metadata') ?? {}
  if (textAt(before, 'deletionTimestamp') !== '') {
    const known = new Set(textsAt(before, 'finalizers'))
    const added = textsAt(metadata, 'finalizers').filter((finalizer) => !known.has(finalizer))
    if (added.length > 0) {
      const list = `[]string{${added
        .toSorted()
        .map((name) => JSON.stringify(name))
        .join(', ')}}`
      causes.push(
        forbiddenField(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`,
        ),
      )
    }
  }
  for (const field of immutableFields) {
    const value = valueAt(metadata, field)
    const previous = valueAt(before, field)
    // Go compares zero values: an absent namespace and an empty one are the same.
    if (value !== previous && !(isZero(value) && isZero(previous) && field !== 'deletionGracePeriodSeconds')) {
      causes.push(invalidValue(`metadata.${field}`, value, immutableText))
    }
  }
  return causes
}

const isZero = (value: unknown): boolean => value === undefined || value === ''
