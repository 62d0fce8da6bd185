import { typeDescriptor } from '../descriptors.ts'
import { SchemaError } from '../errors.ts'
import { decodeValue } from '../json/decode.ts'
import { encodeJsonValue } from '../json/encode.ts'
import { parseJson } from '../json/parse.ts'
import { newObject } from '../json/reader.ts'
import type { ObjectValue } from '../types.ts'
import { metricSpecFromV2, metricSpecToV2, metricStatusFromV2, metricStatusToV2 } from './autoscaler-metrics.ts'

/*
 * autoscaling/v1 knows one metric, the CPU utilisation of the pods. Everything else of autoscaling/v2 rides in
 * annotations of v1, as JSON of v1 types, so that a v1 client that reads, changes and writes loses nothing:
 *
 *   v2 spec.metrics: [cpu 80 %, memory 1Gi]   <->   v1 targetCPUUtilizationPercentage: 80
 *                                                   annotation …/metrics: [memory 1Gi]
 */
const metricsAnnotation = 'autoscaling.alpha.kubernetes.io/metrics'
const currentMetricsAnnotation = 'autoscaling.alpha.kubernetes.io/current-metrics'
const conditionsAnnotation = 'autoscaling.alpha.kubernetes.io/conditions'
const behaviorAnnotation = 'autoscaling.alpha.kubernetes.io/behavior'
const roundTripAnnotations = [metricsAnnotation, currentMetricsAnnotation, conditionsAnnotation, behaviorAnnotation]

const v1 = 'io.k8s.api.autoscaling.v1'
const v2 = 'io.k8s.api.autoscaling.v2'

/** autoscaling/v1 to autoscaling/v2. Annotations that do not decode are dropped, as by the real server. */
export function autoscalerToV2(object: ObjectValue): ObjectValue {
  const annotations = objectOf(objectOf(object['metadata'])?.['annotations']) ?? newObject()
  const spec = copyOf(object['spec'])
  const status = copyOf(object['status'])

  const metrics = decodeList(annotations[metricsAnnotation], `${v1}.MetricSpec`)?.map(metricSpecToV2) ?? []
  const utilization = spec['targetCPUUtilizationPercentage']
  delete spec['targetCPUUtilizationPercentage']
  if (utilization !== undefined) metrics.push(cpuMetric('target', utilization))
  if (metrics.length > 0) spec['metrics'] = metrics
  const behavior = decodeObject(annotations[behaviorAnnotation], `${v2}.HorizontalPodAutoscalerBehavior`)
  if (behavior !== undefined) spec['behavior'] = behavior

  const current = decodeList(annotations[currentMetricsAnnotation], `${v1}.MetricStatus`)?.map(metricStatusToV2)
  const currentUtilization = status['currentCPUUtilizationPercentage']
  delete status['currentCPUUtilizationPercentage']
  if (current !== undefined) status['currentMetrics'] = current
  else if (currentUtilization !== undefined) status['currentMetrics'] = [cpuMetric('current', currentUtilization)]
  const conditions = decodeList(annotations[conditionsAnnotation], `${v1}.HorizontalPodAutoscalerCondition`)
  if (conditions !== undefined) status['conditions'] = conditions

  return assemble(object, 'autoscaling/v2', newObject(), spec, status)
}

/** autoscaling/v2 to autoscaling/v1. */
export function autoscalerFromV2(object: ObjectValue): ObjectValue {
  const annotations = newObject()
  const spec = copyOf(object['spec'])
  const status = copyOf(object['status'])

  const metrics = listOf(spec['metrics'])
  delete spec['metrics']
  const utilization = metrics.map((metric) => cpuUtilization(metric, 'target')).find((value) => value !== undefined)
  if (utilization !== undefined) spec['targetCPUUtilizationPercentage'] = utilization
  const others = metrics.filter((metric) => cpuUtilization(metric, 'target') === undefined).map(metricSpecFromV2)
  annotate(annotations, metricsAnnotation, others, `${v1}.MetricSpec`)
  const behavior = objectOf(spec['behavior'])
  delete spec['behavior']
  if (behavior !== undefined) {
    const type = typeDescriptor(`${v2}.HorizontalPodAutoscalerBehavior`)
    annotations[behaviorAnnotation] = encodeJsonValue(behavior, { is: 'message', descriptor: () => type })
  }

  const current = listOf(status['currentMetrics'])
  delete status['currentMetrics']
  const usage = current.map((metric) => cpuUtilization(metric, 'current')).find((value) => value !== undefined)
  if (usage !== undefined) status['currentCPUUtilizationPercentage'] = usage
  annotate(annotations, currentMetricsAnnotation, current.map(metricStatusFromV2), `${v1}.MetricStatus`)
  annotate(annotations, conditionsAnnotation, listOf(status['conditions']), `${v1}.HorizontalPodAutoscalerCondition`)
  delete status['conditions']

  return assemble(object, 'autoscaling/v1', annotations, spec, status)
}

