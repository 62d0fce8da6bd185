import { SchemaError } from '../errors.ts'
import { isObject, jsonEqual, jsonSize, shallowCopy } from './json-value.ts'

/** More operations than this are refused by the API server (413) before the patch is applied. */
export const jsonPatchOperationsMax = 10_000
/** What all `copy` operations of one patch may add, in characters: a doubling chain would otherwise exhaust memory. */
const copiedSizeMax = 3 * 1024 * 1024

type Operation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: readonly string[]; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: readonly string[] }
  | { readonly op: 'move' | 'copy'; readonly path: readonly string[]; readonly from: readonly string[] }

/**
 * Applies a JSON patch (RFC 6902).
 *
 * @param document - Not changed; the answer shares what the patch leaves alone.
 * @param patch - The parsed patch: an array of operations.
 * @throws SchemaError ERR_PATCH for a malformed patch or a path that is not there, ERR_PATCH_TEST for a failed test.
 */
export function jsonPatch(document: unknown, patch: unknown): unknown {
  const operations = decode(patch)
  const own: Owned = new Set()
  let copiedSize = 0
  let root = document
  for (const operation of operations) {
    switch (operation.op) {
      case 'add':
        root = change(own, root, operation.path, 0, (slot) => insert(slot, operation.value), 'add')
        break
      case 'replace':
        find(root, operation.path, 'replace')
        root = change(own, root, operation.path, 0, (slot) => put(slot, operation.value), 'replace')
        break
      case 'remove':
        find(root, operation.path, 'remove')
        root = change(own, root, operation.path, 0, take, 'remove')
        break
      case 'test': {
        const found = findOrNull(root, operation.path)
        if (!jsonEqual(found, operation.value)) {
          throw new SchemaError('ERR_PATCH_TEST', `testing value ${pointer(operation.path)} failed`)
        }
        break
      }
      case 'move': {
        if (isPrefix(operation.from, operation.path) && operation.from.length < operation.path.length) {
          throw problem('move', operation.path, 'a value cannot move into itself')
        }
        const value = find(root, operation.from, 'move')
        root = change(own, root, operation.from, 0, take, 'move')
        root = change(own, root, operation.path, 0, (slot) => insert(slot, value), 'move')
        break
      }
      case 'copy': {
        const value = find(root, operation.from, 'copy')
        copiedSize += jsonSize(value)
        if (copiedSize > copiedSizeMax) {
          throw problem('copy', operation.path, `copies add up to more than ${copiedSizeMax} bytes`)
        }
        disown(own, value)
        root = change(own, root, operation.path, 0, (slot) => insert(slot, value), 'copy')
        break
      }
    }
  }
  return root
}

function decode(patch: unknown): readonly Operation[] {
  if (!Array.isArray(patch)) throw new SchemaError('ERR_PATCH', 'a JSON patch must be an array of operations')
  return patch.map((item: unknown, position) => {
    if (!isObject(item)) throw new SchemaError('ERR_PATCH', `operation ${position} of the JSON patch must be an object`)
    const path = decodePointer(item.path, position, 'path')
    const op = item.op
    switch (op) {
      case 'add':
      case 'replace':
      case 'test':
        if (!Object.hasOwn(item, 'value')) {
          throw new SchemaError('ERR_PATCH', `operation ${position} of the JSON patch (${op}) has no value`)
        }
        return { op, path, value: item.value }
      case 'remove':
        return { op, path }
      case 'move':
      case 'copy':
        return { op, path, from: decodePointer(item.from, position, 'from') }
      default:
        throw new SchemaError('ERR_PATCH', `operation ${position} of the JSON patch has an unknown op: ${String(op)}`)
    }
  })
}

/** RFC 6901: "" is the whole document, ~1 stands for "/" and ~0 for "~". */
function decodePointer(text: unknown, position: number, member: string): readonly string[] {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/'))) {
    throw new SchemaError('ERR_PATCH', `operation ${position} of the JSON patch: ${member} must be a JSON pointer`)
  }
  if (text === '') return []
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

