import { authenticatedGroup, mastersGroup, unauthenticatedGroup } from '../authentication/authenticator.ts'
import type { UserInfo } from '../types.ts'
import type { Attributes, Authorizer, NonResourceRule, ResourceRule } from './authorizer.ts'

interface Grant {
  readonly groups: readonly string[]
  readonly resourceRules: readonly ResourceRule[]
  readonly nonResourceRules: readonly NonResourceRule[]
}

const everything: Grant = {
  groups: [mastersGroup],
  resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
}

/** The bootstrap bindings of a new cluster: system:public-info-viewer, system:discovery, system:basic-user. */
const grants: readonly Grant[] = [
  everything,
  {
    groups: [authenticatedGroup, unauthenticatedGroup],
    resourceRules: [],
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/livez', '/readyz', '/version', '/version/'] }],
  },
  {
    groups: [authenticatedGroup],
    resourceRules: [
      {
        verbs: ['create'],
        apiGroups: ['authorization.k8s.io'],
        resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
      },
      { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
    ],
    nonResourceRules: [
      {
        verbs: ['get'],
        nonResourceURLs: [
          '/api',
          '/api/*',
          '/apis',
          '/apis/*',
          '/healthz',
          '/livez',
          '/openapi',
          '/openapi/*',
          '/readyz',
          '/version',
          '/version/',
        ],
      },
    ],
  },
]

/** Until roles and bindings are looked up: system:masters may do everything, others what a new cluster grants them. */
export const builtInAuthorizer: Authorizer = {
  authorize(attributes) {
    const allowed = grantsOf(attributes.user).some((grant) =>
      attributes.isResourceRequest
        ? grant.resourceRules.some((rule) => coversResource(rule, attributes))
        : grant.nonResourceRules.some((rule) => coversPath(rule, attributes)),
    )
    return { allowed, reason: '' }
  },
  rules(user) {
    const held = grantsOf(user)
    return {
      resourceRules: held.flatMap((grant) => grant.resourceRules),
      nonResourceRules: held.flatMap((grant) => grant.nonResourceRules),
    }
  },
}

const grantsOf = (user: UserInfo): readonly Grant[] =>
  grants.filter((grant) => grant.groups.some((group) => user.groups.includes(group)))

const has = (list: readonly string[], item: string): boolean => list.includes('*') || list.includes(item)

function coversResource(rule: ResourceRule, asked: Extract<Attributes, { isResourceRequest: true }>): boolean {
  const resource = asked.subresource === '' ? asked.resource : `${asked.resource}/${asked.subresource}`
  return has(rule.verbs, asked.verb) && has(rule.apiGroups, asked.group) && has(rule.resources, resource)
}

function coversPath(rule: NonResourceRule, asked: Extract<Attributes, { isResourceRequest: false }>): boolean {
  if (!has(rule.verbs, asked.verb === 'head' ? 'get' : asked.verb)) return false
  return rule.nonResourceURLs.some((url) =>
    url.endsWith('*') ? asked.path.startsWith(url.slice(0, -1)) : url === asked.path,
  )
}
