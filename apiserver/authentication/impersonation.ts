import { type Attributes, type Authorizer, forbiddenText } from '../authorization/authorizer.ts'
import { badRequest, forbidden } from '../errors.ts'
import type { Exchange } from '../exchange.ts'
import type { UserInfo } from '../types.ts'
import { anonymous, authenticatedGroup, unauthenticatedGroup } from './authenticator.ts'

const extraPrefix = 'impersonate-extra-'
const serviceAccountName = /^system:serviceaccount:([^:]+):([^:]+)$/

/** One thing of another user that the caller wants to be: what `impersonate` is checked on. */
interface Claim {
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name: string
}

/**
 * Who a request acts as: the caller, or whom the Impersonate-* headers name, when the caller may impersonate every part
 * of it (kubernetes/apiserver filters/impersonation.go).
 *
 * @throws ApiError 403 for a part the caller may not be; 400 for groups, uid or extra without a user.
 */
export function actingUser(exchange: Pick<Exchange, 'headers' | 'values'>, caller: UserInfo, by: Authorizer): UserInfo {
  const name = exchange.values('impersonate-user')[0] ?? ''
  const groups = exchange.values('impersonate-group')
  const uid = exchange.values('impersonate-uid')[0] ?? ''
  const extra = extraOf(exchange)
  if (name === '') {
    if (groups.length === 0 && uid === '' && Object.keys(extra).length === 0) return caller
    throw badRequest('groups, a uid or extra fields cannot be impersonated without a user: send Impersonate-User too')
  }
  for (const claim of claims(name, groups, uid, extra)) check(claim, caller, by)
  return { name, uid, groups: effectiveGroups(name, groups), extra }
}

/** Keys are percent-encoded header names: lower case. */
function extraOf(exchange: Pick<Exchange, 'headers' | 'values'>): Record<string, readonly string[]> {
  const extra: Record<string, readonly string[]> = Object.create(null)
  for (const header of Object.keys(exchange.headers)) {
    if (header.startsWith(extraPrefix)) extra[decoded(header.slice(extraPrefix.length))] = exchange.values(header)
  }
  return extra
}

function decoded(key: string): string {
  try {
    return decodeURIComponent(key).toLowerCase()
  } catch {
    return key // not percent-encoding: taken as it is
  }
}

function claims(
  name: string,
  groups: readonly string[],
  uid: string,
  extra: Readonly<Record<string, readonly string[]>>,
): readonly Claim[] {
  const account = serviceAccountName.exec(name)
  return [
    account === null
      ? { group: '', resource: 'users', name }
      : { group: '', resource: 'serviceaccounts', namespace: account[1] ?? '', name: account[2] ?? '' },
    ...groups.map((group) => ({ group: '', resource: 'groups', name: group })),
    ...(uid === '' ? [] : [{ group: 'authentication.k8s.io', resource: 'uids', name: uid }]),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.map((value) => ({
        group: 'authentication.k8s.io',
        resource: 'userextras',
        subresource: key,
        name: value,
      })),
    ),
  ]
}

function check(claim: Claim, caller: UserInfo, by: Authorizer): void {
  const attributes: Attributes = {
    isResourceRequest: true,
    user: caller,
    verb: 'impersonate',
    version: claim.group === '' ? '' : 'v1',
    subresource: '',
    namespace: '',
    ...claim,
  }
  if (!by.authorize(attributes).allowed) throw forbidden(claim, claim.name, forbiddenText(attributes))
}

/** A service account is in its groups unless others are asked for; everybody is either authenticated or not. */
function effectiveGroups(name: string, asked: readonly string[]): readonly string[] {
  const namespace = serviceAccountName.exec(name)?.[1]
  const groups =
    namespace !== undefined && asked.length === 0
      ? ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
      : asked
  if (groups.includes(authenticatedGroup) || groups.includes(unauthenticatedGroup)) return groups
  return [...groups, name === anonymous.name ? unauthenticatedGroup : authenticatedGroup]
}
