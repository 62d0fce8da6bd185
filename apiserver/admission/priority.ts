import { forbidden } from '../errors.ts'
import { parseStored } from '../encoding/stored-object.ts'
import type { ObjectCache } from '../types.ts'
import { ensureObject, flagAt, numberAt, textAt, valueAt } from '../validation/object-fields.ts'
import type { AdmissionAttributes, AdmissionPlugin } from './admission.ts'

const prefix = '/registry/priorityclasses/'

interface ResolvedPriority {
  readonly name: string
  readonly value: number
  readonly preemptionPolicy: string
}

/** Resolves a pod's priorityClassName to its number (kubernetes plugin/pkg/admission/priority). */
export function priorityDefaults(cache: ObjectCache): AdmissionPlugin {
  function byName(attributes: AdmissionAttributes, name: string): ResolvedPriority {
    const cached = cache.get(prefix + name)
    if (cached === undefined) {
      const pods = { group: '', resource: 'pods' }
      throw forbidden(pods, attributes.name, `no PriorityClass with name ${name} was found`)
    }
    return resolved(parseStored(cached.stored))
  }

  /** The lowest of the classes marked as the default, or 0 without a class. */
  function byDefault(): ResolvedPriority {
    const defaults = cache
      .list(prefix)
      .map((cached) => parseStored(cached.stored))
      .filter((value) => flagAt(value, 'globalDefault'))
      .map(resolved)
      .toSorted((a, b) => a.value - b.value)
    return defaults[0] ?? { name: '', value: 0, preemptionPolicy: 'PreemptLowerPriority' }
  }

  return {
    name: 'Priority',
    operations: new Set(['CREATE', 'UPDATE']),
    admit(attributes) {
      const { object, oldObject, resource, subresource } = attributes
      if (object === undefined || resource.group !== '' || resource.plural !== 'pods' || subresource !== '') return
      const spec = ensureObject(object, 'spec')
      if (oldObject !== undefined) {
        // Decided at creation: an update that does not name them keeps them.
        for (const field of ['priority', 'preemptionPolicy', 'priorityClassName']) {
          const before = valueAt(oldObject, 'spec', field)
          if (spec[field] === undefined && before !== undefined) spec[field] = before
        }
        return
      }
      const name = textAt(spec, 'priorityClassName')
      const priority = name === '' ? byDefault() : byName(attributes, name)
      const given = numberAt(spec, 'priority')
      if (given !== undefined && given !== priority.value) {
        const why = `the integer value of priority (${given}) must not be provided in pod spec; priority admission controller computed ${priority.value} from the given PriorityClass name`
        throw forbidden({ group: '', resource: 'pods' }, attributes.name, why)
      }
      if (priority.name !== '') spec['priorityClassName'] = priority.name
      spec['priority'] = priority.value
      spec['preemptionPolicy'] ??= priority.preemptionPolicy
    },
  }
}

function resolved(priorityClass: unknown): ResolvedPriority {
  const policy = textAt(priorityClass, 'preemptionPolicy')
  return {
    name: textAt(priorityClass, 'metadata', 'name'),
    value: numberAt(priorityClass, 'value') ?? 0,
    preemptionPolicy: policy === '' ? 'PreemptLowerPriority' : policy,
  }
}
