import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { forbiddenField, invalidValue, required, tooLong } from '../validation/field-error.ts'
import { configKeyProblems } from '../validation/names.ts'
import {
  ensureObject,
  entriesAt,
  flagAt,
  isObject,
  objectAt,
  setOrRemove,
  textAt,
} from '../validation/object-fields.ts'
import { sameRaw } from '../validation/semantic-equality.ts'
import type { KindRules } from './kind-rules.ts'
import { appendAll } from '../append.ts'

/** ConfigMaps and Secrets: keyed data with a size, frozen by `immutable: true` (KEP-1412). */

const dataBytesMax = 1024 * 1024
const frozenText = 'field is immutable when `immutable` is set'

/** Bytes behind base64, without decoding it. */
function decodedLength(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return Math.max(0, (base64.length / 4) * 3 - padding)
}

function validateKeys(object: ObjectValue, field: string): readonly Cause[] {
  return entriesAt(object, field).flatMap(([key]) =>
    configKeyProblems(key).map((problem) => invalidValue(`${field}[${key}]`, key, problem)),
  )
}

function validateFrozen(object: ObjectValue, old: ObjectValue, fields: readonly string[]): readonly Cause[] {
  if (!flagAt(old, 'immutable')) return []
  const causes: Cause[] = []
  if (!flagAt(object, 'immutable')) causes.push(forbiddenField('immutable', frozenText))
  for (const field of fields) {
    if (!sameMap(object[field], old[field])) causes.push(forbiddenField(field, frozenText))
  }
  return causes
}

const sameMap = (a: unknown, b: unknown): boolean => sameRaw(a ?? {}, b ?? {})

export const configMapRules: KindRules = {
  validate(object) {
    const causes: Cause[] = [...validateKeys(object, 'data'), ...validateKeys(object, 'binaryData')]
    const data = objectAt(object, 'data') ?? {}
    let bytes = 0
    for (const [, value] of entriesAt(object, 'data')) bytes += Buffer.byteLength(value)
    for (const [key, value] of entriesAt(object, 'binaryData')) {
      if (Object.hasOwn(data, key)) {
        causes.push(invalidValue(`data[${key}]`, key, 'duplicate of key present in binaryData'))
      }
      bytes += decodedLength(value)
    }
    if (bytes > dataBytesMax) causes.push(tooLong('', dataBytesMax))
    return causes
  },
  validateUpdate: (object, old) => validateFrozen(object, old, ['data', 'binaryData']),
}

/** Keys that a Secret of a known type cannot be without. */
const requiredKeys: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
}
const jsonTypes = new Set(['kubernetes.io/dockercfg', 'kubernetes.io/dockerconfigjson'])

/** Secrets are not shown, not even wrong ones. */
function validateJson(base64: string, at: string): readonly Cause[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(base64, 'base64').toString('utf8'))
    if (value === null || isObject(value)) return []
    const text = `json: cannot unmarshal ${goKind(value)} into Go value of type map[string]interface {}`
    return [invalidValue(at, '<secret contents redacted>', text)]
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const text = base64 === '' ? 'unexpected end of JSON input' : 'invalid character in JSON input'
    return [invalidValue(at, '<secret contents redacted>', text)]
  }
}

const goKind = (value: unknown): string =>
  Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value

const serviceAccountType = 'kubernetes.io/service-account-token'
const serviceAccountAnnotation = 'kubernetes.io/service-account.name'

/** stringData is a way of writing: its texts become data, and win over it. */
function takeStringData(object: ObjectValue): void {
  const entries = entriesAt(object, 'stringData')
  delete object['stringData']
  if (entries.length === 0) return
  const data = ensureObject(object, 'data')
  for (const [key, value] of entries) data[key] = Buffer.from(value, 'utf8').toString('base64')
}

export const secretRules: KindRules = {
  prepareForCreate: takeStringData,
  prepareForUpdate(object, old) {
    takeStringData(object)
    if (textAt(object, 'type') === '') setOrRemove(object, 'type', old['type'])
  },
  validate(object) {
    const causes: Cause[] = [...validateKeys(object, 'data')]
    const type = textAt(object, 'type')
    const bytes = entriesAt(object, 'data').reduce((sum, [, value]) => sum + decodedLength(value), 0)
    if (bytes > dataBytesMax) causes.push(tooLong('data', dataBytesMax))
    const data = objectAt(object, 'data') ?? {}
    for (const key of requiredKeys[type] ?? []) {
      if (!Object.hasOwn(data, key)) causes.push(required(`data[${key}]`))
      else if (jsonTypes.has(type)) appendAll(causes, validateJson(textAt(data, key), `data[${key}]`))
    }
    if (type === serviceAccountType && textAt(object, 'metadata', 'annotations', serviceAccountAnnotation) === '') {
      causes.push(required(`metadata.annotations[${serviceAccountAnnotation}]`))
    }
    if (type === 'kubernetes.io/basic-auth' && !['username', 'password'].some((key) => Object.hasOwn(data, key))) {
      causes.push(required('data[username]'), required('data[password]'))
    }
    if (type === 'kubernetes.io/ssh-auth' && textAt(data, 'ssh-privatekey') === '') {
      causes.push(required('data[ssh-privatekey]'))
    }
    return causes
  },
  validateUpdate: (object, old) => validateFrozen(object, old, ['data']),
}
