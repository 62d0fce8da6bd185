/**
 * Strategic merge patch: a merge patch that knows from the type how lists merge (Kubernetes API conventions,
 * "strategic merge patch"; KEP-less, sig-api-machinery/strategic-merge-patch.md).
 *
 * One tiny example. Containers merge by name, so
 *
 *     document  containers: [{name: a, image: 1}, {name: b, image: 1}]
 *     patch     containers: [{name: b, image: 2}, {name: c}]
 *     answer    containers: [{name: a, image: 1}, {name: b, image: 2}, {name: c}]
 *
 * Directives inside the patch steer it: `$patch: replace|delete|merge` in a map or list item, `$retainKeys` beside the
 * keys of a union, `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>` beside a list.
 */
import { SchemaError } from '../errors.ts'
import type { FieldDescriptor, ObjectValue, TypeDescriptor, TypeRef } from '../types.ts'
import { canonicalText, isObject, shallowCopy } from './json-value.ts'

const patchDirective = '$patch'
const retainKeysDirective = '$retainKeys'
const deleteFromListPrefix = '$deleteFromPrimitiveList/'
const setElementOrderPrefix = '$setElementOrder/'

/**
 * @param document - An object of `type`; not changed.
 * @param patch - Parsed patch, directives included.
 * @throws SchemaError ERR_PATCH for malformed directives and list items without their merge key.
 */
export function strategicMergePatch(document: ObjectValue, patch: unknown, type: TypeDescriptor): ObjectValue {
  if (!isObject(patch)) throw new SchemaError('ERR_PATCH', 'a strategic merge patch must be an object')
  return mergeObject(document, patch, type, '')
}

/** What is known of a member's value: its type, and how it merges. */
interface Member {
  readonly type: TypeRef | undefined
  readonly strategies: readonly string[]
  readonly mergeKey: string | undefined
}

const unknownMember: Member = { type: undefined, strategies: [], mergeKey: undefined }

function memberOf(type: TypeDescriptor | TypeRef | undefined, key: string, value: unknown, path: string): Member {
  if (type === undefined) return unknownMember
  if ('fields' in type) {
    const field: FieldDescriptor | undefined = type.byJsonName.get(key)
    if (field !== undefined) {
      return { type: field.type, strategies: field.patch?.strategies ?? [], mergeKey: field.patch?.mergeKey }
    }
    // Scalars pass here and are reported as unknown fields when the result is decoded, with their full path.
    if (type.preserveUnknown || !(Array.isArray(value) || isObject(value))) return unknownMember
    const struct = type.name.slice(type.name.lastIndexOf('.') + 1)
    const text = `unable to find api field in struct ${struct} for the json field "${key}"`
    throw new SchemaError('ERR_PATCH', text, { path: path === '' ? key : `${path}.${key}` })
  }
  if (type.is === 'map') return { type: type.of, strategies: [], mergeKey: undefined }
  return unknownMember
}

/** The descriptor of a map-like value, where there is one. */
function shapeOf(type: TypeRef | undefined): TypeDescriptor | TypeRef | undefined {
  return type?.is === 'message' ? type.descriptor() : type
}

function mergeObject(
  original: ObjectValue,
  patch: ObjectValue,
  type: TypeDescriptor | TypeRef | undefined,
  path: string,
): ObjectValue {
  if (Object.hasOwn(patch, patchDirective)) {
    const directive = patch[patchDirective]
    if (directive === 'replace') return withoutDirectives(patch, path, patchDirective) as ObjectValue
    if (directive === 'delete') return Object.create(null) as ObjectValue
    if (directive !== 'merge') throw malformed(path, `unknown patch type ${JSON.stringify(directive)} in map`)
  }
  const merged = shallowCopy(original)
  applyRetainKeys(merged, patch, path)
  const ordered = applyElementOrders(merged, patch, type, path)

  for (const key of Object.keys(patch)) {
    if (key === patchDirective || key === retainKeysDirective || key.startsWith(setElementOrderPrefix)) continue
    if (ordered.has(key)) continue
    const value = patch[key]
    if (key.startsWith(deleteFromListPrefix)) {
      deleteFromPrimitiveList(merged, key.slice(deleteFromListPrefix.length), value, path)
      continue
    }
    const here = path === '' ? key : `${path}.${key}`
    if (value === null) {
      delete merged[key]
      continue
    }
    const member = memberOf(type, key, value, path)
    merged[key] = mergeMember(Object.hasOwn(merged, key) ? merged[key] : undefined, value, member, here)
  }
  return merged
}

