import { newObject } from '../json/reader.ts'
import type { ObjectValue } from '../types.ts'

/*
 * Metrics of an autoscaler in the flat form of autoscaling/v1 (used only inside annotations) and the nested one
 * of autoscaling/v2. Both have the same five kinds; each kind is one entry in the tables below.
 */

/** Where a field of the flat form lives in the nested one. */
type FieldPaths = Readonly<Record<string, readonly [string, ...string[]]>>

const specPaths: Readonly<Record<string, FieldPaths>> = {
  object: {
    target: ['describedObject'],
    metricName: ['metric', 'name'],
    selector: ['metric', 'selector'],
    targetValue: ['target', 'value'],
    averageValue: ['target', 'averageValue'],
  },
  pods: {
    metricName: ['metric', 'name'],
    selector: ['metric', 'selector'],
    targetAverageValue: ['target', 'averageValue'],
  },
  resource: {
    name: ['name'],
    targetAverageUtilization: ['target', 'averageUtilization'],
    targetAverageValue: ['target', 'averageValue'],
  },
  containerResource: {
    name: ['name'],
    container: ['container'],
    targetAverageUtilization: ['target', 'averageUtilization'],
    targetAverageValue: ['target', 'averageValue'],
  },
  external: {
    metricName: ['metric', 'name'],
    metricSelector: ['metric', 'selector'],
    targetValue: ['target', 'value'],
    targetAverageValue: ['target', 'averageValue'],
  },
}

const statusPaths: Readonly<Record<string, FieldPaths>> = {
  object: {
    target: ['describedObject'],
    metricName: ['metric', 'name'],
    selector: ['metric', 'selector'],
    currentValue: ['current', 'value'],
    averageValue: ['current', 'averageValue'],
  },
  pods: {
    metricName: ['metric', 'name'],
    selector: ['metric', 'selector'],
    currentAverageValue: ['current', 'averageValue'],
  },
  resource: {
    name: ['name'],
    currentAverageUtilization: ['current', 'averageUtilization'],
    currentAverageValue: ['current', 'averageValue'],
  },
  containerResource: {
    name: ['name'],
    container: ['container'],
    currentAverageUtilization: ['current', 'averageUtilization'],
    currentAverageValue: ['current', 'averageValue'],
  },
  external: {
    metricName: ['metric', 'name'],
    metricSelector: ['metric', 'selector'],
    currentValue: ['current', 'value'],
    currentAverageValue: ['current', 'averageValue'],
  },
}

export function metricSpecToV2(metric: ObjectValue): ObjectValue {
  const result = convert(metric, specPaths, nest)
  for (const kind of Object.keys(specPaths)) {
    const target = objectOf(objectOf(result[kind])?.['target'])
    if (target !== undefined) target['type'] = targetType(target)
  }
  return result
}

export function metricSpecFromV2(metric: ObjectValue): ObjectValue {
  return convert(metric, specPaths, flatten)
}

export function metricStatusToV2(metric: ObjectValue): ObjectValue {
  return convert(metric, statusPaths, nest)
}

export function metricStatusFromV2(metric: ObjectValue): ObjectValue {
  return convert(metric, statusPaths, flatten)
}

/** v1 does not say it: utilisation if there is one, else an average if there is one, else a plain value. */
function targetType(target: ObjectValue): string {
  if (target['averageUtilization'] !== undefined) return 'Utilization'
  return target['averageValue'] !== undefined ? 'AverageValue' : 'Value'
}

function convert(
  metric: ObjectValue,
  paths: Readonly<Record<string, FieldPaths>>,
  convertSource: (source: ObjectValue, fields: FieldPaths) => ObjectValue,
): ObjectValue {
  const result = newObject()
  if (metric['type'] !== undefined) result['type'] = metric['type']
  for (const [kind, fields] of Object.entries(paths)) {
    const source = objectOf(metric[kind])
    if (source !== undefined) result[kind] = convertSource(source, fields)
  }
  return result
}

function nest(flat: ObjectValue, fields: FieldPaths): ObjectValue {
  const nested = newObject()
  for (const [name, [first, second]] of Object.entries(fields)) {
    const value = flat[name]
    if (value === undefined) continue
    if (second === undefined) {
      nested[first] = value
    } else {
      const inner = objectOf(nested[first]) ?? newObject()
      inner[second] = value
      nested[first] = inner
    }
  }
  return nested
}

function flatten(nested: ObjectValue, fields: FieldPaths): ObjectValue {
  const flat = newObject()
  for (const [name, [first, second]] of Object.entries(fields)) {
    const value = second === undefined ? nested[first] : objectOf(nested[first])?.[second]
    if (value !== undefined) flat[name] = value
  }
  return flat
}

function objectOf(value: unknown): ObjectValue | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ObjectValue) : undefined
}
