import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { duplicate, forbiddenField, invalidValue, required } from '../validation/field-error.ts'
import { addressBytes, isIpv6, validateCidr, validateEndpointIp, validateIp } from '../validation/ip-address.ts'
import {
  dnsLabelProblems,
  dnsSubdomainProblems,
  portNumberProblems,
  qualifiedNameProblems,
} from '../validation/names.ts'
import { validateLabels } from '../validation/object-meta.ts'
import { isObject, numberAt, objectAt, objectsAt, textAt, textsAt, valueAt } from '../validation/object-fields.ts'
import { validatePort } from '../validation/probe.ts'
import { appendAll } from '../append.ts'

/** What a Service may say (kubernetes pkg/apis/core/validation). */

const none = 'None'
const affinitySecondsMax = 86_400
const onlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'"

const isHeadless = (spec: ObjectValue | undefined): boolean => {
  const addresses = textsAt(spec, 'clusterIPs')
  return addresses.length === 1 ? addresses[0] === none : addresses.length === 0 && textAt(spec, 'clusterIP') === none
}

export function validateService(object: ObjectValue): readonly Cause[] {
  const spec = objectAt(object, 'spec') ?? {}
  const type = textAt(spec, 'type')
  const headless = isHeadless(spec)
  const causes: Cause[] = []
  if (objectsAt(spec, 'ports').length === 0 && !headless && type !== 'ExternalName') causes.push(required('spec.ports'))
  if (headless && (type === 'NodePort' || type === 'LoadBalancer')) {
    causes.push(invalidValue('spec.clusterIPs[0]', none, `may not be set to 'None' for ${type} services`))
  }
  if (type === 'ExternalName') appendAll(causes, validateExternalName(spec))
  return [
    ...causes,
    ...validatePorts(spec, type),
    ...validateLabels(spec, 'selector', 'spec.selector'),
    ...validateAffinity(spec),
    ...(type === 'ExternalName' ? [] : validateAddresses(spec, headless)),
    ...validateExternalAddresses(spec, type),
    ...validateLoadBalancer(spec, type),
    ...validateTraffic(spec, type),
  ]
}

function validateExternalName(spec: ObjectValue): readonly Cause[] {
  const fields = ['clusterIPs', 'ipFamilies', 'ipFamilyPolicy'].filter((field) => {
    const value = spec[field]
    return value !== undefined && !(Array.isArray(value) && value.length === 0)
  })
  const causes: Cause[] = fields.map((field) =>
    forbiddenField(`spec.${field}`, 'may not be set for ExternalName services'),
  )
  if (textAt(spec, 'clusterIP') !== '' && !fields.includes('clusterIPs')) {
    causes.push(forbiddenField('spec.clusterIPs', 'may not be set for ExternalName services'))
  }
  const name = textAt(spec, 'externalName').replace(/\.$/, '')
  if (name === '') causes.push(required('spec.externalName'))
  else
    appendAll(
      causes,
      dnsSubdomainProblems(name).map((problem) => invalidValue('spec.externalName', name, problem)),
    )
  return causes
}

function validatePorts(spec: ObjectValue, type: string): readonly Cause[] {
  const ports = objectsAt(spec, 'ports')
  const causes: Cause[] = []
  const names = new Set<string>()
  const numbers = new Set<string>()
  const nodePorts = new Set<string>()
  for (const [index, port] of ports.entries()) {
    const at = `spec.ports[${index}]`
    const name = textAt(port, 'name')
    const protocol = textAt(port, 'protocol')
    const number = numberAt(port, 'port') ?? 0
    const nodePort = numberAt(port, 'nodePort') ?? 0
    if (name === '') {
      if (ports.length > 1) causes.push(required(`${at}.name`))
    } else {
      appendAll(
        causes,
        dnsLabelProblems(name).map((problem) => invalidValue(`${at}.name`, name, problem)),
      )
      if (names.has(name)) causes.push(duplicate(`${at}.name`, name))
      names.add(name)
    }
    appendAll(
      causes,
      portNumberProblems(number).map((problem) => invalidValue(`${at}.port`, number, problem)),
    )
    appendAll(causes, validatePort(valueAt(port, 'targetPort'), `${at}.targetPort`))
    const appProtocol = valueAt(port, 'appProtocol')
    if (typeof appProtocol === 'string') {
      const problems = qualifiedNameProblems(appProtocol)
      appendAll(
        causes,
        problems.map((problem) => invalidValue(`${at}.appProtocol`, appProtocol, problem)),
      )
    }
    if (nodePort !== 0 && type === 'ClusterIP') {
      causes.push(forbiddenField(`${at}.nodePort`, "may not be used when `type` is 'ClusterIP'"))
    }
    if (nodePort !== 0 && nodePorts.has(`${protocol}/${nodePort}`)) causes.push(duplicate(`${at}.nodePort`, nodePort))
    nodePorts.add(`${protocol}/${nodePort}`)
    if (numbers.has(`${protocol}/${number}`)) causes.push(duplicate(at, internalPort(protocol, number)))
    numbers.add(`${protocol}/${number}`)
  }
  return causes
}

