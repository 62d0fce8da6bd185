import {
  decodeEnvelope,
  decodeJson,
  decodeProtobuf,
  decodeYaml,
  type ObjectValue,
  SchemaError,
  type TypeDescriptor,
  typeDescriptor,
} from '../../schemas/index.ts'
import { badRequest, invalid } from '../errors.ts'
import type { ApiRequest, Cause } from '../types.ts'
import { invalidValue, notSupported, required, tooLong, forbiddenField } from '../validation/field-error.ts'
import { byteLength } from '../validation/names.ts'
import { flagAt, numberAt, objectAt, textAt, textsAt, valueAt } from '../validation/object-fields.ts'
import { fieldManagerLengthMax } from './limits.ts'
import { type BodyFormat, bodyFormat } from './media-type.ts'
import { appendAll } from '../append.ts'

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

/** CreateOptions, UpdateOptions and PatchOptions from the query (meta/v1/validation/validation.go). */
export interface WriteOptions {
  readonly dryRun: boolean
  readonly fieldValidation: FieldValidation
  /** Given, or the User-Agent up to its first slash. */
  readonly fieldManager: string
}

export type OptionsKind = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions' | 'DeleteOptions'

/** @throws ApiError 422 listing everything wrong with the options. */
export function writeOptions(request: ApiRequest, kind: OptionsKind, patch?: 'apply' | 'other'): WriteOptions {
  const { query } = request
  const causes: Cause[] = []
  const dryRun = dryRunOf(query.getAll('dryRun'), causes)
  const fieldManager = query.get('fieldManager') ?? ''
  const force = query.get('force')
  if (patch === 'apply' && fieldManager === '') causes.push(required('fieldManager', 'is required for apply patch'))
  if (patch === 'other' && force !== null && force !== '') {
    causes.push(forbiddenField('force', 'may not be specified for non-apply patch'))
  }
  appendAll(causes, fieldManagerCauses(fieldManager))
  const asked = query.get('fieldValidation') ?? ''
  const fieldValidation = asked === '' ? 'Warn' : asked
  if (!isFieldValidation(fieldValidation)) {
    causes.push(notSupported('fieldValidation', asked, ['', 'Ignore', 'Strict', 'Warn']))
  }
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind }, '', causes)
  return {
    dryRun,
    fieldValidation: isFieldValidation(fieldValidation) ? fieldValidation : 'Warn',
    fieldManager: fieldManager === '' ? managerOfUserAgent(request.headers['user-agent']) : fieldManager,
  }
}

const isFieldValidation = (text: string): text is FieldValidation =>
  text === 'Ignore' || text === 'Warn' || text === 'Strict'

function dryRunOf(values: readonly string[], causes: Cause[]): boolean {
  const given = values.filter((value) => value !== '')
  if (given.some((value) => value !== 'All')) causes.push(notSupported('dryRun', given, ['All']))
  return given.includes('All')
}

function fieldManagerCauses(manager: string): readonly Cause[] {
  const causes: Cause[] = []
  if (byteLength(manager) > fieldManagerLengthMax) causes.push(tooLong('fieldManager', fieldManagerLengthMax))
  // Letters, marks, numbers, punctuation, symbols and the ASCII space: Go's unicode.IsPrint.
  if (!/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u.test(manager)) {
    causes.push(invalidValue('fieldManager', manager, 'should only contain printable characters'))
  }
  return causes
}

const managerOfUserAgent = (agent: string | undefined): string =>
  (agent ?? '').split('/', 1)[0]?.slice(0, fieldManagerLengthMax) ?? ''

export interface DeleteOptions {
  readonly dryRun: boolean
  readonly gracePeriodSeconds: number | undefined
  readonly orphanDependents: boolean | undefined
  readonly propagationPolicy: 'Orphan' | 'Background' | 'Foreground' | undefined
  readonly preconditions: { readonly uid: string | undefined; readonly resourceVersion: string | undefined }
}

/** From the body when there is one, else from the query. @throws ApiError 400, 415, 422. */
export async function deleteOptions(request: ApiRequest): Promise<DeleteOptions> {
  const body = await request.body()
  const value = body.length > 0 ? await decodeDeleteOptions(request, body) : optionsFromQuery(request.query)
  const causes: Cause[] = []
  const policy = valueAt(value, 'propagationPolicy')
  const orphan = valueAt(value, 'orphanDependents')
  if (orphan !== undefined && policy !== undefined) {
    causes.push(
      invalidValue('propagationPolicy', policy, 'orphanDependents and deletionPropagation cannot be both set'),
    )
  }
  if (policy !== undefined && !isPolicy(policy)) {
    causes.push(notSupported('propagationPolicy', policy, ['Foreground', 'Background', 'Orphan', 'nil']))
  }
  const dryRun = dryRunOf(textsAt(value, 'dryRun'), causes)
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', causes)
  const preconditions = objectAt(value, 'preconditions')
  const text = (field: string): string | undefined =>
    valueAt(preconditions, field) === undefined ? undefined : textAt(preconditions, field)
  return {
    dryRun,
    gracePeriodSeconds: numberAt(value, 'gracePeriodSeconds'),
    orphanDependents: orphan === undefined ? undefined : flagAt(value, 'orphanDependents'),
    propagationPolicy: isPolicy(policy) ? policy : undefined,
    preconditions: { uid: text('uid'), resourceVersion: text('resourceVersion') },
  }
}

const isPolicy = (value: unknown): value is 'Orphan' | 'Background' | 'Foreground' =>
  value === 'Orphan' || value === 'Background' || value === 'Foreground'

async function decodeDeleteOptions(request: ApiRequest, body: Uint8Array): Promise<ObjectValue> {
  const format = bodyFormat(request.headers['content-type'])
  const type = typeDescriptor('io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions')
  try {
    const object = await decodeOptions(body, format, type)
    const kind = textAt(object, 'kind')
    if (kind !== '' && kind !== 'DeleteOptions') throw badRequest('decoded object cannot be converted to DeleteOptions')
    return object
  } catch (error) {
    if (error instanceof SchemaError) throw badRequest(error.message)
    throw error
  }
}

async function decodeOptions(body: Uint8Array, format: BodyFormat, type: TypeDescriptor): Promise<ObjectValue> {
  if (format === 'yaml') return (await decodeYaml(body, type)).object
  if (format === 'json') return decodeJson(body, type).object
  const { apiVersion, kind, raw } = decodeEnvelope(body)
  const object = kind === '' || kind === 'DeleteOptions' ? decodeProtobuf(raw, type) : {}
  return Object.assign(object, { apiVersion, kind })
}

function optionsFromQuery(query: URLSearchParams): ObjectValue {
  const value: ObjectValue = {}
  const grace = query.get('gracePeriodSeconds')
  if (grace !== null && grace !== '') {
    if (!/^[-+]?\d{1,18}$/.test(grace)) {
      throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(grace)}: invalid syntax`)
    }
    value['gracePeriodSeconds'] = Number(grace)
  }
  const orphan = query.get('orphanDependents')
  if (orphan !== null && orphan !== '') value['orphanDependents'] = orphan !== 'false' && orphan !== '0'
  const policy = query.get('propagationPolicy')
  if (policy !== null && policy !== '') value['propagationPolicy'] = policy
  value['dryRun'] = query.getAll('dryRun')
  const uid = query.get('preconditions.uid')
  const resourceVersion = query.get('preconditions.resourceVersion')
  if (uid !== null || resourceVersion !== null) {
    value['preconditions'] = {
      ...(uid === null ? {} : { uid }),
      ...(resourceVersion === null ? {} : { resourceVersion }),
    }
  }
  return value
}
