import { type ObjectValue, typeDescriptor } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { forbiddenField, invalidValue, notSupported, required } from '../validation/field-error.ts'
import { isEmptySelector, selectorMatches, validateLabelSelector } from '../validation/label-selector.ts'
import {
  copyValue,
  entriesAt,
  isObject,
  labelsOf,
  numberAt,
  objectAt,
  textAt,
  valueAt,
} from '../validation/object-fields.ts'
import { validatePodTemplate } from '../validation/pod-spec.ts'
import { sameObject } from '../validation/semantic-equality.ts'
import type { KindRules } from './kind-rules.ts'

/** Kinds that run pods from a template (kubernetes pkg/apis/apps/validation, pkg/apis/core/validation). */

interface TemplateOwner {
  /** As the text about an empty selector calls it. */
  readonly called: string
  readonly templateRequired: boolean
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

function validateTemplate(object: ObjectValue, selector: unknown): readonly Cause[] {
  const template = valueAt(object, 'spec', 'template')
  const labels = isObject(template) ? labelsOf(template) : {}
  const causes: Cause[] = []
  if (!isEmptySelector(selector) && !selectorMatches(selector, labels)) {
    causes.push(invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'))
  }
  causes.push(...validatePodTemplate(template, 'spec.template'))
  const restartPolicy = textAt(template, 'spec', 'restartPolicy')
  if (restartPolicy !== 'Always' && restartPolicy !== '') {
    causes.push(notSupported('spec.template.spec.restartPolicy', restartPolicy, ['Always']))
  }
  if (valueAt(template, 'spec', 'activeDeadlineSeconds') !== undefined) {
    const text = 'activeDeadlineSeconds in ReplicaSet is not Supported'
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
      const hasTemplate = objectAt(object, 'spec', 'template') !== undefined
      return [
        ...validateNonNegative(object, ['replicas', 'minReadySeconds', 'revisionHistoryLimit']),
        ...validateSelector(object, owner),
        ...(hasTemplate || owner.templateRequired ? validateTemplate(object, valueAt(object, 'spec', 'selector')) : []),
        ...(validate?.(object) ?? []),
      ]
    },
  }
}

export const deploymentRules = workloadRules({ called: 'deployment', templateRequired: true }, (object) => {
  const causes: Cause[] = []
  const strategy = objectAt(object, 'spec', 'strategy')
  if (textAt(strategy, 'type') === 'Recreate' && isObject(valueAt(strategy, 'rollingUpdate'))) {
    const text = "may not be specified when strategy `type` is 'Recreate'"
    causes.push(forbiddenField('spec.strategy.rollingUpdate', text))
  }
  const deadline = numberAt(object, 'spec', 'progressDeadlineSeconds')
  const ready = numberAt(object, 'spec', 'minReadySeconds') ?? 0
  if (deadline !== undefined && deadline <= ready) {
    causes.push(invalidValue('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds'))
  }
  return causes
})

export const replicaSetRules = workloadRules({ called: 'deployment', templateRequired: true })
export const daemonSetRules = workloadRules({ called: 'daemonset', templateRequired: true })

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
  ...workloadRules({ called: 'statefulset', templateRequired: true }),
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
    else causes.push(...validateTemplate(object, selector))
    return causes
  },
}

export const podTemplateRules: KindRules = {
  validate: (object) => validatePodTemplate(valueAt(object, 'template'), 'template'),
}

const controllerUidLabel = 'batch.kubernetes.io/controller-uid'
const jobNameLabel = 'batch.kubernetes.io/job-name'

/** A Job finds its pods by its own uid unless the client takes that on itself. */
function generateSelector(object: ObjectValue): void {
  const spec = objectAt(object, 'spec')
  if (spec === undefined || valueAt(spec, 'manualSelector') === true) return
  const uid = textAt(object, 'metadata', 'uid')
  const name = textAt(object, 'metadata', 'name')
  const template = ensure(spec, 'template')
  const labels = ensure(ensure(template, 'metadata'), 'labels')
  labels[controllerUidLabel] ??= uid
  labels[jobNameLabel] ??= name
  labels['controller-uid'] ??= uid
  labels['job-name'] ??= name
  const matchLabels = ensure(ensure(spec, 'selector'), 'matchLabels')
  matchLabels[controllerUidLabel] ??= uid
}

/** A Job without labels of its own has those of its pods, the ones that find them included. */
function labelsOfTemplate(object: ObjectValue): void {
  const labels = objectAt(object, 'spec', 'template', 'metadata', 'labels')
  const metadata = ensure(object, 'metadata')
  if (labels === undefined || entriesAt(metadata, 'labels').length > 0) return
  metadata['labels'] = copyValue(labels)
}

function ensure(parent: ObjectValue, field: string): ObjectValue {
  const value = parent[field]
  if (isObject(value)) return value
  const made = Object.create(null) as ObjectValue
  parent[field] = made
  return made
}

