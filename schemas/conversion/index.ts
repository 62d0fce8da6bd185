import assert from 'node:assert/strict'
import type { GVK, ObjectValue } from '../types.ts'
import { eventFromCore, eventToCore } from './event.ts'
import { autoscalerFromV2, autoscalerToV2 } from './horizontal-pod-autoscaler.ts'

/**
 * A pair of conversions between a served version and the stored one. They never change their argument; what
 * they return may share parts with it. `kind` and `apiVersion` are those of the result's version where the
 * argument has them.
 */
export interface Conversions {
  toStorage(object: ObjectValue): ObjectValue
  fromStorage(object: ObjectValue): ObjectValue
}

const identity: Conversions = { toStorage: (object) => object, fromStorage: (object) => object }

/** The conversions of a built-in kind; identity when the versions are the same. */
export function conversionsOf(served: GVK, stored: GVK): Conversions {
  if (served.group === stored.group && served.version === stored.version) return identity
  const key = `${served.group}/${served.version} ${served.kind}`
  switch (key) {
    case 'autoscaling/v1 HorizontalPodAutoscaler':
      return { toStorage: autoscalerToV2, fromStorage: autoscalerFromV2 }
    case 'events.k8s.io/v1 Event':
      return { toStorage: eventToCore, fromStorage: eventFromCore }
    default:
      assert.fail(`no conversion from ${key} to ${stored.group}/${stored.version}`)
  }
}
