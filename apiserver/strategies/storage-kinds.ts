import { type ObjectValue, typeDescriptor } from '../../schemas/index.ts'
import { timestamp } from '../object-store/object-meta.ts'
import type { Cause } from '../types.ts'
import { validateNonNegative } from '../validation/container.ts'
import { forbiddenField, invalidValue, required } from '../validation/field-error.ts'
import {
  copyValue,
  entriesAt,
  isObject,
  objectAt,
  record,
  textAt,
  textsAt,
  valueAt,
} from '../validation/object-fields.ts'
import { sameObject, sameRaw } from '../validation/semantic-equality.ts'
import type { KindRules } from './kind-rules.ts'

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

export const persistentVolumeRules: KindRules = {
  prepareForCreate(object, context) {
    object['status'] = record({ phase: 'Pending', lastPhaseTransitionTime: timestamp(context.now) })
  },
  validate(object) {
    const spec = objectAt(object, 'spec') ?? {}
    const causes: Cause[] = []
    if (textsAt(spec, 'accessModes').length === 0) causes.push(required('spec.accessModes'))
    if (entriesAt(spec, 'capacity').length === 0) causes.push(required('spec.capacity'))
    for (const [name, quantity] of entriesAt(spec, 'capacity')) {
      causes.push(...validateNonNegative(quantity, `spec.capacity[${name}]`))
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
    if (sameRaw(source(object), source(old))) return []
    return [forbiddenField('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation')]
  },
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
    else causes.push(...validateNonNegative(request, 'spec.resources[storage]'))
    return causes
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
      for (const field of ['resources', 'volumeAttributesClassName']) {
        if (spec[field] === undefined) delete allowed[field]
        else allowed[field] = spec[field]
      }
    }
    if (sameObject(spec, allowed, typeDescriptor('io.k8s.api.core.v1.PersistentVolumeClaimSpec'))) return []
    const text =
      'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
    return [forbiddenField('spec', text)]
  },
}

export const storageClassRules: KindRules = {
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
