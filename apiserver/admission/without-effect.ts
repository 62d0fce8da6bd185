import type { AdmissionPlugin } from './admission.ts'

/** By `<group>/<plural>`: what objects would do in a whole cluster, and do not do here yet. */
export const effectsMissing: Readonly<Record<string, string>> = {
  'apiextensions.k8s.io/customresourcedefinitions': 'its custom resources are not served',
  'apiregistration.k8s.io/apiservices': 'requests are not passed on to it',
  'admissionregistration.k8s.io/validatingwebhookconfigurations': 'its webhooks are not called',
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': 'its webhooks are not called',
  'admissionregistration.k8s.io/validatingadmissionpolicies': 'its rules are not checked',
  'admissionregistration.k8s.io/validatingadmissionpolicybindings': 'policies are not checked',
  'admissionregistration.k8s.io/mutatingadmissionpolicies': 'its changes are not made',
  'admissionregistration.k8s.io/mutatingadmissionpolicybindings': 'policies are not applied',
  '/resourcequotas': 'its limits are not enforced',
  '/limitranges': 'its limits and defaults are not applied',
  'rbac.authorization.k8s.io/rolebindings': 'it grants nothing',
  'rbac.authorization.k8s.io/clusterrolebindings': 'it grants nothing',
}

/**
 * Says so when an object is stored whose effect is not there yet: a test that relies on it would pass or fail for the
 * wrong reason, without a word.
 */
export const withoutEffect: AdmissionPlugin = {
  name: 'WithoutEffect',
  operations: new Set(['CREATE']),
  validate(attributes) {
    const { resource, subresource } = attributes
    const what = subresource === '' ? effectsMissing[`${resource.group}/${resource.plural}`] : undefined
    if (what !== undefined) attributes.warn(`trireme stores this object, but ${what} yet`)
  },
}
