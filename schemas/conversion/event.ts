import { newObject } from '../json/reader.ts'
import type { ObjectValue } from '../types.ts'

/** Fields of events.k8s.io/v1 Event and what core/v1 calls them; all others have the same name in both. */
const renamed: ReadonlyMap<string, string> = new Map([
  ['regarding', 'involvedObject'],
  ['note', 'message'],
  ['reportingController', 'reportingComponent'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
])
const renamedBack: ReadonlyMap<string, string> = new Map([...renamed].map(([events, core]) => [core, events]))

/** events.k8s.io/v1 Event to core/v1 Event, the form both are stored in. */
export function eventToCore(event: ObjectValue): ObjectValue {
  return rename(event, renamed, 'v1')
}

/** core/v1 Event to events.k8s.io/v1 Event. */
export function eventFromCore(event: ObjectValue): ObjectValue {
  return rename(event, renamedBack, 'events.k8s.io/v1')
}

function rename(event: ObjectValue, names: ReadonlyMap<string, string>, apiVersion: string): ObjectValue {
  const result = newObject()
  for (const key of Object.keys(event)) result[names.get(key) ?? key] = event[key]
  if (event['apiVersion'] !== undefined) result['apiVersion'] = apiVersion
  return result
}
