import { type ObjectValue, typeDescriptor } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { forbiddenField, invalidValue, notSupported, required } from '../validation/field-error.ts'
import { isEmptySelector, selectorMatches, validateLabelSelector } from '../validation/label-selector.ts'
import { copyValue, isObject, labelsOf, numberAt, objectAt, textAt, valueAt } from '../validation/object-fields.ts'
import { validatePodTemplate } from '../validation/pod-spec.ts'
import { isNone, nonNegative, validateCountOrPercent } from '../validation/ranges.ts'
import { sameObject } from '../validation/semantic-equality.ts'
import type { KindRules } from './kind-rules.ts'
import { appendAll } from '../append.ts'

/** Kinds that run pods from a template (kubernetes pkg/apis/apps/validation, pkg/apis/core/validation). */

interface TemplateOwner {
  /** As the text about an empty selector calls it. */
  readonly called: string
  /** As the text about a deadline calls it. */
  readonly kind: string
}

function validateSelector(object: ObjectValue, owner: TemplateOwner): readonly Cause[] {
  const selector = valueAt(object, 'spec', 'selector')
  if (selector === undefined) return [required('spec.selector')]
  const causes: Cause[] = [...validateLabelSelector(selector, 'spec.selector')]
  if (isEmptySelector(selector)) {
    causes.push(invalidValue('spec.selector', selector, `empty selector is invalid for ${owner.called}`))
  }
  return causes
}

function validateTemplate(object: ObjectValue, selector: unknown, kind: string): readonly Cause[] {
  const template = valueAt(object, 'spec', 'template')
  const labels = isObject(template) ? labelsOf(template) : {}
  const causes: Cause[] = []
  if (!isEmptySelector(selector) && !selectorMatches(selector, labels)) {
    causes.push(invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'))
  }
  appendAll(causes, validatePodTemplate(template, 'spec.template'))
  const restartPolicy = textAt(template, 'spec', 'restartPolicy')
  if (restartPolicy !== 'Always' && restartPolicy !== '') {
    causes.push(notSupported('spec.template.spec.restartPolicy', restartPolicy, ['Always']))
  }
  if (valueAt(template, 'spec', 'activeDeadlineSeconds') !== undefined) {
    const text = `activeDeadlineSeconds in ${kind} is not Supported`
    causes.push(forbiddenField('spec.template.spec.activeDeadlineSeconds', text))
  }
  return causes
}

function validateNonNegative(object: ObjectValue, fields: readonly string[]): readonly Cause[] {
  return fields.flatMap((field) => {
    const value = numberAt(object, 'spec', field) ?? 0
    return value < 0 ? [invalidValue(`spec.${field}`, value, 'must be greater than or equal to 0')] : []
  })
}

function workloadRules(owner: TemplateOwner, validate?: KindRules['validate']): KindRules {
  return {
    validate(object) {
      return [
        ...validateNonNegative(object, ['replicas', 'minReadySeconds', 'revisionHistoryLimit']),
        ...validateSelector(object, owner),
        ...validateTemplate(object, valueAt(object, 'spec', 'selector'), owner.kind),
        ...(validate?.(object) ?? []),
      ]
    },
  }
}

/** At least one way to make progress: a pod less, or a pod more. */
function validateRollingUpdate(update: ObjectValue | undefined, at: string): readonly Cause[] {
  if (update === undefined) return []
  const { maxUnavailable, maxSurge } = update
  const causes: Cause[] = [
    ...validateCountOrPercent(maxUnavailable, `${at}.maxUnavailable`, false),
    ...validateCountOrPercent(maxSurge, `${at}.maxSurge`, true),
  ]
  if (isNone(maxUnavailable) && isNone(maxSurge)) {
    causes.push(invalidValue(`${at}.maxUnavailable`, maxUnavailable, 'may not be 0 when `maxSurge` is 0'))
  }
  return causes
}

export const deploymentRules = workloadRules({ called: 'deployment', kind: 'ReplicaSet' }, (object) => {
  const causes: Cause[] = []
  const strategy = objectAt(object, 'spec', 'strategy')
  if (textAt(strategy, 'type') === 'Recreate' && isObject(valueAt(strategy, 'rollingUpdate'))) {
    const text = "may not be specified when strategy `type` is 'Recreate'"
    causes.push(forbiddenField('spec.strategy.rollingUpdate', text))
  }
  if (textAt(strategy, 'type') === 'RollingUpdate') {
    appendAll(causes, validateRollingUpdate(objectAt(strategy, 'rollingUpdate'), 'spec.strategy.rollingUpdate'))
  }
  appendAll(causes, validateNonNegative(object, ['progressDeadlineSeconds']))
  const deadline = numberAt(object, 'spec', 'progressDeadlineSeconds')
  const ready = numberAt(object, 'spec', 'minReadySeconds') ?? 0
  if (deadline !== undefined && deadline <= ready) {
    causes.push(invalidValue('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds'))
  }
  return causes
})

export const replicaSetRules = workloadRules({ called: 'deployment', kind: 'ReplicaSet' })
export const daemonSetRules = workloadRules({ called: 'daemonset', kind: 'DaemonSet' }, (object) => {
  const strategy = objectAt(object, 'spec', 'updateStrategy')
  if (textAt(strategy, 'type') !== 'RollingUpdate') return []
  const at = 'spec.updateStrategy.rollingUpdate'
  const update = objectAt(strategy, 'rollingUpdate')
  if (update === undefined) return [required(at)]
  const { maxUnavailable, maxSurge } = update
  const causes: Cause[] = [
    ...validateCountOrPercent(maxUnavailable, `${at}.maxUnavailable`, false),
    ...validateCountOrPercent(maxSurge, `${at}.maxSurge`, false),
  ]
  if (isNone(maxUnavailable) === isNone(maxSurge)) {
    causes.push(
      isNone(maxSurge)
        ? required(`${at}.maxUnavailable`, 'cannot be 0 when maxSurge is 0')
        : invalidValue(`${at}.maxSurge`, maxSurge, 'may not be set when maxUnavailable is non-zero'),
    )
  }
  return causes
})

const mutableStatefulSetFields = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
] as const

