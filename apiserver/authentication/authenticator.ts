import type { Exchange } from '../exchange.ts'
import { unauthorized } from '../status.ts'
import type { UserInfo } from '../types.ts'

/** Who is asking. One per way to prove it; tried in order. */
export interface Authenticator {
  /**
   * undefined: no credentials of this kind in the request.
   * @throws ApiError 401: credentials of this kind, but not good ones.
   */
  authenticate(exchange: Exchange): UserInfo | undefined
}

export const authenticatedGroup = 'system:authenticated'
export const unauthenticatedGroup = 'system:unauthenticated'
export const mastersGroup = 'system:masters'

export const anonymous: UserInfo = {
  name: 'system:anonymous',
  uid: '',
  groups: [unauthenticatedGroup],
  extra: {},
}

/** The server's own requests (bootstrap objects, controllers). */
export const ownUser: UserInfo = {
  name: 'system:apiserver',
  uid: '',
  groups: [mastersGroup, authenticatedGroup],
  extra: {},
}

/** The plain HTTP listener: reachable from this machine alone, so whoever speaks there is the operator. */
const loopbackUser: UserInfo = {
  name: 'system:unsecured',
  uid: '',
  groups: [mastersGroup, authenticatedGroup],
  extra: {},
}

export const loopbackListener: Authenticator = {
  authenticate: (exchange) => (exchange.listener === 'loopback' ? loopbackUser : undefined),
}

/** CN is the user, each O a group (kubernetes/apiserver authentication/request/x509). */
export const clientCertificates: Authenticator = {
  authenticate({ peer }) {
    if (peer === undefined) return undefined
    if (!peer.trusted || peer.commonName === '') throw unauthorized()
    return withAuthenticated({ name: peer.commonName, uid: '', groups: peer.organizations, extra: {} })
  },
}

/** No token is issued or known yet, so every bearer token is a bad one. Other schemes are not ours to judge: ignored. */
export const bearerTokens: Authenticator = {
  authenticate({ headers }) {
    const header = headers['authorization']
    if (header !== undefined && /^bearer\s+\S/i.test(header)) throw unauthorized()
    return undefined
  },
}

/** The first that recognises its credentials decides; nobody: anonymous. */
export function authenticateWith(chain: readonly Authenticator[]): (exchange: Exchange) => UserInfo {
  return (exchange) => {
    for (const authenticator of chain) {
      const user = authenticator.authenticate(exchange)
      if (user !== undefined) return user
    }
    return anonymous
  }
}

function withAuthenticated(user: UserInfo): UserInfo {
  if (user.groups.includes(authenticatedGroup)) return user
  return { ...user, groups: [...user.groups, authenticatedGroup] }
}
