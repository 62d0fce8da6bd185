import { type ObjectValue, resources, type ResourceInfo } from '../../schemas/index.ts'
import type { Compare, Op } from '../../storage/index.ts'
import { keyBytes } from '../store-keys.ts'
import { encodeStored } from '../object-store/stored-codec.ts'
import {
  ensureObject,
  numberAt,
  objectAt,
  objectsAt,
  record,
  setOrRemove,
  textAt,
  textsAt,
} from '../validation/object-fields.ts'
import { sameRaw } from '../validation/semantic-equality.ts'
import type { KindRules } from './kind-rules.ts'
import { addressKey, addressOffset, nodePortKey } from './service-range.ts'
import {
  isReachedFromOutside,
  validateService,
  validateServiceStatus,
  validateServiceUpdate,
} from './service-validation.ts'

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

/** kubernetes pkg/registry/core/service. */
export const serviceRules: KindRules = {
  prepareForUpdate: dropForeignFields,
  validate: validateService,
  validateUpdate: validateServiceUpdate,
  subresources: {
    status: {
      prepare(object, sent) {
        setOrRemove(object, 'status', sent['status'])
      },
      validate: validateServiceStatus,
    },
  },
  claims,
  releases,
}

const typeOf = (spec: ObjectValue): string => textAt(spec, 'type')
const isLoadBalancer = (spec: ObjectValue): boolean => typeOf(spec) === 'LoadBalancer'
const hasNodePorts = (spec: ObjectValue): boolean => typeOf(spec) === 'NodePort' || isLoadBalancer(spec)
const hasAddress = (spec: ObjectValue): boolean => typeOf(spec) !== 'ExternalName'
const hasHealthPort = (spec: ObjectValue): boolean =>
  isLoadBalancer(spec) && textAt(spec, 'externalTrafficPolicy') === 'Local'

const fieldsByNeed: readonly (readonly [needs: (spec: ObjectValue) => boolean, fields: readonly string[]])[] = [
  [hasAddress, ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy']],
  [isLoadBalancer, ['allocateLoadBalancerNodePorts', 'loadBalancerClass']],
  [hasHealthPort, ['healthCheckNodePort']],
  [isReachedFromOutside, ['externalTrafficPolicy']],
]

/**
 * A client that changes the type need not know what else goes with it: fields that only the old type needed, and that
 * were left as they were, are taken away. What it changed itself is left for validation to refuse.
 */
function dropForeignFields(object: ObjectValue, old: ObjectValue): void {
  const spec = ensureObject(object, 'spec')
  const before = objectAt(old, 'spec') ?? {}
  for (const [needs, fields] of fieldsByNeed) {
    if (!needs(before) || needs(spec)) continue
    for (const field of fields) if (sameRaw(spec[field], before[field])) delete spec[field]
  }
  if (hasAddress(spec)) followClusterIp(spec, before)
  const ports = objectsAt(spec, 'ports')
  const oldPorts = objectsAt(before, 'ports')
  const samePorts = ports.every((port, index) => numberAt(port, 'nodePort') === numberAt(oldPorts[index], 'nodePort'))
  if (hasNodePorts(before) && !hasNodePorts(spec) && samePorts) for (const port of ports) delete port['nodePort']
}

/** Who changes only the older of the two names of the address means both. */
function followClusterIp(spec: ObjectValue, before: ObjectValue): void {
  const single = textAt(spec, 'clusterIP')
  if (single === textAt(before, 'clusterIP') || !sameRaw(spec['clusterIPs'], before['clusterIPs'])) return
  const [, ...rest] = textsAt(spec, 'clusterIPs')
  setOrRemove(spec, 'clusterIPs', single === '' ? undefined : [single, ...rest])
}