export const statefulSetRules: KindRules = {
  ...workloadRules({ called: 'statefulset', kind: 'StatefulSet' }, (object) => {
    const strategy = objectAt(object, 'spec', 'updateStrategy')
    const at = 'spec.updateStrategy'
    const update = objectAt(strategy, 'rollingUpdate')
    const policy = textAt(object, 'spec', 'podManagementPolicy')
    const causes: Cause[] = []
    if (policy !== '' && policy !== 'OrderedReady' && policy !== 'Parallel') {
      causes.push(invalidValue('spec.podManagementPolicy', policy, "must be 'OrderedReady' or 'Parallel'"))
    }
    switch (textAt(strategy, 'type')) {
      case 'RollingUpdate':
        appendAll(causes, nonNegative(numberAt(update, 'partition'), `${at}.rollingUpdate.partition`))
        appendAll(
          causes,
          validateCountOrPercent(update?.['maxUnavailable'], `${at}.rollingUpdate.maxUnavailable`, false),
        )
        break
      case 'OnDelete':
        if (update !== undefined) {
          causes.push(invalidValue(`${at}.rollingUpdate`, update, "only allowed for updateStrategy 'RollingUpdate'"))
        }
        break
      case '':
        causes.push(required(at))
        break
      case 'Recreate':
        // Known to the type, but its feature gate is off (StatefulSetRecreateStrategy).
        causes.push(invalidValue(at, strategy, "must be 'RollingUpdate' or 'OnDelete'"))
        break
      default:
        break
    }
    appendAll(causes, nonNegative(numberAt(object, 'spec', 'ordinals', 'start'), 'spec.ordinals.start'))
    return causes
  }),
  validateUpdate(object, old) {
    const spec = objectAt(object, 'spec') ?? {}
    const allowed = copyValue(objectAt(old, 'spec') ?? {})
    for (const field of mutableStatefulSetFields) {
      if (spec[field] === undefined) delete allowed[field]
      else allowed[field] = spec[field]
    }
    if (sameObject(spec, allowed, typeDescriptor('io.k8s.api.apps.v1.StatefulSetSpec'))) return []
    const text =
      "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
    return [forbiddenField('spec', text)]
  },
}

/** Before apps/v1 a selector was a plain map, defaulted from the template's labels. */
export const replicationControllerRules: KindRules = {
  validate(object) {
    const selector = { matchLabels: valueAt(object, 'spec', 'selector') }
    const causes: Cause[] = [...validateNonNegative(object, ['replicas', 'minReadySeconds'])]
    if (isEmptySelector(selector)) causes.push(required('spec.selector'))
    if (objectAt(object, 'spec', 'template') === undefined) causes.push(required('spec.template'))
    else appendAll(causes, validateTemplate(object, selector, 'ReplicationController'))
    return causes
  },
}

export const podTemplateRules: KindRules = {
  validate: (object) => validatePodTemplate(valueAt(object, 'template'), 'template'),
}

export const podDisruptionBudgetRules: KindRules = {
  validate(object) {
    const spec = objectAt(object, 'spec') ?? {}
    const causes: Cause[] = [...validateLabelSelector(spec['selector'], 'spec.selector')]
    if (spec['minAvailable'] !== undefined && spec['maxUnavailable'] !== undefined) {
      causes.push(invalidValue('spec', spec, 'minAvailable and maxUnavailable cannot be both set'))
    }
    for (const field of ['minAvailable', 'maxUnavailable']) {
      appendAll(causes, validateCountOrPercent(spec[field], `spec.${field}`, false))
    }
    return causes
  },
}

export const horizontalPodAutoscalerRules: KindRules = {
  validate(object) {
    const causes: Cause[] = []
    const spec = objectAt(object, 'spec')
    const min = numberAt(spec, 'minReplicas')
    const max = numberAt(spec, 'maxReplicas') ?? 0
    if (min !== undefined && min < 1) {
      causes.push(invalidValue('spec.minReplicas', min, 'must be greater than or equal to 1'))
    }
    if (max < 1) causes.push(invalidValue('spec.maxReplicas', max, 'must be greater than 0'))
    if (min !== undefined && max < min) {
      causes.push(invalidValue('spec.maxReplicas', max, 'must be greater than or equal to `minReplicas`'))
    }
    for (const field of ['kind', 'name']) {
      if (textAt(spec, 'scaleTargetRef', field) === '') causes.push(required(`spec.scaleTargetRef.${field}`))
    }
    return causes
  },
}
