import type { ObjectValue } from '../../schemas/index.ts'
import { timestamp } from '../object-store/object-meta.ts'
import type { Cause } from '../types.ts'
import { duplicate, forbiddenField, invalidValue, required } from '../validation/field-error.ts'
import { validateCidr } from '../validation/ip-address.ts'
import { labelValueProblems, qualifiedNameProblems } from '../validation/names.ts'
import {
  copyValue,
  ensureObject,
  numberAt,
  objectAt,
  objectsAt,
  record,
  setOrRemove,
  textAt,
  textsAt,
  valueAt,
} from '../validation/object-fields.ts'
import { sameRaw } from '../validation/semantic-equality.ts'
import type { KindRules } from './kind-rules.ts'
import { appendAll } from '../append.ts'

/** Kinds of which only few things need to be said. */

const approvalTypes = new Set(['Approved', 'Denied', 'Failed'])

/** kubernetes pkg/registry/certificates: who asks is taken from the request, and only approvers approve. */
export const certificateSigningRequestRules: KindRules = {
  prepareForCreate(object, context) {
    const spec = ensureObject(object, 'spec')
    spec['username'] = context.user.name
    setOrRemove(spec, 'uid', context.user.uid === '' ? undefined : context.user.uid)
    setOrRemove(spec, 'groups', context.user.groups.length === 0 ? undefined : [...context.user.groups])
    const extra = Object.entries(context.user.extra)
    const copied = record(Object.fromEntries(extra.map(([key, values]) => [key, [...values]])))
    setOrRemove(spec, 'extra', extra.length === 0 ? undefined : copied)
  },
  prepareForUpdate(object, old) {
    object['spec'] = copyValue(old['spec'])
  },
  validate(object) {
    const causes: Cause[] = []
    if (textAt(object, 'spec', 'request') === '') causes.push(required('spec.request'))
    const usages = textsAt(object, 'spec', 'usages')
    if (usages.length === 0) causes.push(required('spec.usages', 'usages must be specified'))
    const signer = textAt(object, 'spec', 'signerName')
    if (signer === '') causes.push(required('spec.signerName'))
    else if (signer.split('/').length !== 2) {
      causes.push(
        invalidValue(
          'spec.signerName',
          signer,
          'must be a fully qualified domain and path of the form "example.com/signer-name"',
        ),
      )
    }
    return causes
  },
  subresources: {
    approval: {
      prepare(object, sent) {
        setOrRemove(ensureObject(object, 'status'), 'conditions', valueAt(sent, 'status', 'conditions'))
      },
      validate(object, old) {
        const kept = (type: string): readonly unknown[] =>
          objectsAt(object, 'status', 'conditions').filter((condition) => textAt(condition, 'type') === type)
        return objectsAt(old, 'status', 'conditions')
          .map((condition) => textAt(condition, 'type'))
          .filter((type) => approvalTypes.has(type) && kept(type).length === 0)
          .map((type) =>
            forbiddenField('status.conditions', `updates may not remove a condition of type ${JSON.stringify(type)}`),
          )
      },
    },
  },
}

/** Custom resources are not served yet; definitions are kept, checked for what every reader relies on. */
export const customResourceDefinitionRules: KindRules = {
  prepareForCreate(object) {
    const versions = objectsAt(object, 'spec', 'versions')
    const stored = versions.filter((version) => version['storage'] === true).map((version) => textAt(version, 'name'))
    object['status'] = record({
      acceptedNames: record({ plural: '', kind: '' }),
      storedVersions: stored.slice(0, 1),
    })
  },
  validate(object) {
    const spec = objectAt(object, 'spec')
    const causes: Cause[] = []
    const name = textAt(object, 'metadata', 'name')
    const expected = `${textAt(spec, 'names', 'plural')}.${textAt(spec, 'group')}`
    if (name !== expected) causes.push(invalidValue('metadata.name', name, 'must be spec.names.plural+"."+spec.group'))
    for (const path of [['group'], ['scope'], ['names', 'plural'], ['names', 'kind']]) {
      if (textAt(spec, ...path) === '') causes.push(required(`spec.${path.join('.')}`))
    }
    const versions = objectsAt(spec, 'versions')
    if (versions.filter((version) => version['storage'] === true).length !== 1) {
      causes.push(
        invalidValue(
          'spec.versions',
          versions.map((version) => ({ name: textAt(version, 'name'), storage: version['storage'] === true })),
          'must have exactly one version marked as storage version',
        ),
      )
    }
    for (const [index, version] of versions.entries()) {
      if (objectAt(version, 'schema', 'openAPIV3Schema') === undefined) {
        causes.push(required(`spec.versions[${index}].schema.openAPIV3Schema`, 'schemas are required'))
      }
    }
    return causes
  },
}

