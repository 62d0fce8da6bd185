import { compareQuantities, type ObjectValue, typeDescriptor } from '../../schemas/index.ts'
import { timestamp } from '../object-store/object-meta.ts'
import type { Cause } from '../types.ts'
import { forbiddenField, immutableText, invalidValue, notSupported, required } from '../validation/field-error.ts'
import {
  copyValue,
  entriesAt,
  isObject,
  objectAt,
  record,
  setOrRemove,
  textAt,
  textsAt,
  valueAt,
} from '../validation/object-fields.ts'
import { validateNodeSelector } from '../validation/scheduling.ts'
import { dnsSubdomainProblems } from '../validation/names.ts'
import { validatePositiveAmount } from '../validation/resource-amounts.ts'
import { validateLabelSelector } from '../validation/label-selector.ts'
import { sameObject, sameRaw } from '../validation/semantic-equality.ts'
import type { KindRules } from './kind-rules.ts'
import { appendAll } from '../append.ts'

/** Fields of a PersistentVolumeSpec that are no source. */
const volumeFields = new Set([
  'capacity',
  'accessModes',
  'claimRef',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'mountOptions',
  'volumeMode',
  'nodeAffinity',
  'volumeAttributesClassName',
])

const sourcesOf = (spec: ObjectValue): readonly string[] =>
  Object.keys(spec).filter((field) => !volumeFields.has(field) && isObject(spec[field]))

const sourceFields = [
  ['csi', 'driver'],
  ['csi', 'volumeHandle'],
  ['hostPath', 'path'],
  ['local', 'path'],
  ['nfs', 'server'],
  ['nfs', 'path'],
] as const

/** ReadWriteOncePod promises what any other mode beside it would break. */
function validateAccessModes(spec: ObjectValue | undefined): readonly Cause[] {
  const modes = textsAt(spec, 'accessModes')
  if (!modes.includes('ReadWriteOncePod') || modes.every((mode) => mode === 'ReadWriteOncePod')) return []
  return [forbiddenField('spec.accessModes', 'may not use ReadWriteOncePod with other access modes')]
}

function validateClassName(spec: ObjectValue | undefined): readonly Cause[] {
  return ['storageClassName', 'volumeAttributesClassName'].flatMap((field) => {
    const name = textAt(spec, field)
    if (name === '') return []
    return dnsSubdomainProblems(name).map((problem) => invalidValue(`spec.${field}`, name, problem))
  })
}

/** The real server names this field without its parent. */
function validateVolumeMode(object: ObjectValue, old: ObjectValue): readonly Cause[] {
  const mode = valueAt(object, 'spec', 'volumeMode')
  return mode === valueAt(old, 'spec', 'volumeMode') ? [] : [invalidValue('volumeMode', mode, immutableText)]
}

export const persistentVolumeRules: KindRules = {
  prepareForCreate(object, context) {
    object['status'] = record({ phase: 'Pending', lastPhaseTransitionTime: timestamp(context.now) })
  },
  validate(object) {
    const spec = objectAt(object, 'spec') ?? {}
    const capacity = entriesAt(spec, 'capacity')
    const causes: Cause[] = []
    if (textsAt(spec, 'accessModes').length === 0) causes.push(required('spec.accessModes'))
    appendAll(causes, validateAccessModes(spec))
    if (capacity.length === 0) causes.push(required('spec.capacity'))
    if (capacity.length !== 1 || capacity[0]?.[0] !== 'storage') {
      causes.push(notSupported('spec.capacity', valueAt(spec, 'capacity'), ['storage']))
    }
    for (const [name, quantity] of capacity) {
      appendAll(causes, validatePositiveAmount(quantity, `spec.capacity[${name}]`))
    }
    appendAll(causes, validateClassName(spec))
    const nodes = objectAt(spec, 'nodeAffinity', 'required')
    if (nodes !== undefined) appendAll(causes, validateNodeSelector(nodes, 'spec.nodeAffinity.required'))
    if (objectAt(spec, 'nodeAffinity') !== undefined && nodes === undefined) {
      causes.push(required('spec.nodeAffinity.required', 'must specify required node constraints'))
    }
    if (isObject(spec['local']) && nodes === undefined) {
      causes.push(required('spec.nodeAffinity', 'Local volume requires node affinity'))
    }
    for (const [source, field] of sourceFields) {
      if (isObject(spec[source]) && textAt(spec, source, field) === '') causes.push(required(`spec.${source}.${field}`))
    }
    const sources = sourcesOf(spec)
    if (sources.length === 0) causes.push(required('spec', 'must specify a volume type'))
    for (const extra of sources.slice(1)) {
      causes.push(forbiddenField(`spec.${extra}`, 'may not specify more than 1 volume type'))
    }
    return causes
  },
  validateUpdate(object, old) {
    const source = (value: ObjectValue): ObjectValue => {
      const spec = objectAt(value, 'spec') ?? {}
      return Object.fromEntries(sourcesOf(spec).map((field) => [field, spec[field]]))
    }
    const causes: Cause[] = [...validateVolumeMode(object, old)]
    if (sameRaw(source(object), source(old))) return causes
    const text = 'spec.persistentvolumesource is immutable after creation'
    return [...causes, forbiddenField('spec.persistentvolumesource', text)]
  },
}

