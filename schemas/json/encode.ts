import type { FieldDescriptor, GVK, ObjectValue, TypeDescriptor, TypeRef } from '../types.ts'

/**
 * The canonical JSON of an object, byte for byte as the real server writes it: kind, apiVersion, then the fields
 * in Go's order, map keys sorted by bytes, what Go's `omitempty` leaves out left out, HTML characters escaped.
 * Equal objects give equal bytes.
 *
 * @param gvk - Written as kind and apiVersion whatever the object says; without it the object's own stand.
 */
export function encodeJson(object: ObjectValue, type: TypeDescriptor, gvk?: GVK): Uint8Array {
  return Buffer.from(encodeJsonText(object, type, gvk), 'utf8')
}

/** encodeJson before UTF-8. */
export function encodeJsonText(object: ObjectValue, type: TypeDescriptor, gvk?: GVK): string {
  if (gvk === undefined) return encodeMessage(object, planOf(type))
  const apiVersion = gvk.group === '' ? gvk.version : `${gvk.group}/${gvk.version}`
  const head = `{"kind":${encodeString(gvk.kind)},"apiVersion":${encodeString(apiVersion)}`
  const fields = encodeFields(object, topPlanOf(type))
  return fields === '' ? `${head}}` : `${head},${fields}}`
}

/** A value of a type that is not a whole object: a list of metrics in an annotation. */
export function encodeJsonValue(value: unknown, type: TypeRef): string {
  return encoderOf(type)(value)
}

/** JSON without a type, keys in the order they have; for custom resources and raw values. */
export function encodeGenericJson(value: unknown): string {
  if (typeof value === 'string') return encodeString(value)
  if (typeof value === 'number') return encodeDouble(value)
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return encodeList(value as readonly unknown[], encodeGenericJson)
  if (typeof value !== 'object' || value === null) return 'null'
  let members = ''
  for (const key of Object.keys(value)) {
    const member = (value as ObjectValue)[key]
    if (member === undefined) continue
    members += `${members === '' ? '' : ','}${encodeString(key)}:${encodeGenericJson(member)}`
  }
  return `{${members}}`
}

type Encoder = (value: unknown) => string

interface FieldPlan {
  readonly name: string
  /** `"name":` */
  readonly key: string
  readonly encode: Encoder
  /** What stands for an absent value; undefined: the field is left out. */
  readonly absent: string | undefined
  /** Whether a present value is left out as empty. */
  readonly omits: ((value: unknown) => boolean) | undefined
}

interface Plan {
  readonly fields: readonly FieldPlan[]
  /** Names to tell unknown fields by; only where those are kept. */
  readonly known: ReadonlySet<string> | undefined
}

// Derived from immutable descriptors, and gone with them.
const plans = new WeakMap<TypeDescriptor, Plan>()
const topPlans = new WeakMap<TypeDescriptor, Plan>()

function planOf(type: TypeDescriptor): Plan {
  let plan = plans.get(type)
  if (plan === undefined) {
    plan = {
      fields: type.fields.map(planField),
      known: type.preserveUnknown ? new Set(type.byJsonName.keys()) : undefined,
    }
    plans.set(type, plan)
  }
  return plan
}

/** The plan without kind and apiVersion, metadata first. */
function topPlanOf(type: TypeDescriptor): Plan {
  let plan = topPlans.get(type)
  if (plan === undefined) {
    const { fields, known } = planOf(type)
    const rest = fields.filter(({ name }) => name !== 'kind' && name !== 'apiVersion' && name !== 'metadata')
    plan = {
      fields: [...fields.filter(({ name }) => name === 'metadata'), ...rest],
      known: known && new Set([...known, 'kind', 'apiVersion']),
    }
    topPlans.set(type, plan)
  }
  return plan
}

function planField(field: FieldDescriptor): FieldPlan {
  return {
    name: field.jsonName,
    key: `${encodeString(field.jsonName)}:`,
    encode: encoderOf(field.type),
    absent: field.presence === 'always' ? (field.nullable === true ? 'null' : zeroText(field.type)) : undefined,
    omits: field.presence === 'omitEmpty' ? emptinessOf(field.type) : undefined,
  }
}

/** Go's zero values, as JSON; null for what is not here: lists, maps, times, bytes, raw values. */
const zeroTexts: ReadonlyMap<TypeRef['is'], string> = new Map([
  ['string', '""'],
  ['enum', '""'],
  ['bool', 'false'],
  ['int32', '0'],
  ['int64', '0'],
  ['double', '0'],
  ['intOrString', '0'],
  ['quantity', '"0"'],
  ['duration', '"0s"'],
] as const)

function zeroText(type: TypeRef): string {
  // A struct that is not a pointer cannot contain itself: this ends.
  if (type.is === 'message') return encodeMessage(emptyObject, planOf(type.descriptor()))
  return zeroTexts.get(type.is) ?? 'null'
}