function mergeMember(original: unknown, value: unknown, member: Member, path: string): unknown {
  if (isObject(value)) {
    if (isObject(original) && !member.strategies.includes('replace')) {
      return mergeObject(original, value, shapeOf(member.type), path)
    }
    return isReplaceOrDelete(value)
      ? mergeObject(Object.create(null) as ObjectValue, value, shapeOf(member.type), path)
      : withoutDirectives(value, path)
  }
  if (Array.isArray(value) && Array.isArray(original) && member.strategies.includes('merge')) {
    return mergeList(original, value, member, path, undefined)
  }
  return withoutDirectives(value, path)
}

const isReplaceOrDelete = (value: ObjectValue): boolean => Object.hasOwn(value, patchDirective)

/** `$retainKeys`: of the original, only the listed keys stay; the patch may set no other. */
function applyRetainKeys(merged: ObjectValue, patch: ObjectValue, path: string): void {
  if (!Object.hasOwn(patch, retainKeysDirective)) return
  const listed = patch[retainKeysDirective]
  if (!Array.isArray(listed)) throw malformed(path, '$retainKeys must be a list')
  const retain = new Set<unknown>(listed)
  for (const key of Object.keys(patch)) {
    if (key.startsWith('$') || patch[key] === null) continue
    if (!retain.has(key))
      throw malformed(path, `$retainKeys does not list ${JSON.stringify(key)}, which the patch sets`)
  }
  for (const key of Object.keys(merged)) if (!retain.has(key)) delete merged[key]
}

function deleteFromPrimitiveList(merged: ObjectValue, key: string, values: unknown, path: string): void {
  if (!Array.isArray(values)) throw malformed(path, `${deleteFromListPrefix}${key} must be a list`)
  const list = merged[key]
  if (!Array.isArray(list)) return
  const unwanted = new Set(values.map(canonicalText))
  merged[key] = list.filter((item) => !unwanted.has(canonicalText(item)))
}

/** Handles every `$setElementOrder/x` together with the patch's `x`; returns the members so dealt with. */
function applyElementOrders(
  merged: ObjectValue,
  patch: ObjectValue,
  type: TypeDescriptor | TypeRef | undefined,
  path: string,
): ReadonlySet<string> {
  const done = new Set<string>()
  for (const directive of Object.keys(patch)) {
    if (!directive.startsWith(setElementOrderPrefix)) continue
    const key = directive.slice(setElementOrderPrefix.length)
    const here = path === '' ? key : `${path}.${key}`
    const order = patch[directive]
    if (!Array.isArray(order)) throw malformed(path, `${directive} must be a list`)
    const member = memberOf(type, key, order, path)
    const deleteKey = deleteFromListPrefix + key
    if (Object.hasOwn(patch, deleteKey)) deleteFromPrimitiveList(merged, key, patch[deleteKey], path)
    if (Object.hasOwn(patch, key) && patch[key] === null) continue
    const original = merged[key]
    const value = patch[key]
    if (value !== undefined && !Array.isArray(value)) throw malformed(here, `${directive} stands beside a list only`)
    if (original !== undefined && !Array.isArray(original)) continue
    if (value === undefined && original === undefined) continue
    if (value !== undefined) checkOrder(value, order, member, here)
    merged[key] = mergeList(original ?? [], value ?? [], member, here, order)
    done.add(key)
  }
  return done
}

/** The items of the patch must stand in the order that the patch itself asks for. */
function checkOrder(items: readonly unknown[], order: readonly unknown[], member: Member, path: string): void {
  const positionIn = positions(order, member.mergeKey)
  let last = -1
  for (const item of items) {
    if (isObject(item) && Object.hasOwn(item, patchDirective)) continue
    const position = positionIn(item)
    if (position < last || position === -1) {
      throw malformed(path, "the order in patch list doesn't match $setElementOrder list")
    }
    last = position
  }
}

/**
 * Merges lists whose field says `merge`. `order` is what `$setElementOrder` listed, else the patch's own order decides.
 */