const pointer = (path: readonly string[]): string =>
  path.map((token) => `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

const problem = (op: string, path: readonly string[], why: string): SchemaError =>
  new SchemaError('ERR_PATCH', `${op} operation does not apply: doc is missing path: ${pointer(path)}: ${why}`)

const isPrefix = (prefix: readonly string[], path: readonly string[]): boolean =>
  prefix.every((token, position) => path[position] === token)

/** Where a change lands: a member of a private copy of its container. */
interface Slot {
  readonly container: { [field: string]: unknown } | unknown[]
  readonly token: string
  readonly op: string
  readonly path: readonly string[]
}

/** Containers that this patch made and nothing else refers to: later operations change them in place. */
type Owned = Set<unknown>

/** From here on `value` stands in two places, and a change in one must not show in the other. */
function disown(own: Owned, value: unknown): void {
  own.delete(value)
  if (Array.isArray(value)) for (const item of value) disown(own, item)
  else if (isObject(value)) for (const key of Object.keys(value)) disown(own, value[key])
}

/**
 * Copies the containers along `path`, each once in a patch, and lets `edit` change the last one: the document itself
 * stays as it was.
 */
function change(
  own: Owned,
  node: unknown,
  path: readonly string[],
  depth: number,
  edit: (slot: Slot) => unknown,
  op: string,
): unknown {
  if (path.length === 0) return edit({ container: [], token: '', op, path })
  const token = path[depth] as string
  if (!Array.isArray(node) && !isObject(node)) throw problem(op, path, 'missing value')
  const container = own.has(node) ? node : Array.isArray(node) ? [...(node as unknown[])] : shallowCopy(node)
  own.add(container)
  if (depth === path.length - 1) {
    edit({ container, token, op, path })
    return container
  }
  if (Array.isArray(container)) {
    const position = existing(container, token, op, path)
    container[position] = change(own, container[position], path, depth + 1, edit, op)
  } else {
    if (!Object.hasOwn(container, token)) throw problem(op, path, 'missing value')
    container[token] = change(own, container[token], path, depth + 1, edit, op)
  }
  return container
}

function insert(slot: Slot, value: unknown): unknown {
  if (slot.path.length === 0) return value
  if (!Array.isArray(slot.container)) {
    slot.container[slot.token] = value
    return value
  }
  const position = slot.token === '-' ? slot.container.length : arrayIndex(slot.token)
  if (position === undefined || position > slot.container.length) {
    throw problem(slot.op, slot.path, `unable to access invalid index: ${slot.token}`)
  }
  slot.container.splice(position, 0, value)
  return value
}

function put(slot: Slot, value: unknown): unknown {
  if (slot.path.length === 0) return value
  if (Array.isArray(slot.container)) slot.container[existing(slot.container, slot.token, slot.op, slot.path)] = value
  else slot.container[slot.token] = value
  return value
}

function take(slot: Slot): unknown {
  if (slot.path.length === 0) return null
  if (Array.isArray(slot.container)) slot.container.splice(existing(slot.container, slot.token, slot.op, slot.path), 1)
  else delete slot.container[slot.token]
  return undefined
}

function arrayIndex(token: string): number | undefined {
  return /^(0|[1-9][0-9]{0,8})$/.test(token) ? Number(token) : undefined
}

function existing(array: readonly unknown[], token: string, op: string, path: readonly string[]): number {
  const position = arrayIndex(token)
  if (position === undefined || position >= array.length) {
    throw problem(op, path, `unable to access invalid index: ${token}`)
  }
  return position
}

function find(root: unknown, path: readonly string[], op: string): unknown {
  let node = root
  for (const token of path) {
    if (Array.isArray(node)) node = node[existing(node, token, op, path)] as unknown
    else if (isObject(node) && Object.hasOwn(node, token)) node = node[token]
    else throw problem(op, path, 'missing value')
  }
  return node
}

/** A test against a missing member compares with null, as the API server's patch library does. */
function findOrNull(root: unknown, path: readonly string[]): unknown {
  const parent = find(root, path.slice(0, -1), 'test')
  const last = path.at(-1)
  if (last === undefined) return root
  if (isObject(parent)) return Object.hasOwn(parent, last) ? parent[last] : null
  return find(root, path, 'test')
}
