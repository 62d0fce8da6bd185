import type { ObjectValue } from '../../schemas/index.ts'
import type { Env } from '../../storage/index.ts'
import { invalid } from '../errors.ts'
import {
  addressKey,
  addressOffset,
  dynamicAddresses,
  dynamicOffsetMin,
  nodePortMax,
  nodePortMin,
  serviceAddress,
  serviceCidr,
} from '../strategies/service-range.ts'
import type { Cause, ObjectCache } from '../types.ts'
import { invalidValue } from '../validation/field-error.ts'
import { ensureObject, numberAt, objectsAt, textAt, textsAt } from '../validation/object-fields.ts'
import { parseStored } from '../encoding/stored-object.ts'
import type { AdmissionPlugin } from './admission.ts'
import { appendAll } from '../append.ts'

/**
 * Gives a Service the cluster address and node ports it needs, out of what looks free in the cache. The Service's own
 * transaction claims them, so two Services never end up with the same; the loser is run again and chooses anew.
 */
export function serviceAllocation(services: { readonly cache: ObjectCache; readonly env: Env }): AdmissionPlugin {
  const { cache, env } = services

  function freeAddress(): string | undefined {
    const start = Math.floor(env.random.float() * dynamicAddresses)
    for (let step = 0; step < dynamicAddresses; step++) {
      const address = serviceAddress(dynamicOffsetMin + ((start + step) % dynamicAddresses))
      if (cache.get(addressKey(address)) === undefined) return address
    }
    return undefined
  }

  /** Node ports in use, by scanning Services: there are few, and only those with node ports are asked. */
  function usedNodePorts(): ReadonlySet<number> {
    const used = new Set<number>()
    for (const cached of cache.list('/registry/services/specs/')) {
      if (!hasNodePorts(cached.fields['spec.type'] ?? '')) continue
      for (const port of objectsAt(parseStored(cached.stored), 'spec', 'ports')) {
        const nodePort = numberAt(port, 'nodePort') ?? 0
        if (nodePort !== 0) used.add(nodePort)
      }
    }
    return used
  }

  function allocateAddress(spec: ObjectValue, old: ObjectValue | undefined): readonly Cause[] {
    const addresses = textsAt(spec, 'clusterIPs')
    const given = textAt(spec, 'clusterIP') || addresses[0] || ''
    if (given === '') {
      const address = freeAddress()
      if (address === undefined) {
        return [invalidValue('spec.clusterIPs', [], 'failed to allocate a serviceIP: range is full')]
      }
      spec['clusterIP'] = address
      spec['clusterIPs'] = [address]
      return []
    }
    if (textAt(spec, 'clusterIP') === '') spec['clusterIP'] = given
    if (addresses.length === 0) spec['clusterIPs'] = [given]
    if (given === 'None' || textsAt(old, 'spec', 'clusterIPs').includes(given)) return []
    const shown = textsAt(spec, 'clusterIPs')
    if (addressOffset(given) === undefined) {
      const why = `failed to allocate IP ${given}: the provided IP (${given}) is not in the valid range. The range of valid IPs is ${serviceCidr}`
      return [invalidValue('spec.clusterIPs', shown, why)]
    }
    if (cache.get(addressKey(given)) === undefined) return []
    return [invalidValue('spec.clusterIPs', shown, `failed to allocate IP ${given}: provided IP is already allocated`)]
  }

  function allocateNodePorts(spec: ObjectValue, old: ObjectValue | undefined): readonly Cause[] {
    const own = new Set(objectsAt(old, 'spec', 'ports').map((port) => numberAt(port, 'nodePort') ?? 0))
    const causes: Cause[] = []
    const used = new Set(usedNodePorts())
    for (const [index, port] of objectsAt(spec, 'ports').entries()) {
      const asked = numberAt(port, 'nodePort') ?? 0
      if (asked === 0) {
        const free = freePort(used)
        if (free === undefined) {
          const why = 'failed to allocate a nodePort: range is full'
          causes.push(invalidValue(`spec.ports[${index}].nodePort`, 0, why))
          continue
        }
        port['nodePort'] = free
        used.add(free)
      } else if (asked < nodePortMin || asked > nodePortMax) {
        const why = `provided port is not in the valid range. The range of valid ports is ${nodePortMin}-${nodePortMax}`
        causes.push(invalidValue(`spec.ports[${index}].nodePort`, asked, why))
      } else if (used.has(asked) && !own.has(asked)) {
        causes.push(invalidValue(`spec.ports[${index}].nodePort`, asked, 'provided port is already allocated'))
      } else own.add(asked)
    }
    return causes
  }

  function freePort(used: ReadonlySet<number>): number | undefined {
    const count = nodePortMax - nodePortMin + 1
    const start = Math.floor(env.random.float() * count)
    for (let step = 0; step < count; step++) {
      const port = nodePortMin + ((start + step) % count)
      if (!used.has(port)) return port
    }
    return undefined
  }

  return {
    name: 'ServiceAllocation',
    operations: new Set(['CREATE', 'UPDATE']),
    admit({ object, oldObject, resource, subresource, name }) {
      if (object === undefined || resource.group !== '' || resource.plural !== 'services' || subresource !== '') return
      const spec = ensureObject(object, 'spec')
      const type = textAt(spec, 'type')
      if (type === 'ExternalName') return
      if (oldObject !== undefined) carryAllocated(spec, oldObject)
      const causes = [...allocateAddress(spec, oldObject)]
      setFamilies(spec)
      if (hasNodePorts(type) && spec['allocateLoadBalancerNodePorts'] !== false) {
        appendAll(causes, allocateNodePorts(spec, oldObject))
      }
      if (causes.length > 0) throw invalid({ group: '', kind: 'Service' }, name, causes)
    },
  }
}

