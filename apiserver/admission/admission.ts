import type { ObjectValue, ResourceInfo } from '../../schemas/index.ts'
import type { UserInfo } from '../types.ts'

export type AdmissionOperation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'

/** One write as admission sees it; objects are of the storage version. */
export interface AdmissionAttributes {
  readonly operation: AdmissionOperation
  readonly resource: ResourceInfo
  readonly subresource: string
  readonly namespace: string
  /** "" when the name is still to be generated. */
  readonly name: string
  readonly user: UserInfo
  readonly dryRun: boolean
  /** Absent on delete. `admit` may change it in place. */
  readonly object: ObjectValue | undefined
  /** Absent on create. Nobody changes it. */
  readonly oldObject: ObjectValue | undefined
  readonly signal: AbortSignal
  warn(message: string): void
}

/** Throws ApiError to refuse. May run more than once for one request (lost races): no effects of its own. */
export interface AdmissionPlugin {
  /** As kube-apiserver names it. */
  readonly name: string
  readonly operations: ReadonlySet<AdmissionOperation>
  /** May change `object`. */
  admit?(attributes: AdmissionAttributes): Promise<void> | void
  /** Sees the object as it will be stored. */
  validate?(attributes: AdmissionAttributes): Promise<void> | void
}

/** First every admit in order, then (after the kind's own validation) every validate in order. */
export interface Admission {
  admit(attributes: AdmissionAttributes): Promise<void>
  validate(attributes: AdmissionAttributes): Promise<void>
}

/** `plugins` in the order in which kube-apiserver runs them (pkg/kubeapiserver/options/plugins.go). */
export function admissionChain(plugins: readonly AdmissionPlugin[]): Admission {
  const mutating = plugins.filter((plugin) => plugin.admit !== undefined)
  const validating = plugins.filter((plugin) => plugin.validate !== undefined)
  return {
    async admit(attributes) {
      for (const plugin of mutating) {
        if (plugin.operations.has(attributes.operation)) await plugin.admit?.(attributes)
      }
    },
    async validate(attributes) {
      for (const plugin of validating) {
        if (plugin.operations.has(attributes.operation)) await plugin.validate?.(attributes)
      }
    },
  }
}