const emptyObject = Object.freeze(Object.create(null) as ObjectValue)

function emptinessOf(type: TypeRef): (value: unknown) => boolean {
  if (type.is === 'list') return (value) => (value as readonly unknown[]).length === 0
  if (type.is === 'map') return (value) => isEmpty(value as ObjectValue)
  return (value) => value === '' || value === 0 || value === false
}

function isEmpty(object: ObjectValue): boolean {
  for (const _ in object) return false
  return true
}

function encoderOf(type: TypeRef): Encoder {
  switch (type.is) {
    case 'string':
    case 'enum':
    case 'bytes':
    case 'quantity':
    case 'time':
    case 'microTime':
    case 'duration':
      return encodeText
    case 'bool':
    case 'int32':
    case 'int64':
      return String
    case 'double':
      return (value) => encodeDouble(value as number)
    case 'intOrString':
      return (value) => (typeof value === 'string' ? encodeString(value) : String(value))
    case 'raw':
    case 'fields':
      return encodeGenericJson
    case 'message': {
      let plan: Plan | undefined
      return (value) => encodeMessage(value as ObjectValue, (plan ??= planOf(type.descriptor())))
    }
    case 'list': {
      const item = encoderOf(type.of)
      return (value) => encodeList(value as readonly unknown[], item)
    }
    case 'map': {
      const item = encoderOf(type.of)
      return (value) => encodeMap(value as ObjectValue, item)
    }
  }
}

function encodeText(value: unknown): string {
  return value === null ? 'null' : encodeString(value as string)
}

function encodeMessage(object: ObjectValue, plan: Plan): string {
  return `{${encodeFields(object, plan)}}`
}

function encodeFields(object: ObjectValue, plan: Plan): string {
  let text = ''
  for (const field of plan.fields) {
    const value = object[field.name]
    if (value === undefined || value === null) {
      if (field.absent === undefined) continue
      text += text === '' ? field.key + field.absent : `,${field.key}${field.absent}`
      continue
    }
    if (field.omits?.(value) === true) continue
    text += text === '' ? field.key + field.encode(value) : `,${field.key}${field.encode(value)}`
  }
  return plan.known === undefined ? text : text + encodeUnknown(object, plan.known, text === '')
}

function encodeUnknown(object: ObjectValue, known: ReadonlySet<string>, first: boolean): string {
  let text = ''
  for (const key of sortedKeys(object)) {
    const value = object[key]
    if (known.has(key) || value === undefined) continue
    text += `${first && text === '' ? '' : ','}${encodeString(key)}:${encodeGenericJson(value)}`
  }
  return text
}

function encodeList(items: readonly unknown[], encode: Encoder): string {
  let text = '['
  for (let index = 0; index < items.length; index++) {
    const item = items[index]
    if (index > 0) text += ','
    text += item === null || item === undefined ? 'null' : encode(item)
  }
  return `${text}]`
}

function encodeMap(entries: ObjectValue, encode: Encoder): string {
  let text = ''
  for (const key of sortedKeys(entries)) {
    const value = entries[key]
    const item = value === null || value === undefined ? 'null' : encode(value)
    text += text === '' ? `${encodeString(key)}:${item}` : `,${encodeString(key)}:${item}`
  }
  return `{${text}}`
}

const surrogate = /[\ud800-\udfff]/

/** Keys in the order of their UTF-8 bytes; UTF-16 order differs only where there are surrogates. */
function sortedKeys(object: ObjectValue): string[] {
  const keys = Object.keys(object)
  if (keys.length < 2) return keys
  keys.sort()
  return keys.some((key) => surrogate.test(key)) ? keys.sort(compareUtf8) : keys
}

function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

// Control characters and lone surrogates have to go, and Go escapes what could end an HTML script.
const mustEscape = /[\p{Cc}\p{Surrogate}"\\<>&\u2028\u2029]/u
const escaped = new RegExp(mustEscape, 'gu')

/** A JSON string as Go's encoder writes it, HTML characters escaped. */
export function encodeString(text: string): string {
  return mustEscape.test(text) ? `"${text.replaceAll(escaped, escapeCharacter)}"` : `"${text}"`
}

function escapeCharacter(char: string): string {
  switch (char) {
    case '"':
      return '\\"'
    case '\\':
      return '\\\\'
    case '\b':
      return '\\b'
    case '\f':
      return '\\f'
    case '\n':
      return '\\n'
    case '\r':
      return '\\r'
    case '\t':
      return '\\t'
    default: {
      const code = char.charCodeAt(0)
      // Go leaves DEL and the C1 controls as they are.
      if (code >= 0x7f && code <= 0x9f) return char
      return code >= 0xd800 && code <= 0xdfff ? '\\ufffd' : `\\u${code.toString(16).padStart(4, '0')}`
    }
  }
}

/** JavaScript and Go agree on when a double takes an exponent and how ("1e+21", "1e-7"). */
function encodeDouble(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value)
}
