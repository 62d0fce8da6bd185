import { createHash } from 'node:crypto'
import type { Document, ToStringOptions } from 'yaml'

/** What a client needs to reach the server as its administrator. PEM texts. */
export interface KubeconfigEntry {
  readonly server: string
  readonly authority: string
  readonly certificate: string
  readonly key: string
}

/** Cluster, context and user all have this name. */
export const contextName = 'trireme'

const marker = '# Written by trireme. Edits are kept: only the entries named "trireme" are renewed. checksum='

const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** A whole kubeconfig of our own, marked so that a later start knows it untouched. */
export function ownKubeconfig(entry: KubeconfigEntry): string {
  const body = `apiVersion: v1
kind: Config
clusters:
- name: ${contextName}
  cluster:
    certificate-authority-data: ${base64(entry.authority)}
    server: ${entry.server}
contexts:
- name: ${contextName}
  context:
    cluster: ${contextName}
    user: ${contextName}
current-context: ${contextName}
preferences: {}
users:
- name: ${contextName}
  user:
    client-certificate-data: ${base64(entry.certificate)}
    client-key-data: ${base64(entry.key)}
`
  return `${marker}${checksum(body)}\n${body}`
}

/** Written by us and by nobody else since. */
export function isOwnKubeconfig(text: string): boolean {
  const line = text.indexOf('\n')
  return text.startsWith(marker) && text.slice(marker.length, line) === checksum(text.slice(line + 1))
}

const checksum = (body: string): string => createHash('sha256').update(body).digest('hex').slice(0, 16)

export class KubeconfigError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, { cause: options?.cause })
    this.name = 'KubeconfigError'
  }
}

/**
 * The text to write: `existing` with the cluster, context and user named trireme pointing to `entry` (what else they
 * say, such as a context's namespace, stays), all other entries and the comments as they were. The current context
 * changes only when none was set. undefined: nothing to change.
 *
 * @throws KubeconfigError when `existing` is not a kubeconfig
 */
export async function kubeconfigText(
  existing: string | undefined,
  entry: KubeconfigEntry,
): Promise<string | undefined> {
  const own = ownKubeconfig(entry)
  if (existing === own) return undefined
  if (existing === undefined || existing.trim() === '' || isOwnKubeconfig(existing)) return own
  return merged(existing, entry)
}

async function merged(existing: string, entry: KubeconfigEntry): Promise<string | undefined> {
  const yaml = await import('yaml')
  const document = yaml.parseDocument(existing)
  if (document.errors.length > 0) {
    throw new KubeconfigError(`not YAML: ${document.errors[0]?.message.split('\n')[0] ?? ''}`)
  }
  if (!yaml.isMap(document.contents)) throw new KubeconfigError('not a kubeconfig: it is not a map')
  const kind: unknown = document.get('kind')
  if (kind !== undefined && kind !== 'Config')
    throw new KubeconfigError(`not a kubeconfig: kind is ${JSON.stringify(kind)}`)

  const layout = layoutOf(existing, document)
  let changed = false
  /** Fields of the item named trireme: given ones as they must be, `without` gone, all others as they are. */
  const set = (list: 'clusters' | 'contexts' | 'users', field: string, value: object, without: string[]): void => {
    const current: unknown = document.get(list)
    const item = { name: contextName, [field]: value }
    if (current === undefined || current === null) {
      document.set(list, document.createNode([item]))
      changed = true
      return
    }
    if (!yaml.isSeq(current)) throw new KubeconfigError(`not a kubeconfig: ${list} is not a list`)
    const place = current.items.findIndex((node) => yaml.isMap(node) && node.get('name') === contextName)
    const own = place < 0 ? undefined : current.items[place]
    const fields: unknown = yaml.isMap(own) ? own.get(field) : undefined
    if (!yaml.isMap(fields)) {
      if (place < 0) current.add(document.createNode(item))
      else current.set(place, document.createNode(item))
      changed = true
      return
    }
    for (const [name, text] of Object.entries(value)) {
      if (fields.get(name) === text) continue
      fields.set(name, text)
      changed = true
    }
    for (const name of without) if (fields.delete(name)) changed = true
  }
  const fill = (field: string, text: string): void => {
    const value: unknown = document.get(field)
    if (value !== undefined && value !== null && value !== '') return
    document.set(field, text)
    changed = true
  }
  fill('apiVersion', 'v1')
  fill('kind', 'Config')
  set('clusters', 'cluster', { 'certificate-authority-data': base64(entry.authority), server: entry.server }, [
    'certificate-authority',
    'insecure-skip-tls-verify',
    'tls-server-name',
  ])
  set('contexts', 'context', { cluster: contextName, user: contextName }, [])
  set(
    'users',
    'user',
    { 'client-certificate-data': base64(entry.certificate), 'client-key-data': base64(entry.key) },
    otherCredentials,
  )
  fill('current-context', contextName)
  // as it is, its layout included, when nothing is to change: writing it out anew would lay it out our way
  return changed ? document.toString(layout) : undefined
}

/** How to write `document` so that the most lines of its text stay what they are: people's files differ in indentation. */
function layoutOf(text: string, document: Document): ToStringOptions {
  const lines = new Set(text.split('\n'))
  const layouts = [true, false].flatMap((indentSeq) =>
    [true, false].map((flowCollectionPadding) => ({ lineWidth: 0, indentSeq, flowCollectionPadding })),
  )
  const changes = layouts.map(
    (layout) =>
      document
        .toString(layout)
        .split('\n')
        .filter((line) => !lines.has(line)).length,
  )
  return layouts[changes.indexOf(Math.min(...changes))] ?? { lineWidth: 0 }
}

/** What would stand beside or above our certificate. */
const otherCredentials = [
  'client-certificate',
  'client-key',
  'token',
  'tokenFile',
  'username',
  'password',
  'exec',
  'auth-provider',
]

/** Options for `curl -K`: absolute paths, so it works from anywhere. */
export function curlrcText(paths: {
  readonly authority: string
  readonly certificate: string
  readonly key: string
}): string {
  const quote = (text: string): string => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`
  return `cacert = ${quote(paths.authority)}
cert = ${quote(paths.certificate)}
key = ${quote(paths.key)}
silent
show-error
`
}
