import { createPrivateKey, X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { mastersGroup } from '../authentication/authenticator.ts'
import { isIpAddress } from '../ip-address.ts'
import type { Issuer, IssueRequest, KeyPair } from './issuer-node.ts'
import { readText, writePrivate } from './pki-files-node.ts'

/** Everything the server and its operator prove themselves with. */
export interface Pki {
  readonly authority: KeyPair
  readonly server: KeyPair
  readonly admin: KeyPair
}

export interface PkiPlan {
  readonly pki: Pki
  /** Files to write, by path; empty when all on disk is good. */
  readonly changed: ReadonlyMap<string, string>
}

/** Made anew at start when less than this is left, so that a server restarted now and then never meets the end. */
export const renewBeforeMs = 90 * 86_400_000

/** The API server's address inside a cluster: first of the service range 10.96.0.0/16. */
export const serviceAddress = '10.96.0.1'

/** Addresses of this machine in one certificate; those beyond are left out. */
const machineAddressesMax = 64

export const adminName = 'trireme-admin'

export interface PkiPaths {
  readonly directory: string
  readonly authority: { readonly certificate: string; readonly key: string }
  readonly server: { readonly certificate: string; readonly key: string }
  readonly admin: { readonly certificate: string; readonly key: string }
}

export function pkiPaths(dataDir: string): PkiPaths {
  const directory = join(dataDir, 'pki')
  const pair = (name: string) => ({ certificate: join(directory, `${name}.crt`), key: join(directory, `${name}.key`) })
  return { directory, authority: pair('ca'), server: pair('apiserver'), admin: pair('admin') }
}

/**
 * Names the server certificate must carry when the server listens on `bindAddress`; on every address of this machine those
 * are `machineAddresses`.
 */
function serverNames(bindAddress: string, machineAddresses: () => readonly string[]): IssueRequest['names'] {
  const everywhere = bindAddress === '0.0.0.0' || bindAddress === '::'
  const names = [
    'localhost',
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
    '127.0.0.1',
    '::1',
    serviceAddress,
    ...(everywhere ? machineAddresses().slice(0, machineAddressesMax) : [bindAddress]),
  ]
  return [...new Set(names)].map((value) => ({ type: isIpAddress(value) ? 'ip' : 'dns', value }))
}

/**
 * Reads what is on disk and decides what must be made: nothing is written here, so that a start which fails later
 * leaves no trace. `loadIssuer` is called only when something must be made.
 */
export async function planPki(options: {
  readonly dataDir: string
  readonly bindAddress: string
  /** Where others reach this machine; looked at when `bindAddress` is all of them. */
  readonly machineAddresses: () => readonly string[]
  readonly nowMs: number
  readonly loadIssuer: () => Promise<Issuer>
}): Promise<PkiPlan> {
  const paths = pkiPaths(options.dataDir)
  const [oldAuthority, oldServer, oldAdmin] = await Promise.all([
    readPair(paths.authority),
    readPair(paths.server),
    readPair(paths.admin),
  ])
  const names = serverNames(options.bindAddress, options.machineAddresses)
  const fresh = (pair: KeyPair | undefined): X509Certificate | undefined => checked(pair, options.nowMs)
  const changed = new Map<string, string>()
  let issuer: Promise<Issuer> | undefined
  const make = async (paths: PkiPaths['authority'], run: (issuer: Issuer) => Promise<KeyPair>): Promise<KeyPair> => {
    issuer ??= options.loadIssuer()
    const pair = await run(await issuer)
    changed.set(paths.key, pair.key)
    changed.set(paths.certificate, pair.certificate)
    return pair
  }

  const authorityCertificate = fresh(oldAuthority)
  const authority =
    oldAuthority !== undefined && authorityCertificate?.ca === true
      ? oldAuthority
      : await make(paths.authority, (issuer) => issuer.authority('trireme-ca'))
  const signer = new X509Certificate(authority.certificate)
  const good = (pair: KeyPair | undefined, accept: (certificate: X509Certificate) => boolean): pair is KeyPair => {
    const certificate = fresh(pair)
    return certificate !== undefined && certificate.verify(signer.publicKey) && accept(certificate)
  }
  const server = good(oldServer, (certificate) => names.every((name) => covers(certificate, name)))
    ? oldServer
    : await make(paths.server, (issuer) =>
        issuer.issue(authority, { commonName: 'kube-apiserver', organizations: [], usage: 'server', names }),
      )
  const admin = good(oldAdmin, () => true)
    ? oldAdmin
    : await make(paths.admin, (issuer) =>
        issuer.issue(authority, {
          commonName: adminName,
          organizations: [mastersGroup],
          usage: 'client',
          names: [],
        }),
      )
  return { pki: { authority, server, admin }, changed }
}

export async function writePki(plan: PkiPlan): Promise<void> {
  for (const [path, text] of plan.changed) await writePrivate(path, text)
}

async function readPair(paths: PkiPaths['authority']): Promise<KeyPair | undefined> {
  const [certificate, key] = await Promise.all([readText(paths.certificate), readText(paths.key)])
  return certificate === undefined || key === undefined ? undefined : { certificate, key }
}

/** The certificate when it is readable, belongs to its key and is valid long enough; undefined otherwise. */
function checked(pair: KeyPair | undefined, nowMs: number): X509Certificate | undefined {
  if (pair === undefined) return undefined
  try {
    const certificate = new X509Certificate(pair.certificate)
    if (!certificate.checkPrivateKey(createPrivateKey(pair.key))) return undefined
    if (new Date(certificate.validFrom).getTime() > nowMs) return undefined
    return new Date(certificate.validTo).getTime() - nowMs < renewBeforeMs ? undefined : certificate
  } catch {
    return undefined // damaged: made anew like a missing one
  }
}

function covers(certificate: X509Certificate, name: IssueRequest['names'][number]): boolean {
  return name.type === 'ip'
    ? certificate.checkIP(name.value) !== undefined
    : certificate.checkHost(name.value, { subject: 'never' }) !== undefined
}
