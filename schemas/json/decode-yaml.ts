import { SchemaError } from '../errors.ts'
import { nestingDepthMax, yamlAliasCountMax } from '../limits.ts'
import type { TypeDescriptor } from '../types.ts'
import { decodeJson, type Decoded, type DecodeOptions } from './decode.ts'
import { decodeUtf8 } from './reader.ts'

/**
 * Decodes one YAML document of `type`. As the API server does it, YAML becomes JSON first and everything else (unknown
 * fields, types, canonical forms) is JSON's: one set of rules. JSON input goes straight there.
 *
 * Duplicate keys are reported as problems, not refused. The library is loaded at the first YAML body.
 *
 * @throws SchemaError ERR_SYNTAX for what is not one YAML mapping, and for alias bombs.
 */
export async function decodeYaml(bytes: Uint8Array, type: TypeDescriptor, options?: DecodeOptions): Promise<Decoded> {
  const text = decodeUtf8(bytes)
  if (/^\s*\{/.test(text)) {
    try {
      return decodeJson(bytes, type, options)
    } catch (error) {
      if (!(error instanceof SchemaError) || error.code !== 'ERR_SYNTAX') throw error
      // A YAML flow mapping may look like JSON and be none.
    }
  }
  let json: string
  try {
    json = await yamlToJson(text)
  } catch (cause) {
    // The library recurses; what overflows its stack is far beyond any depth that is allowed.
    if (cause instanceof RangeError) throw new SchemaError('ERR_DEPTH', 'yaml: exceeded max depth', { cause })
    throw cause
  }
  return decodeJson(new TextEncoder().encode(json), type, options)
}

/** One YAML document as JSON text; duplicate keys stay duplicate. */
async function yamlToJson(text: string): Promise<string> {
  const { isAlias, isMap, isPair, isScalar, isSeq, parseDocument } = await import('yaml')
  // YAML 1.1 resolves yes, no, on and off to booleans, as the Go library does; merge keys (<<) too.
  const document = parseDocument(text, {
    version: '1.1',
    merge: true,
    uniqueKeys: false,
    intAsBigInt: true,
    logLevel: 'silent',
  })
  const [problem] = document.errors
  if (problem !== undefined) throw new SchemaError('ERR_SYNTAX', `yaml: ${problem.message.split('\n')[0]}`)

  let nodes = 0
  const write = (node: unknown, depth: number): string => {
    if (depth > nestingDepthMax) throw new SchemaError('ERR_DEPTH', 'yaml: exceeded max depth')
    if (isAlias(node)) {
      nodes += 1
      if (nodes > yamlAliasCountMax) throw new SchemaError('ERR_SYNTAX', 'yaml: document contains excessive aliasing')
      return write(node.resolve(document), depth + 1)
    }
    if (nodes > 0 && (nodes += 1) > yamlAliasCountMax) {
      throw new SchemaError('ERR_SYNTAX', 'yaml: document contains excessive aliasing')
    }
    if (isMap(node)) {
      const members = node.items.flatMap((pair) => {
        if (!isPair(pair)) return []
        if (isScalar(pair.key) && pair.key.value === '<<' && pair.key.type === 'PLAIN') return merged(pair.value, depth)
        return [`${key(pair.key)}:${write(pair.value, depth + 1)}`]
      })
      return `{${members.join(',')}}`
    }
    if (isSeq(node)) return `[${node.items.map((item) => write(item, depth + 1)).join(',')}]`
    if (node === null || node === undefined) return 'null'
    return scalar(isScalar(node) ? node.value : node)
  }
  const merged = (value: unknown, depth: number): string[] => {
    const inner = write(value, depth + 1)
    return inner.startsWith('{') && inner.length > 2 ? [inner.slice(1, -1)] : []
  }
  const key = (node: unknown): string => {
    const value: unknown = isScalar(node) ? node.value : node
    if (typeof value === 'object' && value !== null)
      throw new SchemaError('ERR_SYNTAX', 'yaml: a map key must be a scalar')
    return JSON.stringify(String(value))
  }
  return write(document.contents, 0)
}

function scalar(value: unknown): string {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new SchemaError('ERR_SYNTAX', `yaml: ${value} has no JSON form`)
    return JSON.stringify(value)
  }
  return value instanceof Date ? JSON.stringify(value.toISOString().replace('.000Z', 'Z')) : 'null'
}