const hasNodePorts = (type: string): boolean => type === 'NodePort' || type === 'LoadBalancer'

/** An update that leaves out what the server allocated keeps it. */
function carryAllocated(spec: ObjectValue, old: ObjectValue): void {
  if (textAt(old, 'spec', 'type') === 'ExternalName') return
  if (textAt(spec, 'clusterIP') === '' && textsAt(spec, 'clusterIPs').length === 0) {
    spec['clusterIP'] = textAt(old, 'spec', 'clusterIP')
    spec['clusterIPs'] = [...textsAt(old, 'spec', 'clusterIPs')]
  }
  if (!hasNodePorts(textAt(spec, 'type')) || !hasNodePorts(textAt(old, 'spec', 'type'))) return
  for (const port of objectsAt(spec, 'ports')) {
    if ((numberAt(port, 'nodePort') ?? 0) !== 0) continue
    const same = objectsAt(old, 'spec', 'ports').find(
      (before) =>
        textAt(before, 'protocol') === textAt(port, 'protocol') && numberAt(before, 'port') === numberAt(port, 'port'),
    )
    const nodePort = numberAt(same, 'nodePort')
    if (nodePort !== undefined) port['nodePort'] = nodePort
  }
}

/** A single-stack IPv4 cluster; a headless Service without selector may hold endpoints of both families. */
function setFamilies(spec: ObjectValue): void {
  const headless = textAt(spec, 'clusterIP') === 'None'
  const selecting = Object.keys(ensureSelector(spec)).length > 0
  if (textsAt(spec, 'ipFamilies').length === 0) {
    spec['ipFamilies'] = headless && !selecting ? ['IPv4', 'IPv6'] : ['IPv4']
  }
  if (textAt(spec, 'ipFamilyPolicy') === '') {
    spec['ipFamilyPolicy'] = textsAt(spec, 'ipFamilies').length > 1 ? 'RequireDualStack' : 'SingleStack'
  }
}

function ensureSelector(spec: ObjectValue): object {
  const selector = spec['selector']
  return typeof selector === 'object' && selector !== null ? selector : {}
}