/** The real server prints its internal struct here, under Go's names. */
const internalPort = (protocol: string, port: number): object => ({
  Name: '',
  Protocol: protocol,
  AppProtocol: null,
  Port: port,
  TargetPort: 0,
  NodePort: 0,
})

function validateAffinity(spec: ObjectValue): readonly Cause[] {
  const affinity = textAt(spec, 'sessionAffinity')
  const config = objectAt(spec, 'sessionAffinityConfig')
  const at = 'spec.sessionAffinityConfig'
  if (affinity === 'None' && config !== undefined) {
    return [forbiddenField(at, 'must not be set when session affinity is None')]
  }
  if (affinity !== 'ClientIP') return []
  const seconds = numberAt(config, 'clientIP', 'timeoutSeconds')
  if (seconds === undefined)
    return [required(`${at}.clientIP.timeoutSeconds`, 'when session affinity type is ClientIP')]
  if (seconds > 0 && seconds <= affinitySecondsMax) return []
  const text = `must be greater than 0 and less than ${affinitySecondsMax}`
  return [invalidValue(`${at}.clientIP.timeoutSeconds`, seconds, text)]
}

function validateAddresses(spec: ObjectValue, headless: boolean): readonly Cause[] {
  const at = 'spec.clusterIPs'
  const single = textAt(spec, 'clusterIP')
  const addresses = textsAt(spec, 'clusterIPs')
  const families = textsAt(spec, 'ipFamilies')
  const causes: Cause[] = []
  if (single === '') {
    if (addresses.length > 0)
      causes.push(invalidValue(at, addresses, 'must be empty when `clusterIP` is not specified'))
  } else if (addresses.length === 0) causes.push(required(at))
  else if (addresses[0] !== single) causes.push(invalidValue(at, addresses, 'first value must match `clusterIP`'))
  for (const [index, family] of families.entries()) {
    if (families.indexOf(family) < index) causes.push(duplicate(`spec.ipFamilies[${index}]`, family))
  }
  const problems = addresses.flatMap((address, index) => {
    if (index > 0 || address !== none) return validateIp(address, `${at}[${index}]`)
    return addresses.length === 1 ? [] : [invalidValue(at, addresses, "'None' must be the first and only value")]
  })
  appendAll(causes, problems)
  if (addresses.length > 2) causes.push(invalidValue(at, addresses, 'may only hold up to 2 values'))
  // Families of what is no address say nothing.
  if (problems.length > 0 || headless) return causes
  if (addresses.length > 1 && new Set(addresses.map(isIpv6)).size < addresses.length) {
    causes.push(invalidValue(at, addresses, 'may specify no more than one IP for each IP family'))
  }
  for (const [index, family] of families.entries()) {
    const address = addresses[index]
    if (address === undefined || isIpv6(address) === (family === 'IPv6')) continue
    const text = `expected an ${family} value as indicated by \`ipFamilies[${index}]\``
    causes.push(invalidValue(`${at}[${index}]`, address, text))
  }
  return causes
}

function validateExternalAddresses(spec: ObjectValue, type: string): readonly Cause[] {
  const causes: Cause[] = textsAt(spec, 'externalIPs').flatMap((address, index) => {
    const at = `spec.externalIPs[${index}]`
    return addressBytes(address) === undefined ? validateIp(address, at) : validateEndpointIp(address, at)
  })
  const ranges = textsAt(spec, 'loadBalancerSourceRanges')
  // The capital letter is the real server's.
  const at = 'spec.LoadBalancerSourceRanges'
  if (ranges.length > 0 && type !== 'LoadBalancer') causes.push(forbiddenField(at, onlyLoadBalancer))
  appendAll(
    causes,
    ranges.flatMap((range, index) => validateCidr(range.trim(), `${at}[${index}]`)),
  )
  return causes
}