function validateDataSource(source: ObjectValue | undefined, at: string): readonly Cause[] {
  if (source === undefined) return []
  const kind = textAt(source, 'kind')
  const missing = ['name', 'kind'].filter((field) => textAt(source, field) === '')
  const causes: Cause[] = missing.map((field) => required(`${at}.${field}`))
  if (textAt(source, 'apiGroup') === '' && kind !== 'PersistentVolumeClaim') {
    causes.push(invalidValue(at, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
  }
  return causes
}

export const persistentVolumeClaimRules: KindRules = {
  prepareForCreate(object) {
    object['status'] = record({ phase: 'Pending' })
  },
  validate(object) {
    const causes: Cause[] = []
    if (textsAt(object, 'spec', 'accessModes').length === 0) {
      causes.push(required('spec.accessModes', 'at least 1 access mode is required'))
    }
    const request = textAt(object, 'spec', 'resources', 'requests', 'storage')
    if (request === '') causes.push(required('spec.resources[storage]'))
    else appendAll(causes, validatePositiveAmount(request, 'spec.resources[storage]'))
    const spec = objectAt(object, 'spec')
    return [
      ...causes,
      ...validateAccessModes(spec),
      ...validateClassName(spec),
      ...validateLabelSelector(valueAt(spec, 'selector'), 'spec.selector'),
      ...validateDataSource(objectAt(spec, 'dataSource'), 'spec.dataSource'),
      ...validateDataSource(objectAt(spec, 'dataSourceRef'), 'spec.dataSourceRef'),
    ]
  },
  validateUpdate(object, old) {
    const spec = objectAt(object, 'spec') ?? {}
    const allowed = copyValue(objectAt(old, 'spec') ?? {})
    // The binder fills these in; a bound claim may grow.
    if (textAt(allowed, 'volumeName') === '' && spec['volumeName'] !== undefined)
      allowed['volumeName'] = spec['volumeName']
    if (valueAt(allowed, 'storageClassName') === undefined && spec['storageClassName'] !== undefined) {
      allowed['storageClassName'] = spec['storageClassName']
    }
    if (textAt(old, 'status', 'phase') === 'Bound') {
      const size = valueAt(spec, 'resources', 'requests', 'storage')
      const requests = objectAt(allowed, 'resources', 'requests')
      if (requests !== undefined && size !== undefined) requests['storage'] = size
      setOrRemove(allowed, 'volumeAttributesClassName', spec['volumeAttributesClassName'])
    }
    const causes: Cause[] = []
    if (!sameObject(spec, allowed, typeDescriptor('io.k8s.api.core.v1.PersistentVolumeClaimSpec'))) {
      const text =
        'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
      causes.push(forbiddenField('spec', text))
    }
    return [...causes, ...validateSize(object, old), ...validateVolumeMode(object, old)]
  },
}

/** A claim that could not grow may be asked to grow less, but never below what it has. */
function validateSize(object: ObjectValue, old: ObjectValue): readonly Cause[] {
  const size = (of: ObjectValue): string => textAt(of, 'spec', 'resources', 'requests', 'storage') || '0'
  if (compareQuantities(size(object), size(old)) >= 0) return []
  const capacity = textAt(old, 'status', 'capacity', 'storage') || '0'
  if (compareQuantities(size(object), capacity) > 0) return []
  return [forbiddenField('spec.resources.requests.storage', 'field can not be less than status.capacity')]
}

export const storageClassRules: KindRules = {
  validate: (object) => (textAt(object, 'provisioner') === '' ? [required('provisioner')] : []),
  validateUpdate(object, old) {
    const causes: Cause[] = []
    if (!sameRaw(object['parameters'] ?? {}, old['parameters'] ?? {})) {
      causes.push(forbiddenField('parameters', 'updates to parameters are forbidden.'))
    }
    for (const field of ['provisioner', 'reclaimPolicy']) {
      if (textAt(object, field) !== textAt(old, field)) {
        causes.push(forbiddenField(field, `updates to ${field} are forbidden.`))
      }
    }
    return causes
  },
}

const systemPriorityPrefix = 'system-'
const userPriorityMax = 1_000_000_000
const systemPriorities: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
}

export const priorityClassRules: KindRules = {
  validate(object) {
    const name = textAt(object, 'metadata', 'name')
    const value = Number(valueAt(object, 'value') ?? 0)
    if (name.startsWith(systemPriorityPrefix)) {
      if (systemPriorities[name] === value) return []
      const text =
        "priority class names with 'system-' prefix are reserved for system use only. error: " +
        (systemPriorities[name] === undefined
          ? `${name} is not a known system priority class`
          : `value of ${name} PriorityClass must be ${systemPriorities[name]}`)
      return [forbiddenField('metadata.name', text)]
    }
    if (value <= userPriorityMax) return []
    return [forbiddenField('value', `maximum allowed value of a user defined priority is ${userPriorityMax}`)]
  },
  validateUpdate(object, old) {
    const causes: Cause[] = []
    if (Number(object['value'] ?? 0) !== Number(old['value'] ?? 0)) {
      causes.push(invalidValue('value', object['value'], 'may not be changed in an update.'))
    }
    if (textAt(object, 'preemptionPolicy') !== textAt(old, 'preemptionPolicy')) {
      causes.push(invalidValue('preemptionPolicy', object['preemptionPolicy'], 'field is immutable'))
    }
    return causes
  },
}
