import type { Revision } from '../../storage/index.ts'
import type { StoredOffsets } from '../types.ts'
import { asBuffer } from './stored-scan.ts'

/** Canonical bytes of one object in one version, and where things lie in them. */
export interface Representation {
  readonly bytes: Uint8Array
  readonly offsets: StoredOffsets
}

const newline = Buffer.from('\n')

/** `"resourceVersion":"N"` with the commas its place needs; nothing for what is not stored (a dry-run create). */
export function resourceVersionText(offsets: StoredOffsets, revision: Revision): string {
  if (revision === 0) return ''
  const text = `"resourceVersion":"${revision}"`
  return offsets.commaBefore ? `,${text}` : offsets.commaAfter ? `${text},` : text
}

/** The whole object with its resourceVersion, and `tail` behind it. */
export function spliceObject(
  of: Representation,
  revision: Revision,
  head: Buffer = empty,
  tail: Buffer = newline,
): Buffer {
  return splice(of.bytes, 0, of.offsets, revision, head, tail, of.bytes.length)
}

/** As an item of a list of a built-in kind: without kind and apiVersion. `head` should end in "{". */
export function spliceBody(of: Representation, revision: Revision, head: Buffer, tail: Buffer): Buffer {
  return splice(of.bytes, of.offsets.body, of.offsets, revision, head, tail, of.bytes.length)
}

/** `"metadata":{…}` alone between `head` and `tail`: what PartialObjectMetadata is made of. */
export function spliceMetadata(of: Representation, revision: Revision, head: Buffer, tail: Buffer): Buffer {
  return splice(of.bytes, of.offsets.body, of.offsets, revision, head, tail, of.offsets.metadataEnd)
}

export const empty = Buffer.alloc(0)

function splice(
  stored: Uint8Array,
  from: number,
  offsets: StoredOffsets,
  revision: Revision,
  head: Buffer,
  tail: Buffer,
  to: number,
): Buffer {
  const bytes = asBuffer(stored)
  const version = resourceVersionText(offsets, revision)
  const out = Buffer.allocUnsafe(head.length + (to - from) + version.length + tail.length)
  let at = head.copy(out, 0)
  at += bytes.copy(out, at, from, offsets.resourceVersion)
  at += out.write(version, at, 'latin1')
  at += bytes.copy(out, at, offsets.resourceVersion, to)
  tail.copy(out, at)
  return out
}