/** The object with other parts: of its annotations only those that are not ours stay. */
function assemble(
  object: ObjectValue,
  apiVersion: string,
  roundTrip: ObjectValue,
  spec: ObjectValue,
  status: ObjectValue,
): ObjectValue {
  const result = copyOf(object)
  if (object['apiVersion'] !== undefined) result['apiVersion'] = apiVersion
  const metadata = objectOf(object['metadata'])
  const annotations = copyOf(metadata?.['annotations'])
  for (const name of roundTripAnnotations) delete annotations[name]
  Object.assign(annotations, roundTrip)
  if (metadata !== undefined || Object.keys(annotations).length > 0) {
    const copy = copyOf(metadata)
    if (Object.keys(annotations).length > 0) copy['annotations'] = annotations
    else delete copy['annotations']
    result['metadata'] = copy
  }
  if (object['spec'] !== undefined) result['spec'] = spec
  if (object['status'] !== undefined || Object.keys(status).length > 0) result['status'] = status
  return result
}

function cpuMetric(side: 'target' | 'current', averageUtilization: unknown): ObjectValue {
  const value = of(side === 'target' ? { type: 'Utilization', averageUtilization } : { averageUtilization })
  return of({ type: 'Resource', resource: of({ name: 'cpu', [side]: value }) })
}

/** The utilisation when the metric is what v1 can say itself. */
function cpuUtilization(metric: ObjectValue, side: 'target' | 'current'): unknown {
  const resource = objectOf(metric['resource'])
  if (metric['type'] !== 'Resource' || resource?.['name'] !== 'cpu') return undefined
  return objectOf(resource[side])?.['averageUtilization']
}

function annotate(annotations: ObjectValue, name: string, items: readonly ObjectValue[], type: string): void {
  if (items.length === 0) return
  const descriptor = typeDescriptor(type)
  annotations[name] = encodeJsonValue(items, { is: 'list', of: { is: 'message', descriptor: () => descriptor } })
}

function decodeList(text: unknown, type: string): ObjectValue[] | undefined {
  const value = parseAnnotation(text)
  if (!Array.isArray(value)) return undefined
  return tolerant(() => (value as readonly unknown[]).map((item) => decodeValue(item, typeDescriptor(type)).object))
}

function decodeObject(text: unknown, type: string): ObjectValue | undefined {
  const value = parseAnnotation(text)
  if (value === undefined || value === null) return undefined
  return tolerant(() => decodeValue(value, typeDescriptor(type)).object)
}

function parseAnnotation(text: unknown): unknown {
  if (typeof text !== 'string') return undefined
  return tolerant(() => parseJson(Buffer.from(text)).value)
}

/** What a user wrote into these annotations may be anything: then there is nothing to convert. */
function tolerant<T>(decode: () => T): T | undefined {
  try {
    return decode()
  } catch (error) {
    if (error instanceof SchemaError) return undefined
    throw error
  }
}

function of(entries: ObjectValue): ObjectValue {
  return Object.assign(newObject(), entries)
}

function copyOf(value: unknown): ObjectValue {
  return Object.assign(newObject(), objectOf(value))
}

function objectOf(value: unknown): ObjectValue | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ObjectValue) : undefined
}

function listOf(value: unknown): readonly ObjectValue[] {
  return Array.isArray(value) ? (value as readonly ObjectValue[]) : []
}
