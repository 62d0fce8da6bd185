import {
  applyDefaults,
  dropDisabledFields,
  type ObjectValue,
  type ResourceInfo,
  type TypeDescriptor,
  type TypeRef,
} from '../../schemas/index.ts'
import { storageType } from '../object-store/stored-codec.ts'
import type { Cause, Strategy, StrategyContext } from '../types.ts'
import { validateDeclared } from '../validation/declared.ts'
import { distinct, immutableText, invalidValue } from '../validation/field-error.ts'
import { copyValue, isObject, metadataOf, setOrRemove, valueAt } from '../validation/object-fields.ts'
import { sameFieldOf, sameRaw } from '../validation/semantic-equality.ts'
import type { KindRules, SubresourceRules } from './kind-rules.ts'
import { factsOf } from './kind-table.ts'

/**
 * The strategy of any kind, from its descriptor and its row in the kind table: status belongs to /status, everything else
 * to the main resource. `rules` adds what is peculiar.
 */
export function genericStrategy(resource: ResourceInfo, rules: KindRules): Strategy {
  const facts = factsOf(resource)
  const labels = facts.fieldLabels ?? {}
  const selectable = Object.entries({ ...labels, ...facts.sharedFieldLabels })
  const labelPaths = selectable.map(([label, path]) => ({ label, path, steps: path.split('.') }))
  const hasStatus = resource.subresources.some((subresource) => subresource.name === 'status')
  // Kinds that are not stored (reviews) have no storage version to look at.
  const type = (): TypeDescriptor => storageType(resource)

  function prepareSubresource(object: ObjectValue, old: ObjectValue, context: StrategyContext): void {
    const sent = copyValue(object)
    const metadata = object['metadata']
    for (const field of Object.keys(object)) delete object[field]
    Object.assign(object, copyValue(old))
    object['metadata'] = metadata
    const rule =
      rules.subresources?.[context.subresource] ?? (hasStatus ? statusRules(facts.statusKeeps ?? []) : undefined)
    if (rule === undefined) throw new Error(`${resource.plural} have no subresource ${context.subresource}`)
    rule.prepare(object, sent, old, context)
  }

  function validateSubresource(object: ObjectValue, old: ObjectValue, context: StrategyContext): readonly Cause[] {
    return distinct(rules.subresources?.[context.subresource]?.validate?.(object, old) ?? [])
  }

  return {
    allowCreateOnUpdate: facts.createOnUpdate ?? false,
    allowUnconditionalUpdate: facts.conditionalUpdateOnly !== true,
    tracksGeneration: facts.tracksGeneration ?? false,
    returnsDeletedObject: facts.returnsDeletedObject ?? false,
    ...(rules.graceSeconds === undefined ? {} : { graceSeconds: rules.graceSeconds }),
    applyDefaults: (object) => applyDefaults(object, type()),
    prepareForCreate(object, context) {
      dropDisabledFields(object, type())
      if (hasStatus && facts.keepsStatusOnCreate !== true) delete object['status']
      rules.prepareForCreate?.(object, context)
    },
    prepareForUpdate(object, old, context) {
      dropDisabledFields(object, type())
      if (context.subresource !== '') {
        prepareSubresource(object, old, context)
        return
      }
      if (hasStatus) setOrRemove(object, 'status', copyValue(old['status']))
      rules.prepareForUpdate?.(object, old, context)
    },
    validate: (object) =>
      distinct([
        ...validateDeclared(object, type()),
        ...(rules.validate?.(object) ?? []),
        ...(rules.validateCreate?.(object) ?? []),
      ]),
    validateUpdate(object, old, context) {
      if (context.subresource !== '') return validateSubresource(object, old, context)
      return distinct([
        ...validateDeclared(object, type()),
        ...(rules.validate?.(object) ?? []),
        ...(facts.immutable ?? []).flatMap((path) => validateImmutable(object, old, path, type())),
        ...(rules.validateUpdate?.(object, old) ?? []),
      ])
    },
    selectableFields(object) {
      const fields = Object.create(null) as Record<string, string>
      for (const { label, path, steps } of labelPaths) fields[label] = fieldText(valueAt(object, ...steps), path)
      return fields
    },
    fieldLabels: Object.keys(labels),
    ...(rules.claims === undefined ? {} : { claims: rules.claims }),
    ...(rules.releases === undefined ? {} : { releases: rules.releases }),
  }
}

/** Flags and counts read as Go prints their zero value. */
function fieldText(value: unknown, path: string): string {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || typeof value === 'number' || typeof value === 'bigint') return String(value)
  if (path === 'spec.unschedulable' || path === 'spec.hostNetwork') return 'false'
  return path === 'status.replicas' || path === 'status.succeeded' ? '0' : ''
}

function statusRules(keeps: readonly ('labels' | 'ownerReferences')[]): SubresourceRules {
  return {
    prepare(object, sent, old) {
      setOrRemove(object, 'status', sent['status'])
      const metadata = metadataOf(object)
      for (const field of keeps) setOrRemove(metadata, field, copyValue(valueAt(old, 'metadata', field)))
    },
  }
}

export function validateImmutable(
  object: ObjectValue,
  old: ObjectValue,
  path: string,
  type: TypeDescriptor,
): readonly Cause[] {
  const steps = path.split('.')
  const last = steps.pop() ?? ''
  let parent: TypeDescriptor | undefined = type
  for (const step of steps) {
    const ref: TypeRef | undefined = parent?.byJsonName.get(step)?.type
    parent = ref?.is === 'message' ? ref.descriptor() : undefined
  }
  const value = valueAt(object, ...steps, last)
  const before = valueAt(old, ...steps, last)
  const same = parent === undefined ? sameRaw(value, before) : sameFieldOf(value, before, parent, last)
  return same ? [] : [invalidValue(path, isObject(value) ? withoutEmpty(value) : value, immutableText)]
}

/** As the value's JSON would show it: absent fields are not there. */
function withoutEmpty(value: ObjectValue): ObjectValue {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined))
}
