import { webcrypto } from 'node:crypto'
import type * as X509 from '@peculiar/x509'

/** PEM texts; the key is PKCS #8. */
export interface KeyPair {
  readonly certificate: string
  readonly key: string
}

export interface IssueRequest {
  readonly commonName: string
  /** Groups, for client certificates. */
  readonly organizations: readonly string[]
  readonly usage: 'server' | 'client'
  readonly names: readonly { readonly type: 'dns' | 'ip'; readonly value: string }[]
}

/** Makes P-256 certificates. The library behind it takes a while to load: only needed when something must be made. */
export interface Issuer {
  authority(commonName: string): Promise<KeyPair>
  issue(authority: KeyPair, request: IssueRequest): Promise<KeyPair>
}

const dayMs = 86_400_000
/** The authority outlives what it signs. Years: 10 and 1. */
const authorityDays = 3650
const leafDays = 365
const curve = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

export async function createIssuer(options: {
  readonly nowMs: number
  readonly entropy: (length: number) => Uint8Array
}): Promise<Issuer> {
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  x509.cryptoProvider.set(webcrypto as unknown as Parameters<typeof x509.cryptoProvider.set>[0])
  // clocks of two machines differ a little
  const notBefore = new Date(options.nowMs - 60 * 60 * 1000)
  const until = (days: number): Date => new Date(options.nowMs + days * dayMs)
  const serial = (): string => {
    const bytes = Uint8Array.from(options.entropy(16))
    bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40 // positive, and never shortened (RFC 5280 4.1.2.2)
    return Buffer.from(bytes).toString('hex')
  }
  const newKeys = (): Promise<webcrypto.CryptoKeyPair> => webcrypto.subtle.generateKey(curve, true, ['sign', 'verify'])

  return {
    async authority(commonName) {
      const keys = await newKeys()
      const certificate = await x509.X509CertificateGenerator.createSelfSigned({
        serialNumber: serial(),
        name: [{ CN: [commonName] }],
        notBefore,
        notAfter: until(authorityDays),
        keys,
        signingAlgorithm: curve,
        extensions: [
          new x509.BasicConstraintsExtension(true, undefined, true),
          new x509.KeyUsagesExtension(
            x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
            true,
          ),
          await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
        ],
      })
      return { certificate: pem(certificate), key: await exportKey(x509, keys.privateKey) }
    },
    async issue(authority, request) {
      const keys = await newKeys()
      const issuer = new x509.X509Certificate(authority.certificate)
      const signingKey = await importKey(x509, authority.key)
      const usage = request.usage === 'server' ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth
      const certificate = await x509.X509CertificateGenerator.create({
        serialNumber: serial(),
        subject: [
          ...(request.organizations.length > 0 ? [{ O: [...request.organizations] }] : []),
          { CN: [request.commonName] },
        ],
        issuer: issuer.subjectName.toJSON(),
        notBefore,
        // never longer than the authority itself
        notAfter: new Date(Math.min(until(leafDays).getTime(), issuer.notAfter.getTime())),
        publicKey: keys.publicKey,
        signingKey,
        signingAlgorithm: curve,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension([usage]),
          await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
          await x509.AuthorityKeyIdentifierExtension.create(issuer),
          ...(request.names.length > 0 ? [new x509.SubjectAlternativeNameExtension([...request.names])] : []),
        ],
      })
      return { certificate: pem(certificate), key: await exportKey(x509, keys.privateKey) }
    },
  }
}

const pem = (certificate: X509.X509Certificate): string => `${certificate.toString('pem').trim()}\n`

async function exportKey(x509: typeof X509, key: webcrypto.CryptoKey): Promise<string> {
  const bytes = await webcrypto.subtle.exportKey('pkcs8', key)
  return `${x509.PemConverter.encode(bytes, 'PRIVATE KEY').trim()}\n`
}

function importKey(x509: typeof X509, text: string): Promise<webcrypto.CryptoKey> {
  const [bytes] = x509.PemConverter.decode(text)
  if (bytes === undefined) throw new Error('the certificate authority has no key')
  return webcrypto.subtle.importKey('pkcs8', bytes, curve, false, ['sign'])
}
