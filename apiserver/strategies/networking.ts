import type { Cause } from '../types.ts'
import { invalidValue, required } from '../validation/field-error.ts'
import { validateLabelSelector } from '../validation/label-selector.ts'
import { isObject, objectAt, objectsAt, textAt, textsAt, valueAt } from '../validation/object-fields.ts'
import type { KindRules } from './kind-rules.ts'

function validateBackend(backend: unknown, at: string): readonly Cause[] {
  if (!isObject(backend)) return []
  const service = objectAt(backend, 'service')
  const resource = objectAt(backend, 'resource')
  if (service === undefined && resource === undefined) {
    return [required(at, 'port name or number is required')]
  }
  if (service !== undefined && resource !== undefined) {
    return [invalidValue(at, '', 'cannot set both resource and service backends')]
  }
  if (service === undefined) return []
  const causes: Cause[] = []
  if (textAt(service, 'name') === '') causes.push(required(`${at}.service.name`))
  if (textAt(service, 'port', 'name') === '' && valueAt(service, 'port', 'number') === undefined) {
    causes.push(required(at, 'port name or number is required'))
  }
  return causes
}

const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix']

export const ingressRules: KindRules = {
  validate(object) {
    const spec = objectAt(object, 'spec')
    const rules = objectsAt(spec, 'rules')
    const causes: Cause[] = []
    if (rules.length === 0 && !isObject(valueAt(spec, 'defaultBackend'))) {
      const text = 'either `defaultBackend` or `rules` must be specified'
      causes.push(invalidValue('spec', spec ?? {}, text))
    }
    causes.push(...validateBackend(valueAt(spec, 'defaultBackend'), 'spec.defaultBackend'))
    for (const [index, rule] of rules.entries()) {
      for (const [position, path] of objectsAt(rule, 'http', 'paths').entries()) {
        const at = `spec.rules[${index}].http.paths[${position}]`
        const type = textAt(path, 'pathType')
        const text = textAt(path, 'path')
        if (type === '') causes.push(required(`${at}.pathType`, 'pathType must be specified'))
        else if (!pathTypes.includes(type)) causes.push(notSupportedPath(at, type))
        else if (type !== 'ImplementationSpecific' && !text.startsWith('/')) {
          causes.push(invalidValue(`${at}.path`, text, 'must be an absolute path'))
        }
        causes.push(...validateBackend(valueAt(path, 'backend'), `${at}.backend`))
      }
    }
    return causes
  },
}

function notSupportedPath(at: string, type: string): Cause {
  return {
    reason: 'FieldValueNotSupported',
    message: `Unsupported value: ${JSON.stringify(type)}: supported values: ${pathTypes.map((known) => `"${known}"`).join(', ')}`,
    field: `${at}.pathType`,
  }
}

export const networkPolicyRules: KindRules = {
  validate: (object) => [
    ...validateLabelSelector(valueAt(object, 'spec', 'podSelector'), 'spec.podSelector'),
    ...(textsAt(object, 'spec', 'policyTypes').length > 2
      ? [
          invalidValue(
            'spec.policyTypes',
            textsAt(object, 'spec', 'policyTypes'),
            'may not specify more than two policyTypes',
          ),
        ]
      : []),
  ],
}
