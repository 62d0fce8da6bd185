import { admissionChain, type Admission } from '../admission/admission.ts'
import { namespaceLifecycle } from '../admission/namespace-lifecycle.ts'
import { serviceAllocation } from '../admission/service-allocation.ts'
import { priorityDefaults } from '../admission/priority.ts'
import { defaultTolerations } from '../admission/default-tolerations.ts'
import { withoutEffect } from '../admission/without-effect.ts'
import type { ApiRequest, ApiServices, StrategyContext } from '../types.ts'
import { createEventLeases, type EventLeases } from './event-lease.ts'
import { type FieldManager, untrackedFields } from './field-manager.ts'
import { randomUuid } from '../uuid.ts'
import { createObjectStore, type ObjectStore } from './object-store.ts'
import { identityTransformer, type ValueTransformer } from './value-transformer.ts'

/** What every write handler is built with. */
export interface WriteServices extends ApiServices {
  readonly objects: ObjectStore
  readonly admission: Admission
  readonly fieldManager: FieldManager
  readonly eventLeases: EventLeases
}

export function createWriteServices(
  services: ApiServices,
  options: { readonly transformer?: ValueTransformer; readonly fieldManager?: FieldManager } = {},
): WriteServices {
  const { store, cache, env } = services
  return {
    ...services,
    objects: createObjectStore({ store, cache, transformer: options.transformer ?? identityTransformer }),
    // In kube-apiserver's order; allocation of service addresses is the registry's there, so it goes last here.
    admission: admissionChain([
      namespaceLifecycle(cache),
      priorityDefaults(cache),
      defaultTolerations(),
      serviceAllocation({ cache, env }),
      withoutEffect,
    ]),
    fieldManager: options.fieldManager ?? untrackedFields,
    eventLeases: createEventLeases({ store, env }),
  }
}

/** What strategies get to know about a request. `subresource`: "" for the object itself. */
export function strategyContext(
  services: Pick<ApiServices, 'env'>,
  request: Pick<ApiRequest, 'user' | 'warn'>,
  options: { readonly dryRun: boolean; readonly subresource: string },
): StrategyContext {
  const { env } = services
  return {
    user: request.user,
    now: new Date(env.clock.wallMs()),
    dryRun: options.dryRun,
    subresource: options.subresource,
    warn: (message) => request.warn(message),
    uid: () => randomUuid(env),
  }
}
