import type { Cause } from '../types.ts'
import type { ObjectValue } from '../../schemas/index.ts'
import { forbiddenField, invalidValue, notSupported, required } from '../validation/field-error.ts'
import { addressBytes, validateCidr } from '../validation/ip-address.ts'
import { validateLabelSelector } from '../validation/label-selector.ts'
import { dnsLabelProblems, dnsSubdomainProblems, wildcardProblems } from '../validation/names.ts'
import { isObject, numberAt, objectAt, objectsAt, textAt, textsAt, valueAt } from '../validation/object-fields.ts'
import { validatePort } from '../validation/probe.ts'
import type { KindRules } from './kind-rules.ts'
import { appendAll } from '../append.ts'

function validateBackend(backend: unknown, at: string): readonly Cause[] {
  if (!isObject(backend)) return []
  const service = objectAt(backend, 'service')
  const resource = objectAt(backend, 'resource')
  if (service !== undefined && resource !== undefined) {
    return [invalidValue(at, '', 'cannot set both resource and service backends')]
  }
  if (resource !== undefined) {
    return ['kind', 'name'].flatMap((field) =>
      textAt(resource, field) === '' ? [required(`${at}.resource.${field}`)] : [],
    )
  }
  if (service === undefined) return [invalidValue(at, '', 'resource or service backend is required')]
  const name = textAt(service, 'name')
  const causes: Cause[] = []
  if (name === '') causes.push(required(`${at}.service.name`))
  else
    appendAll(
      causes,
      dnsLabelProblems(name).map((problem) => invalidValue(`${at}.service.name`, name, problem)),
    )
  const portName = textAt(service, 'port', 'name')
  const portNumber = numberAt(service, 'port', 'number') ?? 0
  if (portName !== '' && portNumber !== 0) causes.push(invalidValue(at, '', 'cannot set both port name & port number'))
  else if (portName !== '') appendAll(causes, validatePort(portName, `${at}.service.port.name`))
  else if (portNumber !== 0) appendAll(causes, validatePort(portNumber, `${at}.service.port.number`))
  else causes.push(required(at, 'port name or number is required'))
  return causes
}

const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix'] as const
const badSequences = ['//', '/./', '/../', '%2f', '%2F'] as const
const badEndings = ['/..', '/.'] as const

function validatePath(path: ObjectValue, at: string): readonly Cause[] {
  const type = textAt(path, 'pathType')
  const text = textAt(path, 'path')
  const causes: Cause[] = []
  const absolute = text.startsWith('/')
  if (type === '') causes.push(required(`${at}.pathType`, 'pathType must be specified'))
  else if (type === 'ImplementationSpecific') {
    if (text !== '' && !absolute) causes.push(invalidValue(`${at}.path`, text, 'must be an absolute path'))
  } else if (type === 'Exact' || type === 'Prefix') {
    if (!absolute) causes.push(invalidValue(`${at}.path`, text, 'must be an absolute path'))
    for (const sequence of badSequences) {
      if (text.includes(sequence)) causes.push(invalidValue(`${at}.path`, text, `must not contain '${sequence}'`))
    }
    for (const ending of badEndings) {
      if (text.endsWith(ending)) causes.push(invalidValue(`${at}.path`, text, `cannot end with '${ending}'`))
    }
  } else causes.push(notSupported(`${at}.pathType`, type, pathTypes))
  return [...causes, ...validateBackend(valueAt(path, 'backend'), `${at}.backend`)]
}

function validateHost(host: string, at: string): readonly Cause[] {
  if (host === '') return []
  if (addressBytes(host) !== undefined) return [invalidValue(at, host, 'must be a DNS name, not an IP address')]
  const problems = host.includes('*') ? wildcardProblems(host) : dnsSubdomainProblems(host)
  return problems.map((problem) => invalidValue(at, host, problem))
}

