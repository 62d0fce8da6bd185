import {
  decodeJson,
  encodeJson,
  type ObjectValue,
  type ResourceInfo,
  type TypeDescriptor,
} from '../../schemas/index.ts'
import { descriptorOf } from '../encoding/stored-object.ts'
import type { Strategy } from '../types.ts'

/** The descriptor of the version that is stored; it may be another resource's (events.k8s.io stores core/v1 Events). */
export function storageType(resource: ResourceInfo): TypeDescriptor {
  return descriptorOf(resource.storageVersion)
}

/** Canonical JSON of the storage version without resourceVersion: equal objects give equal bytes. */
export function encodeStored(resource: ResourceInfo, object: ObjectValue): Uint8Array {
  const metadata = object['metadata']
  if (typeof metadata === 'object' && metadata !== null && 'resourceVersion' in metadata) {
    throw new Error('resourceVersion must be taken out before an object is encoded')
  }
  return encodeJson(object, storageType(resource), resource.storageVersion)
}

/** A fresh copy that the caller may change; rows of older programs get the defaults they lack. */
export function decodeStored(resource: ResourceInfo, strategy: Strategy, stored: Uint8Array): ObjectValue {
  const { object } = decodeJson(stored, storageType(resource))
  strategy.applyDefaults(object)
  return object
}
