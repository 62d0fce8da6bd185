import { type ObjectValue, typeDescriptor } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { scheduleProblem, timeZoneProblem } from '../validation/cron-schedule.ts'
import { invalidValue, notSupported, required } from '../validation/field-error.ts'
import { selectorMatches, validateLabelSelector } from '../validation/label-selector.ts'
import {
  copyValue,
  ensureObject,
  entriesAt,
  flagAt,
  labelsOf,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from '../validation/object-fields.ts'
import { validatePodTemplate } from '../validation/pod-spec.ts'
import { sameObject } from '../validation/semantic-equality.ts'
import type { KindRules } from './kind-rules.ts'
import { appendAll } from '../append.ts'

/** Jobs and CronJobs: pods that come to an end (kubernetes pkg/apis/batch/validation). */

const controllerUidLabel = 'batch.kubernetes.io/controller-uid'
const jobNameLabel = 'batch.kubernetes.io/job-name'

/** A Job finds its pods by its own uid unless the client takes that on itself. */
function generateSelector(object: ObjectValue): void {
  const spec = objectAt(object, 'spec')
  if (spec === undefined || valueAt(spec, 'manualSelector') === true) return
  const uid = textAt(object, 'metadata', 'uid')
  const name = textAt(object, 'metadata', 'name')
  const template = ensureObject(spec, 'template')
  const labels = ensureObject(ensureObject(template, 'metadata'), 'labels')
  labels[controllerUidLabel] ??= uid
  labels[jobNameLabel] ??= name
  labels['controller-uid'] ??= uid
  labels['job-name'] ??= name
  const matchLabels = ensureObject(ensureObject(spec, 'selector'), 'matchLabels')
  matchLabels[controllerUidLabel] ??= uid
}

/** A Job without labels of its own has those of its pods, the ones that find them included. */
function labelsOfTemplate(object: ObjectValue): void {
  const labels = objectAt(object, 'spec', 'template', 'metadata', 'labels')
  const metadata = ensureObject(object, 'metadata')
  if (labels === undefined || entriesAt(metadata, 'labels').length > 0) return
  metadata['labels'] = copyValue(labels)
}

/** Before 1.27 the label had no prefix. */
function isGeneratedSelector(selector: unknown): boolean {
  const names = entriesAt(selector, 'matchLabels').map(([name]) => name)
  const [name, ...more] = names
  const known = name === controllerUidLabel || name === 'controller-uid'
  return known && more.length === 0 && objectsAt(selector, 'matchExpressions').length === 0
}

/** Indexed Jobs keep one number per index in their status. */
const indexedParallelismMax = 100_000

function validateJobSpec(spec: ObjectValue | undefined, at: string): readonly Cause[] {
  const causes: Cause[] = []
  for (const field of [
    'parallelism',
    'completions',
    'activeDeadlineSeconds',
    'backoffLimit',
    'backoffLimitPerIndex',
    'maxFailedIndexes',
    'ttlSecondsAfterFinished',
  ]) {
    const value = numberAt(spec, field) ?? 0
    if (value < 0) causes.push(invalidValue(`${at}.${field}`, value, 'must be greater than or equal to 0'))
  }
  if (textAt(spec, 'completionMode') === 'Indexed' && valueAt(spec, 'completions') === undefined) {
    causes.push(required(`${at}.completions`, 'when completion mode is Indexed'))
  }
  if (textAt(spec, 'completionMode') === 'Indexed') {
    const parallelism = numberAt(spec, 'parallelism') ?? 0
    if (parallelism > indexedParallelismMax) {
      const text = `must be less than or equal to ${indexedParallelismMax} when completion mode is Indexed`
      causes.push(invalidValue(`${at}.parallelism`, parallelism, text))
    }
  } else {
    for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes']) {
      if (valueAt(spec, field) === undefined) continue
      causes.push(invalidValue(`${at}.${field}`, numberAt(spec, field), 'requires indexed completion mode'))
    }
  }
  const template = valueAt(spec, 'template')
  appendAll(causes, validatePodTemplate(template, `${at}.template`))
  const restartPolicy = textAt(template, 'spec', 'restartPolicy')
  if (restartPolicy === 'Always' || restartPolicy === '') {
    // The default of pods, which Jobs cannot have: nobody need have written it.
    causes.push(required(`${at}.template.spec.restartPolicy`, 'valid values: "OnFailure", "Never"'))
  } else if (restartPolicy !== 'OnFailure' && restartPolicy !== 'Never') {
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
    else if (!flagAt(spec, 'manualSelector') && !isGeneratedSelector(selector)) {
      causes.push(invalidValue('spec.selector', selector, '`selector` not auto-generated'))
    }
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
    if (schedule === '') causes.push(required('spec.schedule'))
    if (problem !== undefined) causes.push(invalidValue('spec.schedule', schedule, problem))
    const zone = valueAt(object, 'spec', 'timeZone')
    const zoneProblem = typeof zone === 'string' ? timeZoneProblem(zone) : undefined
    if (zoneProblem !== undefined) causes.push(invalidValue('spec.timeZone', zone, zoneProblem))
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