export const ingressRules: KindRules = {
  validate(object) {
    const spec = objectAt(object, 'spec')
    const rules = objectsAt(spec, 'rules')
    const causes: Cause[] = []
    if (rules.length === 0 && !isObject(valueAt(spec, 'defaultBackend'))) {
      causes.push(invalidValue('spec', null, 'either `defaultBackend` or `rules` must be specified'))
    }
    appendAll(causes, validateBackend(valueAt(spec, 'defaultBackend'), 'spec.defaultBackend'))
    for (const [index, rule] of rules.entries()) {
      appendAll(causes, validateHost(textAt(rule, 'host'), `spec.rules[${index}].host`))
      if (!isObject(rule['http'])) continue
      const paths = objectsAt(rule, 'http', 'paths')
      if (paths.length === 0) causes.push(required(`spec.rules[${index}].http.paths`))
      for (const [position, path] of paths.entries()) {
        appendAll(causes, validatePath(path, `spec.rules[${index}].http.paths[${position}]`))
      }
    }
    for (const [index, tls] of objectsAt(spec, 'tls').entries()) {
      for (const [position, host] of textsAt(tls, 'hosts').entries()) {
        appendAll(causes, validateHost(host, `spec.tls[${index}].hosts[${position}]`))
      }
    }
    const className = textAt(spec, 'ingressClassName')
    if (className === '') return causes
    const problems = dnsSubdomainProblems(className)
    return [...causes, ...problems.map((problem) => invalidValue('spec.ingressClassName', className, problem))]
  },
}

const policyTypes = ['Egress', 'Ingress'] as const

function validatePeer(peer: ObjectValue, at: string): readonly Cause[] {
  const causes: Cause[] = [
    ...validateLabelSelector(peer['podSelector'], `${at}.podSelector`),
    ...validateLabelSelector(peer['namespaceSelector'], `${at}.namespaceSelector`),
  ]
  const block = objectAt(peer, 'ipBlock')
  const selects = isObject(peer['podSelector']) || isObject(peer['namespaceSelector'])
  if (block === undefined) return selects ? causes : [...causes, required(at, 'must specify a peer')]
  const cidr = textAt(block, 'cidr')
  if (cidr === '') causes.push(required(`${at}.ipBlock.cidr`))
  else appendAll(causes, validateCidr(cidr, `${at}.ipBlock.cidr`))
  for (const [index, except] of textsAt(block, 'except').entries()) {
    appendAll(causes, validateCidr(except, `${at}.ipBlock.except[${index}]`))
  }
  if (selects) causes.push(forbiddenField(at, 'may not specify both ipBlock and another peer'))
  return causes
}

function validatePolicyPort(port: ObjectValue, at: string): readonly Cause[] {
  const value = valueAt(port, 'port')
  const end = numberAt(port, 'endPort')
  const causes: Cause[] = value === undefined ? [] : [...validatePort(value, `${at}.port`)]
  if (end === undefined) return causes
  if (value === undefined) {
    return [...causes, required(`${at}.endPort`, 'may not be specified when `port` is not specified')]
  }
  if (typeof value === 'string') {
    return [...causes, required(`${at}.endPort`, 'may not be specified when `port` is non-numeric')]
  }
  if (typeof value === 'number' && value > end) {
    causes.push(invalidValue(`${at}.endPort`, end, 'must be greater than or equal to `port`'))
  }
  return [...causes, ...validatePort(end, `${at}.endPort`)]
}

export const networkPolicyRules: KindRules = {
  validate(object) {
    const causes: Cause[] = [...validateLabelSelector(valueAt(object, 'spec', 'podSelector'), 'spec.podSelector')]
    for (const [direction, peers] of [
      ['ingress', 'from'],
      ['egress', 'to'],
    ] as const) {
      for (const [index, rule] of objectsAt(object, 'spec', direction).entries()) {
        const at = `spec.${direction}[${index}]`
        for (const [position, port] of objectsAt(rule, 'ports').entries()) {
          appendAll(causes, validatePolicyPort(port, `${at}.ports[${position}]`))
        }
        for (const [position, peer] of objectsAt(rule, peers).entries()) {
          appendAll(causes, validatePeer(peer, `${at}.${peers}[${position}]`))
        }
      }
    }
    const types = textsAt(object, 'spec', 'policyTypes')
    if (types.length > policyTypes.length) {
      return [...causes, invalidValue('spec.policyTypes', types, 'may not specify more than two policyTypes')]
    }
    for (const [index, type] of types.entries()) {
      if (policyTypes.some((known) => known === type)) continue
      causes.push(notSupported(`spec.policyTypes[${index}]`, type, policyTypes))
    }
    return causes
  },
}