function validateJobSpec(spec: ObjectValue | undefined, at: string): readonly Cause[] {
  const causes: Cause[] = []
  for (const field of [
    'parallelism',
    'completions',
    'activeDeadlineSeconds',
    'backoffLimit',
    'ttlSecondsAfterFinished',
  ]) {
    const value = numberAt(spec, field) ?? 0
    if (value < 0) causes.push(invalidValue(`${at}.${field}`, value, 'must be greater than or equal to 0'))
  }
  if (textAt(spec, 'completionMode') === 'Indexed' && valueAt(spec, 'completions') === undefined) {
    causes.push(required(`${at}.completions`, 'when completion mode is Indexed'))
  }
  const template = valueAt(spec, 'template')
  causes.push(...validatePodTemplate(template, `${at}.template`))
  const restartPolicy = textAt(template, 'spec', 'restartPolicy')
  if (restartPolicy !== 'OnFailure' && restartPolicy !== 'Never') {
    causes.push(notSupported(`${at}.template.spec.restartPolicy`, restartPolicy, ['OnFailure', 'Never']))
  }
  return causes
}

export const jobRules: KindRules = {
  prepareForCreate(object) {
    generateSelector(object)
    labelsOfTemplate(object)
  },
  prepareForUpdate: labelsOfTemplate,
  validate(object) {
    const spec = objectAt(object, 'spec')
    const selector = valueAt(spec, 'selector')
    const causes: Cause[] = [...validateLabelSelector(selector, 'spec.selector')]
    if (selector === undefined) causes.push(required('spec.selector'))
    const labels = labelsOf(valueAt(spec, 'template'))
    if (selector !== undefined && !selectorMatches(selector, labels)) {
      causes.push(invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'))
    }
    return [...causes, ...validateJobSpec(spec, 'spec')]
  },
  validateUpdate(object, old) {
    const causes: Cause[] = []
    const template = valueAt(object, 'spec', 'template')
    const type = typeDescriptor('io.k8s.api.core.v1.PodTemplateSpec')
    // A suspended Job that has not started may still be told where to run.
    const unstarted = valueAt(old, 'spec', 'suspend') === true && valueAt(old, 'status', 'startTime') === undefined
    if (!unstarted && !sameObject(template, valueAt(old, 'spec', 'template'), type)) {
      causes.push(invalidValue('spec.template', template, 'field is immutable'))
    }
    const completions = valueAt(object, 'spec', 'completions')
    const indexed = textAt(object, 'spec', 'completionMode') === 'Indexed'
    if (!indexed && completions !== valueAt(old, 'spec', 'completions')) {
      causes.push(invalidValue('spec.completions', completions, 'field is immutable'))
    }
    return causes
  },
}

const cronJobNameMax = 52

export const cronJobRules: KindRules = {
  validate(object) {
    const causes: Cause[] = []
    const name = textAt(object, 'metadata', 'name')
    if (name.length > cronJobNameMax) {
      // Jobs are named after it with a timestamp of 11 characters behind.
      causes.push(invalidValue('metadata.name', name, 'must be no more than 52 characters'))
    }
    const schedule = textAt(object, 'spec', 'schedule')
    const problem = schedule === '' ? undefined : scheduleProblem(schedule)
    if (problem !== undefined) causes.push(invalidValue('spec.schedule', schedule, problem))
    const spec = objectAt(object, 'spec', 'jobTemplate', 'spec')
    if (valueAt(spec, 'manualSelector') === true) {
      causes.push(notSupported('spec.jobTemplate.spec.manualSelector', true, ['nil', 'false']))
    }
    for (const field of ['startingDeadlineSeconds', 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit']) {
      const value = numberAt(object, 'spec', field) ?? 0
      if (value < 0) causes.push(invalidValue(`spec.${field}`, value, 'must be greater than or equal to 0'))
    }
    return [...causes, ...validateJobSpec(spec, 'spec.jobTemplate.spec')]
  },
}

const scheduleWords = new Set(['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'])
const scheduleField = /^(\*|\?|[\w]+)(-\w+)?(\/\d+)?(,(\*|[\w]+)(-\w+)?(\/\d+)?)*$/

/** Five fields of numbers, names, ranges, steps and lists, or a word such as @daily. */
function scheduleProblem(schedule: string): string | undefined {
  if (schedule.includes('TZ')) return 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'
  if (schedule.startsWith('@')) {
    if (scheduleWords.has(schedule) || /^@every \d+(\.\d+)?(ns|us|ms|s|m|h)/.test(schedule)) return undefined
    return `unrecognized descriptor: ${schedule}`
  }
  const fields = schedule.split(/\s+/).filter((field) => field !== '')
  if (fields.length !== 5) return `expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`
  const limits = [59, 23, 31, 12, 6]
  for (const [index, field] of fields.entries()) {
    if (!scheduleField.test(field))
      return `failed to parse int from ${field}: strconv.Atoi: parsing ${JSON.stringify(field)}: invalid syntax`
    for (const number of field.replaceAll(/\/\d+/g, '').match(/\d+/g) ?? []) {
      const limit = limits[index] ?? 0
      if (Number(number) > limit) return `end of range (${number}) above maximum (${limit}): ${field}`
    }
  }
  return undefined
}

export const podDisruptionBudgetRules: KindRules = {
  validate(object) {
    const spec = objectAt(object, 'spec') ?? {}
    const causes: Cause[] = [...validateLabelSelector(spec['selector'], 'spec.selector')]
    if (spec['minAvailable'] !== undefined && spec['maxUnavailable'] !== undefined) {
      causes.push(invalidValue('spec', spec, 'minAvailable and maxUnavailable cannot be both set'))
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
