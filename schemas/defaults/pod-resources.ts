import { newObject } from '../json/reader.ts'
import { addQuantities, compareQuantities } from '../scalars/quantity.ts'
import type { ObjectValue } from '../types.ts'
import { ensure, objectAt, objectsAt, setDefault } from './rules.ts'

/** Resources of a whole pod (KEP-2837), completed from those of its containers. */

type Amounts = Record<string, string>

const isHugePages = (name: string): boolean => name.startsWith('hugepages-')
const isPodLevel = (name: string): boolean => name === 'cpu' || name === 'memory' || isHugePages(name)

/** A limit without a request is the request too. */
export function requestsFromLimits(container: ObjectValue): void {
  const limits = objectAt(container, 'resources', 'limits')
  if (limits === undefined) return
  const requests = ensure(ensure(container, 'resources'), 'requests')
  for (const name of Object.keys(limits)) setDefault(requests, name, limits[name])
}

/**
 * Runs after the containers are complete. Huge pages: the pod's limit is what its containers may use together.
 * Requests: what the containers ask for together, else the pod's limit.
 */
export function defaultPodResources(spec: ObjectValue): void {
  const resources = objectAt(spec, 'resources')
  if (resources === undefined) return
  const hasAny = ['limits', 'requests'].some((field) => Object.keys(objectAt(resources, field) ?? {}).length > 0)
  if (!hasAny) return
  const together = aggregate(spec, 'limits')
  for (const name of Object.keys(together)) {
    if (!isHugePages(name) || objectAt(resources, 'requests')?.[name] !== undefined) continue
    setDefault(ensure(resources, 'limits'), name, together[name])
  }
  const limits = objectAt(resources, 'limits') ?? {}
  if (Object.keys(limits).length === 0) return
  const asked = aggregate(spec, 'requests')
  for (const name of Object.keys(asked)) {
    if (name === 'cpu' || name === 'memory') setDefault(ensure(resources, 'requests'), name, asked[name])
  }
  for (const name of Object.keys(limits)) {
    if (isPodLevel(name)) setDefault(ensure(resources, 'requests'), name, limits[name])
  }
}

/**
 * What all containers need at once: the sum of those that run side by side, sidecars among them, or more where an init
 * container, together with the sidecars started before it, needs more.
 */
function aggregate(spec: ObjectValue, field: 'limits' | 'requests'): Amounts {
  const total: Amounts = Object.create(null) as Amounts
  for (const container of objectsAt(spec, 'containers')) add(total, amountsOf(container, field))
  const sidecars: Amounts = Object.create(null) as Amounts
  const starting: Amounts = Object.create(null) as Amounts
  for (const container of objectsAt(spec, 'initContainers')) {
    const own = amountsOf(container, field)
    if (container['restartPolicy'] === 'Always') {
      add(total, own)
      add(sidecars, own)
      raise(starting, sidecars)
    } else {
      const now: Amounts = Object.assign(Object.create(null) as Amounts, sidecars)
      add(now, own)
      raise(starting, now)
    }
  }
  raise(total, starting)
  return total
}

function amountsOf(container: ObjectValue, field: string): ObjectValue {
  return objectAt(container, 'resources', field) ?? newObject()
}

function add(into: Amounts, more: ObjectValue): void {
  for (const name of Object.keys(more)) {
    const amount = more[name]
    if (typeof amount === 'string') into[name] = into[name] === undefined ? amount : addQuantities(into[name], amount)
  }
}

function raise(into: Amounts, to: Amounts): void {
  for (const name of Object.keys(to)) {
    const [now, amount] = [into[name], to[name]]
    if (amount !== undefined && (now === undefined || compareQuantities(amount, now) > 0)) into[name] = amount
  }
}