export const leaseRules: KindRules = {
  validate(object) {
    const causes: Cause[] = []
    const duration = numberAt(object, 'spec', 'leaseDurationSeconds')
    if (duration !== undefined && duration <= 0) {
      causes.push(invalidValue('spec.leaseDurationSeconds', duration, 'must be greater than 0'))
    }
    const transitions = numberAt(object, 'spec', 'leaseTransitions') ?? 0
    if (transitions < 0) {
      causes.push(invalidValue('spec.leaseTransitions', transitions, 'must be greater than or equal to 0'))
    }
    return causes
  },
}

/** An Event must lie in the namespace of what it is about; events of cluster objects lie in "default". */
export const eventRules: KindRules = {
  validate(object) {
    const namespace = textAt(object, 'metadata', 'namespace')
    const involved = textAt(object, 'involvedObject', 'namespace')
    if (involved === '' ? namespace === 'default' || namespace === 'kube-system' : involved === namespace) return []
    return [invalidValue('involvedObject.namespace', involved, 'does not match event.namespace')]
  },
}

/** The real server puts taints under metadata in its texts. */
function validateTaints(object: ObjectValue): readonly Cause[] {
  const causes: Cause[] = []
  const seen = new Set<string>()
  for (const [index, taint] of objectsAt(object, 'spec', 'taints').entries()) {
    const at = `metadata.taints[${index}]`
    const key = textAt(taint, 'key')
    const value = textAt(taint, 'value')
    const effect = textAt(taint, 'effect')
    appendAll(
      causes,
      qualifiedNameProblems(key).map((problem) => invalidValue(`${at}.key`, key, problem)),
    )
    const problems = labelValueProblems(value)
    if (problems.length > 0) causes.push(invalidValue(`${at}.value`, value, problems.join(';')))
    if (effect === '') causes.push(required(`${at}.effect`))
    if (seen.has(`${key}:${effect}`)) {
      const cause = duplicate(at, taint)
      causes.push({ ...cause, message: `${cause.message}: taints must be unique by key and effect pair` })
    }
    seen.add(`${key}:${effect}`)
  }
  return causes
}

export const nodeRules: KindRules = {
  validate: (object) => [
    ...validateTaints(object),
    ...textsAt(object, 'spec', 'podCIDRs').flatMap((cidr, index) => validateCidr(cidr, `spec.podCIDRs[${index}]`)),
  ],
  validateUpdate(object, old) {
    const causes: Cause[] = []
    const ranges = valueAt(old, 'spec', 'podCIDRs')
    if (ranges !== undefined && !sameRaw(ranges, valueAt(object, 'spec', 'podCIDRs'))) {
      causes.push(forbiddenField('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'))
    }
    const provider = textAt(old, 'spec', 'providerID')
    if (provider !== '' && provider !== textAt(object, 'spec', 'providerID')) {
      causes.push(forbiddenField('spec.providerID', 'node updates may not change providerID except from "" to valid'))
    }
    return causes
  },
}

export const apiServiceRules: KindRules = {
  validate(object) {
    const expected = `${textAt(object, 'spec', 'version')}.${textAt(object, 'spec', 'group')}`
    const name = textAt(object, 'metadata', 'name')
    const causes: Cause[] = []
    if (name !== expected) {
      causes.push(
        invalidValue('metadata.name', name, `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(expected)}`),
      )
    }
    for (const field of ['groupPriorityMinimum', 'versionPriority']) {
      const value = numberAt(object, 'spec', field) ?? 0
      if (value <= 0) causes.push(invalidValue(`spec.${field}`, value, 'must be positive'))
    }
    return causes
  },
}

export const ipAddressRules: KindRules = {
  validate: (object: ObjectValue) =>
    objectAt(object, 'spec', 'parentRef') === undefined ? [required('spec.parentRef')] : [],
}

/** A taint of a device says since when: now, unless it was there before. */
function stampTaints(taints: readonly ObjectValue[], before: readonly ObjectValue[], now: Date): void {
  for (const taint of taints) {
    if (taint['timeAdded'] !== undefined) continue
    const known = before.find((old) =>
      ['key', 'value', 'effect'].every((field) => textAt(old, field) === textAt(taint, field)),
    )
    taint['timeAdded'] = known?.['timeAdded'] ?? timestamp(now)
  }
}

const taintsOfRule = (object: ObjectValue | undefined): readonly ObjectValue[] => {
  const taint = objectAt(object, 'spec', 'taint')
  return taint === undefined ? [] : [taint]
}
const taintsOfSlice = (object: ObjectValue | undefined): readonly ObjectValue[] =>
  objectsAt(object, 'spec', 'devices').flatMap((device) => objectsAt(device, 'taints'))

function taintingRules(taintsOf: (object: ObjectValue | undefined) => readonly ObjectValue[]): KindRules {
  return {
    prepareForCreate: (object, context) => stampTaints(taintsOf(object), [], context.now),
    prepareForUpdate: (object, old, context) => stampTaints(taintsOf(object), taintsOf(old), context.now),
  }
}

export const deviceTaintRuleRules = taintingRules(taintsOfRule)
export const resourceSliceRules = taintingRules(taintsOfSlice)
