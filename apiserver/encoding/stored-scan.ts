import type { StoredOffsets } from '../types.ts'

/** What a walk over the head of stored bytes finds. */
export interface StoredHead {
  readonly offsets: StoredOffsets
  readonly kind: string
  readonly apiVersion: string
  readonly name: string
  readonly namespace: string
  readonly uid: string
  /** Byte range of the labels object, braces included; equal when there are none. */
  readonly labelsFrom: number
  readonly labelsTo: number
  /** Text as stored, "" when absent. */
  readonly creationTimestamp: string
  readonly deleting: boolean
}

/** The bytes are not what our encoder writes. Decode and encode them anew. */
export class NotCanonicalError extends Error {
  readonly at: number
  constructor(at: number, expected: string) {
    super(`stored bytes are not canonical at ${at}: expected ${expected}`)
    this.name = 'NotCanonicalError'
    this.at = at
  }
}

const quote = 0x22
const comma = 0x2c
const backslash = 0x5c
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

const kindHead = Buffer.from('{"kind":')
const apiVersionHead = Buffer.from(',"apiVersion":')
const metadataHead = Buffer.from(',"metadata":{')

/** ObjectMeta in Go struct order without resourceVersion, whose place is behind uid. */
const metadataFields = [
  'name',
  'generateName',
  'namespace',
  'selfLink',
  'uid',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
].map((name) => ({ name, bytes: Buffer.from(`"${name}":`) }))
const fieldsBeforeResourceVersion = 5

/**
 * Walks canonical JSON from its first byte to the end of metadata: `{"kind":…,"apiVersion":…,"metadata":{…}` with
 * metadata's fields in their one order and no white space. Anything else, a resourceVersion included, is refused:
 * positions found by searching for text could be an annotation's.
 *
 * @throws NotCanonicalError
 */
export function scanStored(stored: Uint8Array): StoredHead {
  const bytes = asBuffer(stored)
  const kindFrom = literal(bytes, 0, kindHead)
  const kindTo = skipString(bytes, kindFrom)
  const versionFrom = literal(bytes, kindTo, apiVersionHead)
  const versionTo = skipString(bytes, versionFrom)
  const metadata = literal(bytes, versionTo, metadataHead)

  let name = ''
  let namespace = ''
  let uid = ''
  let creationTimestamp = ''
  let labelsFrom = 0
  let labelsTo = 0
  let deleting = false
  let resourceVersion = metadata
  let commaBefore = false
  let at = metadata
  let next = 0
  let seen = 0
  while (bytes[at] !== closeBrace) {
    if (seen > 0) at = expect(bytes, at, comma, '","')
    next = fieldAt(bytes, at, next)
    const field = metadataFields[next]!
    const from = at + field.bytes.length
    at = skipValue(bytes, from)
    switch (field.name) {
      case 'name':
        name = stringAt(bytes, from, at)
        break
      case 'namespace':
        namespace = stringAt(bytes, from, at)
        break
      case 'uid':
        uid = stringAt(bytes, from, at)
        break
      case 'creationTimestamp':
        creationTimestamp = bytes[from] === quote ? stringAt(bytes, from, at) : ''
        break
      case 'deletionTimestamp':
        deleting = true
        break
      case 'labels':
        labelsFrom = from
        labelsTo = at
        break
    }
    if (next < fieldsBeforeResourceVersion) {
      resourceVersion = at
      commaBefore = true
    }
    next++
    seen++
  }
  const metadataEnd = at + 1
  const behind = bytes[metadataEnd]
  if (behind !== comma && !(behind === closeBrace && metadataEnd === bytes.length - 1)) {
    throw new NotCanonicalError(metadataEnd, '"," or the closing "}"')
  }
  if (bytes[bytes.length - 1] !== closeBrace) throw new NotCanonicalError(bytes.length - 1, '"}"')
  return {
    // A list item without type meta is "{" and what follows it, `"metadata":{…`.
    offsets: {
      body: versionTo + 1,
      metadata,
      resourceVersion,
      commaBefore,
      // Behind uid the comma of the next field is already there.
      commaAfter: !commaBefore && seen > 0,
      metadataEnd,
    },
    kind: stringAt(bytes, kindFrom, kindTo),
    apiVersion: stringAt(bytes, versionFrom, versionTo),
    name,
    namespace,
    uid,
    labelsFrom,
    labelsTo,
    creationTimestamp,
    deleting,
  }
}

/** A Buffer over the same memory. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function literal(bytes: Buffer, at: number, text: Buffer): number {
  for (let i = 0; i < text.length; i++) {
    if (bytes[at + i] !== text[i]) throw new NotCanonicalError(at, text.toString())
  }
  return at + text.length
}

function expect(bytes: Buffer, at: number, byte: number, what: string): number {
  if (bytes[at] !== byte) throw new NotCanonicalError(at, what)
  return at + 1
}

/** Which of the fields from `first` on starts at `at`; earlier ones would be out of order. */
function fieldAt(bytes: Buffer, at: number, first: number): number {
  for (let index = first; index < metadataFields.length; index++) {
    const text = metadataFields[index]!.bytes
    let i = 1
    while (i < text.length && bytes[at + i] === text[i]) i++
    if (i === text.length && bytes[at] === quote) return index
  }
  throw new NotCanonicalError(at, 'a metadata field in order')
}

function skipString(bytes: Buffer, from: number): number {
  if (bytes[from] !== quote) throw new NotCanonicalError(from, 'a string')
  for (let at = from + 1; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) return at + 1
    if (byte === backslash) at++
  }
  throw new NotCanonicalError(bytes.length, 'the end of a string')
}

function skipValue(bytes: Buffer, from: number): number {
  let depth = 0
  let at = from
  while (at < bytes.length) {
    const byte = bytes[at]!
    if (byte === quote) {
      at = skipString(bytes, at)
      if (depth === 0) return at
    } else if (byte === openBrace || byte === openBracket) {
      depth++
      at++
    } else if (byte === closeBrace || byte === closeBracket) {
      if (depth === 0) return nonEmpty(from, at)
      at++
      if (--depth === 0) return at
    } else if (byte === comma && depth === 0) {
      return nonEmpty(from, at)
    } else if (byte <= 0x20) {
      throw new NotCanonicalError(at, 'no white space')
    } else {
      at++
    }
  }
  throw new NotCanonicalError(at, 'the end of a value')
}

function nonEmpty(from: number, to: number): number {
  if (from === to) throw new NotCanonicalError(from, 'a value')
  return to
}

/** The string whose quotes are at `from` and `to - 1`. */
function stringAt(bytes: Buffer, from: number, to: number): string {
  if (bytes[from] !== quote) throw new NotCanonicalError(from, 'a string')
  for (let at = from + 1; at < to - 1; at++) {
    if (bytes[at] === backslash) {
      try {
        return JSON.parse(bytes.toString('utf8', from, to)) as string
      } catch {
        throw new NotCanonicalError(from, 'a JSON string')
      }
    }
  }
  return bytes.toString('utf8', from + 1, to - 1)
}