function mergeList(
  original: readonly unknown[],
  patch: readonly unknown[],
  member: Member,
  path: string,
  order: readonly unknown[] | undefined,
): unknown[] {
  const itemType = member.type?.is === 'list' ? member.type.of : undefined
  const sample = [...original, ...patch].find((item) => item !== null)
  if (!isObject(sample)) {
    const merged = new Map<string, unknown>()
    for (const item of [...original, ...patch]) {
      const identity = canonicalText(item)
      if (!merged.has(identity)) merged.set(identity, item)
    }
    return interleave([...merged.values()], order ?? patch, original, undefined)
  }
  const mergeKey = member.mergeKey
  if (mergeKey === undefined) throw malformed(path, 'cannot merge lists without merge key')

  const ordinary: ObjectValue[] = []
  const deleted = new Set<string>()
  let replaced = false
  for (const [position, item] of patch.entries()) {
    if (!isObject(item)) throw malformed(`${path}[${position}]`, 'a list of maps holds an item of another type')
    const directive = Object.hasOwn(item, patchDirective) ? item[patchDirective] : undefined
    if (directive === undefined) {
      ordinary.push(item)
    } else if (directive === 'replace') {
      replaced = true
    } else if (directive === 'delete') {
      deleted.add(keyOf(item, mergeKey, `${path}[${position}]`))
    } else {
      throw malformed(`${path}[${position}]`, `unknown patch type ${JSON.stringify(directive)} in list`)
    }
  }
  if (replaced) return ordinary.map((item) => withoutDirectives(item, path))

  const base = original.filter((item) => !isObject(item) || !deleted.has(canonicalText(item[mergeKey])))
  const positionIn = positions(base, mergeKey)
  const added = new Map<string, number>()
  for (const [position, item] of ordinary.entries()) {
    const identity = keyOf(item, mergeKey, `${path}[${position}]`)
    const index = added.get(identity) ?? positionIn(item)
    if (index === -1) {
      added.set(identity, base.length)
      base.push(withoutDirectives(item, path))
    } else {
      base[index] = mergeObject(base[index] as ObjectValue, item, shapeOf(itemType), `${path}[${index}]`)
    }
  }
  return interleave(base, order ?? ordinary, original, mergeKey)
}

/**
 * Orders a merged list: what `order` names comes in that order; the rest (only the server had it) keeps the server's
 * order and is put in front of the first named item that the server had behind it, at the end otherwise.
 */
function interleave(
  merged: readonly unknown[],
  order: readonly unknown[],
  server: readonly unknown[],
  mergeKey: string | undefined,
): unknown[] {
  const inOrder = positions(order, mergeKey)
  const atServer = positions(server, mergeKey)
  const named = merged.filter((item) => inOrder(item) !== -1).sort((a, b) => inOrder(a) - inOrder(b))
  const rest = merged.filter((item) => inOrder(item) === -1).sort((a, b) => atServer(a) - atServer(b))
  const result: unknown[] = []
  let next = 0
  for (const item of named) {
    const mine = atServer(item)
    while (next < rest.length && atServer(rest[next]) < mine) result.push(rest[next++])
    result.push(item)
  }
  while (next < rest.length) result.push(rest[next++])
  return result
}

/** Where the first item with the same identity (merge key, or whole value) stands in `list`, else -1. */
function positions(list: readonly unknown[], mergeKey: string | undefined): (item: unknown) => number {
  const identity = (item: unknown): string | undefined => {
    if (mergeKey === undefined) return canonicalText(item)
    return isObject(item) ? canonicalText(item[mergeKey]) : undefined
  }
  const known = new Map<string, number>()
  for (const [position, item] of list.entries()) {
    const text = identity(item)
    if (text !== undefined && !known.has(text)) known.set(text, position)
  }
  return (item) => {
    const text = identity(item)
    return text === undefined ? -1 : (known.get(text) ?? -1)
  }
}

/** The merge key's value as canonical text. */
function keyOf(item: ObjectValue, mergeKey: string, path: string): string {
  if (!Object.hasOwn(item, mergeKey)) {
    throw malformed(path, `map: ${describe(item)} does not contain declared merge key: ${mergeKey}`)
  }
  return canonicalText(item[mergeKey])
}

const describe = (item: ObjectValue): string => `map[${Object.keys(item).sort().join(' ')}]`

/** What a patch sets where the document had nothing: itself, without directives and without nulls. */
function withoutDirectives(value: unknown, path: string, ...also: readonly string[]): unknown {
  if (Array.isArray(value)) {
    const kept: unknown[] = []
    for (const item of value) {
      if (isObject(item) && Object.hasOwn(item, patchDirective)) {
        if (item[patchDirective] === 'delete' || item[patchDirective] === 'replace') continue
        throw malformed(path, `unknown patch type ${JSON.stringify(item[patchDirective])} in list`)
      }
      kept.push(withoutDirectives(item, path))
    }
    return kept
  }
  if (!isObject(value)) return value
  const clean: ObjectValue = Object.create(null) as ObjectValue
  for (const key of Object.keys(value)) {
    if (key === patchDirective || key === retainKeysDirective || also.includes(key)) continue
    if (key.startsWith(deleteFromListPrefix) || key.startsWith(setElementOrderPrefix)) continue
    if (value[key] === null) continue
    clean[key] = withoutDirectives(value[key], path === '' ? key : `${path}.${key}`)
  }
  return clean
}

function malformed(path: string, why: string): SchemaError {
  return new SchemaError('ERR_PATCH', path === '' ? why : `${path}: ${why}`, { path })
}
