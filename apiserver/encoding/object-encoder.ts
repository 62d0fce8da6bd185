import { decodeJson, encodeGenericJson, encodeJson, type ObjectValue } from '../../schemas/index.ts'
import type { Env, Revision } from '../../storage/index.ts'
import { tableFor } from '../table/tables.ts'
import type { CachedObject, RequestScope } from '../types.ts'
import { EncodingCache } from './encoding-cache.ts'
import { indentJson } from './json-text.ts'
import type { AnswerFormat } from './negotiation.ts'
import { ProtobufEncoder, protobufValue, watchFrame } from './protobuf-encoder.ts'
import { empty, type Representation, spliceBody, spliceMetadata, spliceObject } from './splice.ts'
import { apiVersionOf, descriptorOf, parseStored } from './stored-object.ts'
import { asBuffer, scanStored } from './stored-scan.ts'
import { yamlItem, yamlText } from './yaml-text.ts'

/** ListMeta beside the items. */
export interface ListMeta {
  readonly revision: Revision
  readonly continueToken?: string
  readonly remainingItemCount?: number
}

/** A list as its pieces: head, items with separators between them, tail. */
export interface ListFraming {
  readonly head: string
  readonly separator: string
  readonly tail: string
  /** Items are `"{" + body` of the representation with resourceVersion: the writer may splice them itself. */
  readonly spliced: boolean
  item(object: CachedObject): Buffer
}

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'

const openBrace = Buffer.from('{')
const frameTail = Buffer.from('}\n')
const partialTail = Buffer.from('}')
const partialFrameTail = Buffer.from('}}\n')

/** Turns cached objects into answers. Identity JSON is spliced; everything else is made from it. Lists here are text. */
export class ObjectEncoder {
  readonly #clock: Env['clock']
  readonly #converted = new EncodingCache<Representation>()
  readonly #frameHeads = new Map<string, Buffer>()
  readonly protobuf = new ProtobufEncoder((scope, object) => this.represent(scope, object))

  constructor(clock: Env['clock']) {
    this.#clock = clock
  }

