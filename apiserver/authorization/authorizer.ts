import type { UserInfo } from '../types.ts'

/** What somebody wants to do (kubernetes/apiserver authorization/authorizer Attributes). */
export type Attributes = { readonly user: UserInfo; readonly verb: string } & (
  | {
      readonly isResourceRequest: true
      readonly group: string
      readonly version: string
      readonly resource: string
      readonly subresource: string
      /** "" = cluster scope, or all namespaces. */
      readonly namespace: string
      readonly name: string
    }
  | { readonly isResourceRequest: false; readonly path: string }
)

export interface Decision {
  readonly allowed: boolean
  /** Why, for people; "" when there is nothing to add. */
  readonly reason: string
}

export interface ResourceRule {
  readonly verbs: readonly string[]
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
}

export interface NonResourceRule {
  readonly verbs: readonly string[]
  readonly nonResourceURLs: readonly string[]
}

export interface Authorizer {
  authorize(attributes: Attributes): Decision
  /** What `user` may do in `namespace`, for SelfSubjectRulesReview. */
  rules(
    user: UserInfo,
    namespace: string,
  ): { readonly resourceRules: readonly ResourceRule[]; readonly nonResourceRules: readonly NonResourceRule[] }
}

/** The sentence that follows "pods is forbidden: " (kubernetes/apiserver handlers/responsewriters/errors.go). */
export function forbiddenText(attributes: Attributes): string {
  const user = JSON.stringify(attributes.user.name)
  if (!attributes.isResourceRequest) return `User ${user} cannot ${attributes.verb} path "${attributes.path}"`
  const resource =
    attributes.subresource === '' ? attributes.resource : `${attributes.resource}/${attributes.subresource}`
  const where = attributes.namespace === '' ? 'at the cluster scope' : `in the namespace "${attributes.namespace}"`
  return `User ${user} cannot ${attributes.verb} resource "${resource}" in API group "${attributes.group}" ${where}`
}
