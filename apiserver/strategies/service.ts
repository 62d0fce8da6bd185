import { type ObjectValue, resources, type ResourceInfo } from '../../schemas/index.ts'
import type { Compare, Op } from '../../storage/index.ts'
import { keyBytes } from '../store-keys.ts'
import { encodeStored } from '../object-store/stored-codec.ts'
import type { Cause } from '../types.ts'
import { duplicate, invalidValue, required } from '../validation/field-error.ts'
import { dnsLabelProblems, dnsSubdomainProblems, portNumberProblems } from '../validation/names.ts'
import { validateLabels } from '../validation/object-meta.ts'
import {
  ensureObject,
  numberAt,
  objectAt,
  objectsAt,
  record,
  textAt,
  textsAt,
  valueAt,
} from '../validation/object-fields.ts'
import type { KindRules } from './kind-rules.ts'
import { addressKey, addressOffset, nodePortKey } from './service-range.ts'

function clusterAddresses(object: ObjectValue | undefined): readonly string[] {
  return textsAt(object, 'spec', 'clusterIPs').filter((address) => addressOffset(address) !== undefined)
}

function nodePorts(object: ObjectValue | undefined): ReadonlySet<number> {
  const ports = objectsAt(object, 'spec', 'ports').map((port) => numberAt(port, 'nodePort') ?? 0)
  return new Set(ports.filter((port) => port !== 0))
}

function ipAddressResource(): ResourceInfo {
  const found = resources().find((resource) => resource.plural === 'ipaddresses')
  if (found === undefined) throw new Error('ipaddresses are not served')
  return found
}

/**
 * The IPAddress object that stands for a claimed address. Its uid is made from the Service's and the address, so that
 * a transaction that is tried again writes the same.
 */
function ipAddressOf(service: ObjectValue, address: string): Uint8Array {
  const resource = ipAddressResource()
  const metadata = record({
    name: address,
    uid: derivedUid(textAt(service, 'metadata', 'uid'), addressOffset(address) ?? 0),
    creationTimestamp: textAt(service, 'metadata', 'creationTimestamp'),
    labels: record({
      'ipaddress.kubernetes.io/ip-family': 'IPv4',
      'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
    }),
  })
  const parentRef = record({
    resource: 'services',
    namespace: textAt(service, 'metadata', 'namespace'),
    name: textAt(service, 'metadata', 'name'),
  })
  return encodeStored(resource, record({ metadata, spec: record({ parentRef }) }))
}

/** Differs from the uid it is made from, and for every address. */
function derivedUid(uid: string, offset: number): string {
  const tail = (parseInt(uid.slice(-4), 16) ^ offset).toString(16).padStart(4, '0')
  const marked = (parseInt(uid.slice(0, 1), 16) ^ 0xf).toString(16)
  return `${marked}${uid.slice(1, -4)}${tail}`
}

/** Service addresses and node ports are keys of their own: whoever puts one first has it. */
function claims(object: ObjectValue, old: ObjectValue | undefined): { compare: Compare; op: Op }[] {
  const before = new Set(clusterAddresses(old))
  const wanted = clusterAddresses(object).filter((address) => !before.has(address))
  const ports = nodePorts(old)
  const wantedPorts = [...nodePorts(object)].filter((port) => !ports.has(port))
  return [
    ...wanted.map((address) => claim(addressKey(address), ipAddressOf(object, address))),
    ...wantedPorts.map((port) => claim(nodePortKey(port), keyBytes(ownerText(object)))),
  ]
}

function claim(key: string, value: Uint8Array): { compare: Compare; op: Op } {
  const bytes = keyBytes(key)
  return { compare: { key: bytes, target: 'mod', op: '=', is: 0 }, op: { type: 'put', key: bytes, value } }
}

const ownerText = (object: ObjectValue): string =>
  `${textAt(object, 'metadata', 'namespace')}/${textAt(object, 'metadata', 'name')}`

