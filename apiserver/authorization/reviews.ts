import { ApiError, badRequest, invalid } from '../errors.ts'
import { decodeObjectBody } from '../object-store/request-body.ts'
import { writeOptions } from '../object-store/write-options.ts'
import type { ApiRequest, Cause, Handler, ObjectValue, RequestScope, Responder, UserInfo } from '../types.ts'
import type { Attributes, Authorizer } from './authorizer.ts'

type Answer = (body: ObjectValue, request: ApiRequest, scope: RequestScope) => object

/**
 * Create-only resources that answer a question instead of storing it, by "group/plural": access reviews
 * (kubernetes pkg/registry/authorization), token and self subject reviews (pkg/registry/authentication).
 */
export function reviewHandlers(options: {
  readonly responder: Responder
  readonly authorizer: Authorizer
}): ReadonlyMap<string, Handler> {
  const { authorizer, responder } = options
  const answering =
    (answer: Answer): Handler =>
    async (scope, request, reply) => {
      responder.check(scope, request)
      const { fieldValidation } = writeOptions(request, 'CreateOptions')
      const body = await decodeObjectBody(scope, request, fieldValidation)
      const status = answer(body, request, scope)
      const { gvk } = scope.served
      const value = asObject({
        kind: gvk.kind,
        apiVersion: `${gvk.group}/${gvk.version}`,
        metadata: objectAt(body, 'metadata') ?? {},
        ...(body['spec'] === undefined ? {} : { spec: body['spec'] }),
        status,
      })
      responder.value(request, reply, { status: 201, value })
    }

  const accessStatus = (attributes: Attributes): object => {
    const { allowed, reason } = authorizer.authorize(attributes)
    return { allowed, ...(reason === '' ? {} : { reason }) }
  }
  return new Map<string, Handler>([
    [
      'authorization.k8s.io/selfsubjectaccessreviews',
      answering((body, request) => accessStatus(attributesOf(specOf(body), request.user, 'SelfSubjectAccessReview'))),
    ],
    [
      'authorization.k8s.io/subjectaccessreviews',
      answering((body) => {
        const spec = specOf(body)
        return accessStatus(attributesOf(spec, subjectOf(spec, 'SubjectAccessReview'), 'SubjectAccessReview'))
      }),
    ],
    [
      'authorization.k8s.io/localsubjectaccessreviews',
      answering((body, request) => {
        const spec = specOf(body)
        const kind = 'LocalSubjectAccessReview'
        const attributes = attributesOf(spec, subjectOf(spec, kind), kind)
        const problem = 'must match metadata.namespace'
        if (!attributes.isResourceRequest) {
          throw refusal(kind, 'spec.nonResourceAttributes', 'FieldValueInvalid', 'disallowed on this kind of request')
        }
        if (attributes.namespace !== request.info.namespace) {
          throw refusal(kind, 'spec.resourceAttributes.namespace', 'FieldValueInvalid', problem)
        }
        return accessStatus(attributes)
      }),
    ],
    [
      'authorization.k8s.io/selfsubjectrulesreviews',
      answering((body, request) => {
        const namespace = textAt(specOf(body), 'namespace')
        if (namespace === '') throw badRequest('no namespace on request')
        const { resourceRules, nonResourceRules } = authorizer.rules(request.user, namespace)
        return { resourceRules, nonResourceRules, incomplete: false }
      }),
    ],
    [
      'authentication.k8s.io/selfsubjectreviews',
      answering((_body, request) => {
        if (request.user.name === 'system:anonymous') {
          throw new ApiError(
            403,
            'Forbidden',
            'selfsubjectreviews.authentication.k8s.io is forbidden: user is anonymous',
          )
        }
        return { userInfo: userFields(request.user) }
      }),
    ],
    [
      'authentication.k8s.io/tokenreviews',
      answering((body) => {
        if (textAt(specOf(body), 'token') === '')
          throw badRequest('token is required for TokenReview in authentication')
        // no token is issued or known yet
        return { user: {}, error: 'invalid bearer token' }
      }),
    ],
  ])
}

function userFields(user: UserInfo): object {
  return {
    username: user.name,
    ...(user.uid === '' ? {} : { uid: user.uid }),
    groups: user.groups,
    ...(Object.keys(user.extra).length === 0 ? {} : { extra: user.extra }),
  }
}

function attributesOf(spec: ObjectValue, user: UserInfo, kind: string): Attributes {
  const resource = objectAt(spec, 'resourceAttributes')
  const path = objectAt(spec, 'nonResourceAttributes')
  if (resource !== undefined && path !== undefined) {
    const text = 'cannot be specified in combination with resourceAttributes'
    throw refusal(kind, 'spec.nonResourceAttributes', 'FieldValueInvalid', text)
  }
  if (resource !== undefined) {
    return {
      isResourceRequest: true,
      user,
      verb: textAt(resource, 'verb'),
      group: textAt(resource, 'group'),
      version: textAt(resource, 'version'),
      resource: textAt(resource, 'resource'),
      subresource: textAt(resource, 'subresource'),
      namespace: textAt(resource, 'namespace'),
      name: textAt(resource, 'name'),
    }
  }
  if (path !== undefined) {
    return { isResourceRequest: false, user, verb: textAt(path, 'verb'), path: textAt(path, 'path') }
  }
  const text = 'exactly one of nonResourceAttributes or resourceAttributes must be specified'
  throw refusal(kind, 'spec.resourceAttributes', 'FieldValueInvalid', text)
}

/** The user asked about. */
function subjectOf(spec: ObjectValue, kind: string): UserInfo {
  const name = textAt(spec, 'user')
  const groups = textsOf(spec['groups'])
  if (name === '' && groups.length === 0) {
    throw refusal(kind, 'spec.user', 'FieldValueInvalid', 'at least one of user or group must be specified')
  }
  const extra = Object.entries(objectAt(spec, 'extra') ?? {}).map(([key, values]) => [key, textsOf(values)] as const)
  return { name, uid: textAt(spec, 'uid'), groups, extra: Object.fromEntries(extra) }
}

function refusal(kind: string, field: string, reason: Cause['reason'], text: string): ApiError {
  return invalid({ group: 'authorization.k8s.io', kind }, '', [{ reason, field, message: `Invalid value: ${text}` }])
}

const asObject = (fields: object): ObjectValue => Object.assign(Object.create(null) as ObjectValue, fields)
const specOf = (body: ObjectValue): ObjectValue => objectAt(body, 'spec') ?? asObject({})
const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []

function objectAt(object: ObjectValue, field: string): ObjectValue | undefined {
  const value = object[field]
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ObjectValue) : undefined
}

function textAt(object: ObjectValue, field: string): string {
  const value = object[field]
  return typeof value === 'string' ? value : ''
}