  /** The object's bytes in the version asked for. */
  represent(scope: RequestScope, object: CachedObject): Representation {
    const { gvk } = scope.served
    const storage = scope.resource.storageVersion
    if (gvk.version === storage.version && gvk.group === storage.group && gvk.kind === storage.kind) {
      return { bytes: object.stored, offsets: object.offsets }
    }
    return this.#converted.get(`${apiVersionOf(gvk)} ${object.revision} ${object.key}`, object.stored, () => {
      const value = scope.served.fromStorage(decodeJson(object.stored, descriptorOf(storage)).object)
      const bytes = encodeJson(value, scope.served.type, gvk)
      return { bytes, offsets: scanStored(bytes).offsets }
    })
  }

  /** A whole answer. `at`: the resourceVersion to show, the object's own by default. */
  object(scope: RequestScope, format: AnswerFormat, object: CachedObject, at: Revision = object.revision): Uint8Array {
    if (format.media === 'protobuf') return this.protobuf.object(scope, format, object, at)
    const compact = this.#compactObject(scope, format, object, at)
    if (format.media === 'yaml') return Buffer.from(yamlText(JSON.parse(compact.toString('utf8'))))
    return format.pretty ? Buffer.from(indentJson(compact)) : Buffer.concat([compact, newline])
  }

  #compactObject(scope: RequestScope, format: AnswerFormat, object: CachedObject, at: Revision): Buffer {
    switch (format.as) {
      case 'Object':
        return spliceObject(this.represent(scope, object), at, empty, empty)
      case 'PartialObjectMetadata':
      case 'PartialObjectMetadataList':
        return this.#partial(scope, format, object, at)
      case 'Table':
        return Buffer.from(this.#table(scope, format, { object, at, columns: true }))
    }
  }

  list(scope: RequestScope, format: AnswerFormat, meta: ListMeta, isEmpty: boolean): ListFraming {
    const shell = this.#listShell(scope, format, meta)
    const item = (object: CachedObject): Buffer => this.#compactItem(scope, format, object)
    if (format.media === 'yaml') return yamlFraming(shell, isEmpty, item)
    if (!format.pretty) {
      return {
        head: shell.slice(0, -2),
        separator: ',',
        tail: ']}\n',
        spliced: format.as === 'Object' && scope.itemTypeMeta !== true,
        item,
      }
    }
    const pretty = indentJson(Buffer.from(shell))
    if (isEmpty) return { head: pretty, separator: '', tail: '', spliced: false, item }
    return {
      head: `${pretty.slice(0, -3)}\n    `,
      separator: ',\n    ',
      tail: '\n  ]\n}',
      spliced: false,
      item: (object) => Buffer.from(indentJson(item(object), 2)),
    }
  }

  /** The list without items; ends in `[]}`. */
  #listShell(scope: RequestScope, format: AnswerFormat, meta: ListMeta): string {
    const metadata = listMetaText(meta)
    const metaVersion = `meta.k8s.io/${format.metaVersion}`
    switch (format.as) {
      case 'Object': {
        const { gvk } = scope.served
        return `{"kind":"${gvk.kind}List","apiVersion":"${apiVersionOf(gvk)}","metadata":${metadata},"items":[]}`
      }
      case 'PartialObjectMetadata':
      case 'PartialObjectMetadataList':
        return `{"kind":"PartialObjectMetadataList","apiVersion":"${metaVersion}","metadata":${metadata},"items":[]}`
      case 'Table': {
        const columns = encodeGenericJson(tableFor(scope.resource).columns)
        return `{"kind":"Table","apiVersion":"${metaVersion}","metadata":${metadata},"columnDefinitions":${columns},"rows":[]}`
      }
    }
  }

  #compactItem(scope: RequestScope, format: AnswerFormat, object: CachedObject): Buffer {
    switch (format.as) {
      case 'Object': {
        const representation = this.represent(scope, object)
        return scope.itemTypeMeta === true
          ? spliceObject(representation, object.revision, empty, empty)
          : spliceBody(representation, object.revision, openBrace, empty)
      }
      case 'PartialObjectMetadata':
      case 'PartialObjectMetadataList':
        return this.#partial(scope, format, object, object.revision)
      case 'Table':
        return Buffer.from(this.#row(scope, format, object, object.revision))
    }
  }

  /** One line of a watch stream. `columns`: a Table's first event carries its column definitions. */
  frame(
    scope: RequestScope,
    format: AnswerFormat,
    event: {
      readonly type: EventType
      readonly object: CachedObject
      readonly at: Revision
      readonly columns: boolean
    },
  ): Uint8Array {
    if (format.media === 'protobuf') return this.protobuf.frame(scope, format, event)
    const head = this.#frameHead(event.type, format)
    switch (format.as) {
      case 'Object':
        return spliceObject(this.represent(scope, event.object), event.at, head, frameTail)
      case 'PartialObjectMetadata':
      case 'PartialObjectMetadataList':
        return spliceMetadata(this.represent(scope, event.object), event.at, head, partialFrameTail)
      case 'Table':
        return Buffer.from(`{"type":"${event.type}","object":${this.#table(scope, format, event)}}\n`)
    }
  }

  /** A bookmark: an object of the right kind with nothing but a resourceVersion (and the mark behind initial events). */
  bookmark(
    scope: RequestScope,
    format: AnswerFormat,
    of: { readonly revision: Revision; readonly initialEventsEnd: boolean; readonly columns: boolean },
  ): Uint8Array {
    if (format.media === 'protobuf') {
      const marks: ObjectValue = of.initialEventsEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}
      return this.protobuf.bookmark(scope, format, { resourceVersion: String(of.revision), ...marks })
    }
    const annotations = of.initialEventsEnd ? ',"annotations":{"k8s.io/initial-events-end":"true"}' : ''
    const metadata = `{"resourceVersion":"${of.revision}"${annotations}}`
    const metaVersion = `meta.k8s.io/${format.metaVersion}`
    const partial = `{"kind":"PartialObjectMetadata","apiVersion":"${metaVersion}","metadata":${metadata}}`
    const { gvk } = scope.served
    let object: string
    if (format.as === 'Object') {
      object = `{"kind":"${gvk.kind}","apiVersion":"${apiVersionOf(gvk)}","metadata":${metadata}}`
    } else if (format.as === 'Table') {
      const table = tableFor(scope.resource)
      const columns = of.columns ? encodeGenericJson(table.columns) : 'null'
      const cells = encodeGenericJson(table.columns.map(() => ''))
      object = `{"kind":"Table","apiVersion":"${metaVersion}","metadata":{"resourceVersion":"${of.revision}"},"columnDefinitions":${columns},"rows":[{"cells":${cells},"object":${partial}}]}`
    } else {
      object = partial
    }
    return Buffer.from(`{"type":"BOOKMARK","object":${object}}\n`)
  }

  /** What a watch says last when it failed. */
  errorFrame(format: AnswerFormat, status: ObjectValue): Uint8Array {
    const envelope = format.media === 'protobuf' ? protobufValue(status) : undefined
    if (envelope !== undefined) return watchFrame('ERROR', envelope)
    return Buffer.from(`{"type":"ERROR","object":${JSON.stringify(status)}}\n`)
  }

  #frameHead(type: EventType, format: AnswerFormat): Buffer {
    const id = format.as === 'Object' ? type : `${type} ${format.metaVersion}`
    let head = this.#frameHeads.get(id)
    if (head === undefined) {
      const inner =
        format.as === 'Object'
          ? ''
          : `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/${format.metaVersion}",`
      head = Buffer.from(`{"type":"${type}","object":${inner}`)
      this.#frameHeads.set(id, head)
    }
    return head
  }

  #partial(scope: RequestScope, format: AnswerFormat, object: CachedObject, at: Revision): Buffer {
    const head = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/${format.metaVersion}",`
    return spliceMetadata(this.represent(scope, object), at, Buffer.from(head), partialTail)
  }

  #table(
    scope: RequestScope,
    format: AnswerFormat,
    of: { readonly object: CachedObject; readonly at: Revision; readonly columns: boolean },
  ): string {
    const columns = of.columns ? encodeGenericJson(tableFor(scope.resource).columns) : 'null'
    const row = this.#row(scope, format, of.object, of.at)
    return `{"kind":"Table","apiVersion":"meta.k8s.io/${format.metaVersion}","metadata":{"resourceVersion":"${of.at}"},"columnDefinitions":${columns},"rows":[${row}]}`
  }

  #row(scope: RequestScope, format: AnswerFormat, object: CachedObject, at: Revision): string {
    const cells = tableFor(scope.resource).cells(parseStored(object.stored), this.#clock.wallMs())
    return `{"cells":${encodeGenericJson(cells)},"object":${this.#rowObject(scope, format, object, at)}}`
  }

  #rowObject(scope: RequestScope, format: AnswerFormat, object: CachedObject, at: Revision): string {
    switch (format.rowObject) {
      case 'None':
        return 'null'
      case 'Metadata':
        return this.#partial(scope, format, object, at).toString('utf8')
      case 'Object':
        return spliceObject(this.represent(scope, object), at, empty, empty).toString('utf8')
    }
  }
}

