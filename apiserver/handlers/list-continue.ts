import { badRequest } from '../errors.ts'

/** Where the next page of a list starts. */
export interface ContinuePosition {
  /** Revision of all pages; -1: whatever is current (an inconsistent continuation). */
  readonly revision: number
  /** First key that may be in the page. */
  readonly key: string
}

const version = 'meta.k8s.io/v1'

/**
 * base64url of `{"v":"meta.k8s.io/v1","rv":N,"start":"…\u0000"}` (kubernetes/apiserver storage/continue.go).
 *
 * @param after - Key of the last item given; the next page starts right behind it.
 */
export function encodeContinue(prefix: string, after: string, revision: number): string {
  return encodeStart(`${after.slice(prefix.length)}\u0000`, revision)
}

/** A token that goes on from the same key at the current revision. */
export function inconsistentContinue(prefix: string, position: ContinuePosition): string {
  return encodeStart(position.key.slice(prefix.length), -1)
}

function encodeStart(start: string, revision: number): string {
  return Buffer.from(JSON.stringify({ v: version, rv: revision, start })).toString('base64url')
}

/** @throws ApiError 400 for anything that is not ours, or points outside `prefix`. */
export function decodeContinue(prefix: string, token: string): ContinuePosition {
  if (!/^[A-Za-z0-9_-]+={0,2}$/.test(token)) throw notValid('illegal base64 data')
  let parsed: unknown
  try {
    parsed = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'))
  } catch {
    throw notValid('it does not decode')
  }
  if (typeof parsed !== 'object' || parsed === null) throw notValid('it does not decode')
  const { v, rv, start } = parsed as { readonly v?: unknown; readonly rv?: unknown; readonly start?: unknown }
  if (v !== version) throw notValid(`server does not recognize this encoded version ${JSON.stringify(v ?? '')}`)
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0 || rv < -1) {
    throw notValid(`incorrect encoded start resourceVersion (version ${version})`)
  }
  if (typeof start !== 'string' || start === '') throw notValid(`encoded start key empty (version ${version})`)
  if (!isClean(start)) throw notValid(start)
  return { revision: rv, key: prefix + start }
}

/** No empty, "." or ".." segments, with which a key could point elsewhere. */
function isClean(start: string): boolean {
  const segments = (start.startsWith('/') ? start.slice(1) : start).split('/')
  return !start.startsWith('/') && segments.every((segment) => segment !== '' && segment !== '.' && segment !== '..')
}

function notValid(why: string): Error {
  return badRequest(`continue key is not valid: ${why}`)
}
