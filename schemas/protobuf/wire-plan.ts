import assert from 'node:assert/strict'
import type { FieldDescriptor, TypeDescriptor, TypeRef } from '../types.ts'
import { wireBytes, wireFixed64, wireVarint } from './wire-reader.ts'

/** One varint, fixed64 or run of bytes. */
export interface PlainType {
  readonly is: 'string' | 'bool' | 'int32' | 'int64' | 'double' | 'bytes'
}

/** A message that holds more than its bytes say. */
export type NestedType =
  | { readonly is: 'message'; readonly plan: () => WirePlan }
  | {
      readonly is:
        | 'quantity'
        | 'time'
        | 'microTime'
        | 'duration'
        | 'intOrString'
        | 'raw'
        | 'fields'
        /** A named list of strings is a message {items = 1}: v1.Verbs, v1.ExtraValue, v1.AttestationValue. */
        | 'strings'
    }
  /** Either-or values of CRD schemas, kept as plain JSON in objects. `schema` is JSONSchemaProps. */
  | { readonly is: 'schemaOrList' | 'schemaOrBool' | 'schemaOrStrings'; readonly schema: () => TypeDescriptor }

/** How a value looks on the wire: TypeRef, with what Go's types add to it. */
export type WireType = PlainType | NestedType | { readonly is: 'list' | 'map'; readonly of: WireType }

export interface WireField {
  readonly number: number
  readonly name: string
  readonly type: WireType
  /** A Go pointer: nothing on the wire when absent. Everything else but lists, maps and bytes is always written. */
  readonly pointer: boolean
}

/** An embedded struct: a message of its own on the wire, whose fields are the parent's in JSON. */
export interface WireEmbedded {
  readonly number: number
  readonly embedded: WirePlan
}

export type WireMember = WireField | WireEmbedded

export interface WirePlan {
  /** Go's name of the struct. */
  readonly name: string
  /** By ascending number, the order in which Go writes. */
  readonly members: readonly WireMember[]
  readonly byNumber: ReadonlyMap<number, WireMember>
}

// Derived from immutable descriptors, and gone with them.
const plans = new WeakMap<TypeDescriptor, WirePlan>()

export function wirePlanOf(type: TypeDescriptor): WirePlan {
  let plan = plans.get(type)
  if (plan === undefined) {
    plan = buildPlan(localName(type), type, type.fields, 0)
    plans.set(type, plan)
  }
  return plan
}

function localName(type: TypeDescriptor): string {
  return type.name.slice(type.name.lastIndexOf('.') + 1)
}

/** @param level - How many embedded structs around these fields have been entered. */
function buildPlan(name: string, type: TypeDescriptor, fields: readonly FieldDescriptor[], level: number): WirePlan {
  const members: WireMember[] = []
  const embedded = new Map<string, FieldDescriptor[]>()
  for (const field of fields) {
    const place = field.inlineMessage
    // Type meta travels in the envelope; number 0 has no protobuf form at all.
    if (place === 'TypeMeta' || field.protoNumber === 0) continue
    const inside = place?.split(',')[level]
    if (inside === undefined) {
      const wire = wireTypeOf(type, field)
      if (wire !== undefined)
        members.push({ number: field.protoNumber, name: field.jsonName, type: wire, ...pointerOf(field) })
      continue
    }
    const siblings = embedded.get(inside)
    if (siblings === undefined) embedded.set(inside, [field])
    else siblings.push(field)
  }
  for (const [place, inner] of embedded) {
    const [struct = '', number = ''] = place.split(':')
    members.push({ number: Number(number), embedded: buildPlan(struct, type, inner, level + 1) })
  }
  members.sort((a, b) => a.number - b.number)
  const byNumber = new Map(members.map((member) => [member.number, member]))
  assert(byNumber.size === members.length, `${type.name}: a field number is used twice`)
  return { name, members, byNumber }
}

function pointerOf(field: FieldDescriptor): { readonly pointer: boolean } {
  return { pointer: field.presence === 'pointer' || field.nullable === true }
}

/** undefined: a type that is not known here (behind a gate that is off), left out. */
function wireTypeOf(owner: TypeDescriptor, field: FieldDescriptor): WireType | undefined {
  const { goType } = field
  const schema = (): TypeDescriptor => owner
  if (goType === 'v1.Verbs') return { is: 'strings' }
  if (goType === 'v1.JSONSchemaPropsOrArray') return { is: 'schemaOrList', schema }
  if (goType === 'v1.JSONSchemaPropsOrBool') return { is: 'schemaOrBool', schema }
  if (goType === 'v1.JSONSchemaDependencies') return { is: 'map', of: { is: 'schemaOrStrings', schema } }
  if (goType !== undefined && /^(?:\[\])?v1alpha\d+\./.test(goType)) return undefined
  return wireType(field.type)
}

function wireType(type: TypeRef): WireType {
  if (type.is === 'enum') return { is: 'string' }
  if (type.is === 'message') return { is: 'message', plan: () => wirePlanOf(type.descriptor()) }
  // Maps hold no lists on the wire; all that there are in Go are named lists of strings.
  if (type.is === 'map' && type.of.is === 'list') return { is: 'map', of: { is: 'strings' } }
  if (type.is === 'list' || type.is === 'map') return { is: type.is, of: wireType(type.of) }
  return { is: type.is }
}

export function isPlain(type: WireType): type is PlainType {
  const { is } = type
  return is === 'string' || is === 'bool' || is === 'int32' || is === 'int64' || is === 'double' || is === 'bytes'
}

/** The kind of wire encoding of one value. */
export function wireOf({ is }: WireType): number {
  if (is === 'bool' || is === 'int32' || is === 'int64') return wireVarint
  return is === 'double' ? wireFixed64 : wireBytes
}