function releases(object: ObjectValue | undefined, old: ObjectValue): Op[] {
  const kept = new Set(clusterAddresses(object))
  const keptPorts = nodePorts(object)
  const keys = [
    ...clusterAddresses(old)
      .filter((address) => !kept.has(address))
      .map(addressKey),
    ...[...nodePorts(old)].filter((port) => !keptPorts.has(port)).map(nodePortKey),
  ]
  return keys.map((key) => ({ type: 'delete', key: keyBytes(key) }))
}

function validatePorts(spec: ObjectValue | undefined, needed: boolean): readonly Cause[] {
  const ports = objectsAt(spec, 'ports')
  const causes: Cause[] = []
  if (ports.length === 0 && needed) causes.push(required('spec.ports'))
  const names = new Set<string>()
  const numbers = new Set<string>()
  for (const [index, port] of ports.entries()) {
    const at = `spec.ports[${index}]`
    const name = textAt(port, 'name')
    if (name === '' && ports.length > 1) causes.push(required(`${at}.name`))
    if (name !== '') {
      causes.push(...dnsLabelProblems(name).map((problem) => invalidValue(`${at}.name`, name, problem)))
      if (names.has(name)) causes.push(duplicate(`${at}.name`, name))
      names.add(name)
    }
    const number = numberAt(port, 'port') ?? 0
    causes.push(...portNumberProblems(number).map((problem) => invalidValue(`${at}.port`, number, problem)))
    const target = valueAt(port, 'targetPort')
    if (typeof target === 'number') {
      causes.push(...portNumberProblems(target).map((problem) => invalidValue(`${at}.targetPort`, target, problem)))
    }
    const key = `${textAt(port, 'protocol')}/${number}`
    if (numbers.has(key)) {
      causes.push(duplicate(at, { name, protocol: textAt(port, 'protocol'), port: number }))
    }
    numbers.add(key)
  }
  return causes
}

/** kubernetes pkg/registry/core/service. */
export const serviceRules: KindRules = {
  prepareForCreate: dropForeignFields,
  prepareForUpdate: dropForeignFields,
  validate(object) {
    const spec = objectAt(object, 'spec')
    const type = textAt(spec, 'type')
    const headless = textAt(spec, 'clusterIP') === 'None'
    const causes: Cause[] = [...validatePorts(spec, !headless && type !== 'ExternalName')]
    if (spec !== undefined) causes.push(...validateLabels(spec, 'selector', 'spec.selector'))
    if (type === 'ExternalName') {
      const name = textAt(spec, 'externalName')
      if (name === '') causes.push(required('spec.externalName'))
      else {
        const problems = dnsSubdomainProblems(name.replace(/\.$/, ''))
        causes.push(...problems.map((problem) => invalidValue('spec.externalName', name, problem)))
      }
    }
    if (headless && (type === 'NodePort' || type === 'LoadBalancer')) {
      const text = `may not be set to 'None' for ${type} services`
      causes.push(invalidValue('spec.clusterIPs[0]', 'None', text))
    }
    const [first] = textsAt(spec, 'clusterIPs')
    const single = textAt(spec, 'clusterIP')
    if (first !== undefined && first !== single) {
      causes.push(invalidValue('spec.clusterIP', single, 'must match `clusterIPs[0]` when specified'))
    }
    return causes
  },
  validateUpdate(object, old) {
    const before = textAt(old, 'spec', 'clusterIP')
    const after = textAt(object, 'spec', 'clusterIP')
    if (textAt(object, 'spec', 'type') === 'ExternalName' || before === '' || before === after) return []
    return [invalidValue('spec.clusterIPs[0]', textsAt(object, 'spec', 'clusterIPs'), 'may not change once set')]
  },
  claims,
  releases,
}

/** What belongs to another type of Service does not linger when the type changes. */
function dropForeignFields(object: ObjectValue): void {
  const spec = ensureObject(object, 'spec')
  const type = textAt(spec, 'type')
  if (type === 'ExternalName') {
    for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy']) delete spec[field]
  }
  if (type !== 'NodePort' && type !== 'LoadBalancer') {
    for (const port of objectsAt(spec, 'ports')) delete port['nodePort']
    if (textsAt(spec, 'externalIPs').length === 0) delete spec['externalTrafficPolicy']
  }
}
