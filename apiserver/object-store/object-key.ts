import type { ResourceInfo } from '../../schemas/index.ts'

/** Store keys: `<storagePrefix>/<namespace>/<name>` or `<storagePrefix>/<name>`, as kube-apiserver lays them out. */
export function objectKey(resource: ResourceInfo, namespace: string, name: string): string {
  const prefix = storagePrefix(resource)
  return resource.namespaced ? `${prefix}/${namespace}/${name}` : `${prefix}/${name}`
}

/** Prefix of all objects of the resource, in one namespace when given; ends in "/". */
export function listPrefix(resource: ResourceInfo, namespace: string): string {
  const prefix = storagePrefix(resource)
  return resource.namespaced && namespace !== '' ? `${prefix}/${namespace}/` : `${prefix}/`
}

export const namespaceKey = (name: string): string => `/registry/namespaces/${name}`

function storagePrefix(resource: ResourceInfo): string {
  if (resource.storagePrefix === undefined) throw new Error(`${resource.plural} are not stored`)
  return resource.storagePrefix
}

const encoder = new TextEncoder()
export const keyBytes = (key: string): Uint8Array => encoder.encode(key)
