import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { invalidValue, notSupported, required } from '../validation/field-error.ts'
import { validateLabelSelector } from '../validation/label-selector.ts'
import { dnsSubdomainProblems, pathSegmentProblems } from '../validation/names.ts'
import { objectAt, objectsAt, textAt, textsAt } from '../validation/object-fields.ts'
import type { KindRules } from './kind-rules.ts'
import { appendAll } from '../append.ts'

const rbacGroup = 'rbac.authorization.k8s.io'

/** kubernetes pkg/apis/rbac/validation. */
function roleRules(namespaced: boolean): KindRules {
  return {
    validate: (object) => [
      ...objectsAt(object, 'rules').flatMap((rule, index) => validateRule(rule, `rules[${index}]`, namespaced)),
      ...(namespaced ? [] : validateAggregation(object)),
    ],
  }
}

function validateAggregation(object: ObjectValue): readonly Cause[] {
  if (objectAt(object, 'aggregationRule') === undefined) return []
  const at = 'aggregationRule.clusterRoleSelectors'
  const selectors = objectsAt(object, 'aggregationRule', 'clusterRoleSelectors')
  if (selectors.length === 0) {
    return [required(at, 'at least one clusterRoleSelector required if aggregationRule is non-nil')]
  }
  return selectors.flatMap((selector, index) => validateLabelSelector(selector, `${at}[${index}]`))
}

function validateRule(rule: ObjectValue, at: string, namespaced: boolean): readonly Cause[] {
  const causes: Cause[] = []
  if (textsAt(rule, 'verbs').length === 0) causes.push(required(`${at}.verbs`, 'verbs must contain at least one value'))
  const urls = textsAt(rule, 'nonResourceURLs')
  if (urls.length > 0) {
    if (namespaced) {
      causes.push(invalidValue(`${at}.nonResourceURLs`, urls, 'namespaced rules cannot apply to non-resource URLs'))
    }
    if (['apiGroups', 'resources', 'resourceNames'].some((field) => textsAt(rule, field).length > 0)) {
      causes.push(
        invalidValue(
          `${at}.nonResourceURLs`,
          urls,
          'rules cannot apply to both regular resources and non-resource URLs',
        ),
      )
    }
    return causes
  }
  if (textsAt(rule, 'apiGroups').length === 0) {
    causes.push(required(`${at}.apiGroups`, 'resource rules must supply at least one api group'))
  }
  if (textsAt(rule, 'resources').length === 0) {
    causes.push(required(`${at}.resources`, 'resource rules must supply at least one resource'))
  }
  return causes
}

function bindingRules(roleKinds: readonly string[], namespaced: boolean): KindRules {
  return {
    validate(object) {
      const causes: Cause[] = []
      const ref = objectAt(object, 'roleRef')
      const group = textAt(ref, 'apiGroup')
      if (group !== rbacGroup) causes.push(notSupported('roleRef.apiGroup', group, [rbacGroup]))
      if (!roleKinds.includes(textAt(ref, 'kind'))) {
        causes.push(notSupported('roleRef.kind', textAt(ref, 'kind'), roleKinds))
      }
      const name = textAt(ref, 'name')
      if (name === '') causes.push(required('roleRef.name'))
      else
        appendAll(
          causes,
          pathSegmentProblems(name).map((problem) => invalidValue('roleRef.name', name, problem)),
        )
      const subjects = objectsAt(object, 'subjects')
      appendAll(
        causes,
        subjects.flatMap((subject, index) => validateSubject(subject, `subjects[${index}]`, namespaced)),
      )
      return causes
    },
    validateUpdate(object, old) {
      const same = ['apiGroup', 'kind', 'name'].every(
        (field) => textAt(object, 'roleRef', field) === textAt(old, 'roleRef', field),
      )
      return same ? [] : [invalidValue('roleRef', objectAt(object, 'roleRef'), 'cannot change roleRef')]
    },
  }
}

function validateSubject(subject: ObjectValue, at: string, namespaced: boolean): readonly Cause[] {
  const causes: Cause[] = []
  const group = textAt(subject, 'apiGroup')
  const name = textAt(subject, 'name')
  if (name === '') causes.push(required(`${at}.name`))
  switch (textAt(subject, 'kind')) {
    case 'ServiceAccount':
      if (name !== '') {
        appendAll(
          causes,
          dnsSubdomainProblems(name).map((problem) => invalidValue(`${at}.name`, name, problem)),
        )
      }
      if (group !== '') causes.push(notSupported(`${at}.apiGroup`, group, ['']))
      if (!namespaced && textAt(subject, 'namespace') === '') causes.push(required(`${at}.namespace`))
      break
    case 'User':
    case 'Group':
      if (group !== rbacGroup) causes.push(notSupported(`${at}.apiGroup`, group, [rbacGroup]))
      break
    default:
      causes.push(notSupported(`${at}.kind`, textAt(subject, 'kind'), ['ServiceAccount', 'User', 'Group']))
  }
  return causes
}

export const roleKindRules = roleRules(true)
export const clusterRoleRules = roleRules(false)
export const roleBindingRules = bindingRules(['Role', 'ClusterRole'], true)
export const clusterRoleBindingRules = bindingRules(['ClusterRole'], false)