function validateLoadBalancer(spec: ObjectValue, type: string): readonly Cause[] {
  const causes: Cause[] = []
  const loadBalancerClass = valueAt(spec, 'loadBalancerClass')
  if (type !== 'LoadBalancer') {
    for (const field of ['allocateLoadBalancerNodePorts', 'loadBalancerClass']) {
      if (spec[field] !== undefined) causes.push(forbiddenField(`spec.${field}`, onlyLoadBalancer))
    }
  } else if (typeof loadBalancerClass === 'string') {
    const problems = qualifiedNameProblems(loadBalancerClass)
    appendAll(
      causes,
      problems.map((problem) => invalidValue('spec.loadBalancerClass', loadBalancerClass, problem)),
    )
  }
  return causes
}

export const isReachedFromOutside = (spec: ObjectValue | undefined): boolean => {
  const type = textAt(spec, 'type')
  return (
    type === 'NodePort' || type === 'LoadBalancer' || (type === 'ClusterIP' && textsAt(spec, 'externalIPs').length > 0)
  )
}

const distributions = ['PreferClose', 'PreferSameZone', 'PreferSameNode']

function validateTraffic(spec: ObjectValue, type: string): readonly Cause[] {
  const causes: Cause[] = []
  const policy = textAt(spec, 'externalTrafficPolicy')
  if (policy !== '' && !isReachedFromOutside(spec)) {
    const text = 'may only be set for externally-accessible services'
    causes.push(invalidValue('spec.externalTrafficPolicy', policy, text))
  }
  const healthPort = numberAt(spec, 'healthCheckNodePort') ?? 0
  if (type !== 'LoadBalancer' || policy !== 'Local') {
    if (healthPort !== 0) {
      const text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
      causes.push(invalidValue('spec.healthCheckNodePort', healthPort, text))
    }
  } else if (healthPort !== 0) {
    const problems = portNumberProblems(healthPort)
    appendAll(
      causes,
      problems.map((problem) => invalidValue('spec.healthCheckNodePort', healthPort, problem)),
    )
  }
  const distribution = valueAt(spec, 'trafficDistribution')
  if (typeof distribution === 'string' && !distributions.includes(distribution)) {
    const list = distributions.map((known) => JSON.stringify(known)).join(', ')
    causes.push({
      reason: 'FieldValueNotSupported',
      message: `Unsupported value: ${JSON.stringify(distribution)}: supported values: ${list}`,
      field: 'spec.trafficDistribution',
    })
  }
  return causes
}

export function validateServiceUpdate(object: ObjectValue, old: ObjectValue): readonly Cause[] {
  const spec = objectAt(object, 'spec')
  const before = objectAt(old, 'spec')
  const causes: Cause[] = []
  const isExternal = [spec, before].some((one) => textAt(one, 'type') === 'ExternalName')
  const [address] = textsAt(spec, 'clusterIPs')
  const [oldAddress] = textsAt(before, 'clusterIPs')
  if (!isExternal && oldAddress !== undefined && address !== oldAddress) {
    const text = address === undefined ? 'primary clusterIP can not be unset' : 'may not change once set'
    causes.push(invalidValue('spec.clusterIPs[0]', textsAt(spec, 'clusterIPs'), text))
  }
  const areLoadBalancers = [spec, before].every((one) => textAt(one, 'type') === 'LoadBalancer')
  const loadBalancerClass = valueAt(spec, 'loadBalancerClass')
  if (areLoadBalancers && loadBalancerClass !== valueAt(before, 'loadBalancerClass')) {
    causes.push(invalidValue('spec.loadBalancerClass', loadBalancerClass, 'may not change once set'))
  }
  return causes
}

/** Addresses that a load balancer's controller reports. */
export function validateServiceStatus(object: ObjectValue): readonly Cause[] {
  const ingress = objectsAt(object, 'status', 'loadBalancer', 'ingress')
  const at = 'status.loadBalancer.ingress'
  if (ingress.length > 0 && textAt(object, 'spec', 'type') !== 'LoadBalancer') {
    return [forbiddenField(at, "may only be used when `spec.type` is 'LoadBalancer'")]
  }
  return ingress.flatMap((entry, index) => {
    const where = `${at}[${index}]`
    const ip = textAt(entry, 'ip')
    const hostname = textAt(entry, 'hostname')
    const causes: Cause[] = ip === '' ? [] : [...validateIp(ip, `${where}.ip`)]
    if (hostname !== '') {
      appendAll(
        causes,
        dnsSubdomainProblems(hostname).map((problem) => invalidValue(`${where}.hostname`, hostname, problem)),
      )
      if (addressBytes(hostname) !== undefined) {
        causes.push(invalidValue(`${where}.hostname`, hostname, 'must be a DNS name, not an IP address'))
      }
    }
    if (ip === '' && isObject(entry) && entry['ipMode'] !== undefined) {
      causes.push(forbiddenField(`${where}.ipMode`, 'may not be specified when `ip` is not set'))
    }
    return causes
  })
}