const newline = Buffer.from('\n')

/**
 * Puts an item into `out` at `at` as `spliced` framing says; returns the end. The room must be there. The hot loop of
 * every list: two copies and a dozen bytes per item.
 */
export function spliceItemInto(out: Buffer, at: number, of: Representation, revision: Revision): number {
  const bytes = asBuffer(of.bytes)
  const { offsets } = of
  let end = at
  out[end++] = 0x7b
  end += bytes.copy(out, end, offsets.body, offsets.resourceVersion)
  if (offsets.commaBefore) out[end++] = 0x2c
  for (let index = 0; index < versionField.length; index++) out[end++] = versionField[index]!
  end = writeDigits(out, end, revision)
  out[end++] = 0x22
  if (offsets.commaAfter) out[end++] = 0x2c
  return end + bytes.copy(out, end, offsets.resourceVersion)
}

const versionField = Buffer.from('"resourceVersion":"')

function writeDigits(out: Buffer, at: number, value: number): number {
  let digits = 1
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) digits++
  let rest = value
  for (let position = at + digits - 1; position >= at; position--) {
    out[position] = 0x30 + (rest % 10)
    rest = Math.floor(rest / 10)
  }
  return at + digits
}

function listMetaText(meta: ListMeta): string {
  const token = meta.continueToken === undefined ? '' : `,"continue":"${meta.continueToken}"`
  const remaining = meta.remainingItemCount === undefined ? '' : `,"remainingItemCount":${meta.remainingItemCount}`
  return `{"resourceVersion":"${meta.revision}"${token}${remaining}}`
}

/** Keys are sorted, so the items stand in the middle of a list and at the end of a Table. */
function yamlFraming(shell: string, isEmpty: boolean, item: (object: CachedObject) => Buffer): ListFraming {
  const text = yamlText(JSON.parse(shell))
  const mark = text.includes('\nitems: []\n') ? '\nitems: []\n' : '\nrows: []\n'
  const cut = text.indexOf(mark)
  const key = mark.slice(0, mark.indexOf(':') + 1)
  return {
    head: isEmpty ? text : `${text.slice(0, cut)}${key}\n`,
    separator: '',
    tail: isEmpty ? '' : text.slice(cut + mark.length),
    spliced: false,
    item: (object) => Buffer.from(yamlItem(JSON.parse(item(object).toString('utf8')))),
  }
}
