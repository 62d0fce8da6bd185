import { ApiError, forbidden, notFound } from '../errors.ts'
import { namespaceKey } from '../store-keys.ts'
import type { CachedObject, ObjectCache } from '../types.ts'
import type { AdmissionAttributes, AdmissionPlugin } from './admission.ts'

const immortalNamespaces = new Set(['default', 'kube-system', 'kube-public'])

/**
 * Nothing is made in a namespace that is missing or going away, and three namespaces stay forever
 * (kubernetes/apiserver admission/plugin/namespace/lifecycle). The transaction that creates compares the namespace once
 * more, so an object cannot slip in between.
 */
export function namespaceLifecycle(cache: ObjectCache): AdmissionPlugin {
  async function namespaceOf(attributes: AdmissionAttributes): Promise<CachedObject> {
    const key = namespaceKey(attributes.namespace)
    const cached = cache.get(key)
    if (cached !== undefined) return cached
    // The cache may lag behind a namespace created a moment ago.
    await cache.fresh({ signal: attributes.signal })
    const fresh = cache.get(key)
    if (fresh === undefined) throw notFound({ group: '', resource: 'namespaces' }, attributes.namespace)
    return fresh
  }

  return {
    name: 'NamespaceLifecycle',
    operations: new Set(['CREATE', 'UPDATE', 'DELETE']),
    async admit(attributes) {
      const { resource, operation, name } = attributes
      const of = { group: resource.group, resource: resource.plural }
      if (resource.group === '' && resource.plural === 'namespaces') {
        if (operation === 'DELETE' && immortalNamespaces.has(name)) {
          throw forbidden(of, name, 'this namespace may not be deleted')
        }
        return
      }
      if (!resource.namespaced || operation === 'DELETE' || resource.group === 'authorization.k8s.io') return
      const namespace = await namespaceOf(attributes)
      if (operation !== 'CREATE' || !namespace.deleting) return
      const why = `unable to create new content in namespace ${attributes.namespace} because it is being terminated`
      const refused = forbidden(of, name, why)
      throw new ApiError(refused.code, refused.reason, refused.message, {
        details: {
          ...refused.details,
          causes: [
            {
              reason: 'NamespaceTerminating',
              message: `namespace ${attributes.namespace} is being terminated`,
              field: 'metadata.namespace',
            },
          ],
        },
      })
    },
  }
}
