import { SchemaError } from '../errors.ts'
import { nestingDepthMax, yamlJsonCharactersExtra, yamlJsonGrowthMax, yamlMergedKeysMax } from '../limits.ts'
import type { FieldProblem, TypeDescriptor } from '../types.ts'
import { decodeJson, type Decoded, type DecodeOptions } from './decode.ts'
import { decodeUtf8 } from './reader.ts'

/**
 * Decodes one YAML document of `type`. As the API server does it, YAML becomes JSON first and everything else (unknown
 * fields, types, canonical forms) is JSON's: one set of rules. JSON input goes straight there.
 *
 * The first duplicate key is reported as a problem, not refused; the last one counts. The library is loaded at the
 * first YAML body; its time grows with the length of the text, whatever is in it.
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
  const { document, duplicate } = await load(text)
  const decoded = decodeJson(new TextEncoder().encode(jsonOf(document, text.length)), type, options)
  return duplicate === undefined ? decoded : { ...decoded, problems: [duplicate, ...decoded.problems] }
}

async function load(text: string): Promise<{ readonly document: unknown; readonly duplicate?: FieldProblem }> {
  const { load: parse, YAMLException } = await import('js-yaml')
  const { goSchema } = await import('./yaml-go-schema.ts')
  // the two bounds are newer than the library's type declarations
  const bounds = { maxDepth: nestingDepthMax, maxTotalMergeKeys: yamlMergedKeysMax }
  const options = { ...bounds, schema: goSchema }
  try {
    return { document: parse(text, options) }
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    if (error.reason.startsWith('nesting exceeded')) throw new SchemaError('ERR_DEPTH', 'yaml: exceeded max depth')
    const line = (error.mark as { readonly line: number } | undefined)?.line ?? 0
    if (error.reason !== 'duplicated mapping key') {
      throw new SchemaError('ERR_SYNTAX', `error converting YAML to JSON: yaml: line ${line + 1}: ${error.reason}`)
    }
    const key = /^[\s-]*(.*?)\s*(?::|$)/.exec(text.split('\n')[line] ?? '')?.[1] ?? ''
    const message = `yaml: unmarshal errors:\n  line ${line + 1}: key ${JSON.stringify(key)} already set in map`
    // as JSON has it: the last one counts
    const document = parse(text, { ...options, json: true })
    return { document, duplicate: { path: key, reason: 'duplicate', message } }
  }
}

/** @throws SchemaError ERR_SYNTAX when aliases make far more of the document than was sent. */
function jsonOf(document: unknown, sent: number): string {
  const charactersMax = yamlJsonGrowthMax * sent + yamlJsonCharactersExtra
  const parts: string[] = []
  let characters = 0
  const put = (text: string): void => {
    characters += text.length
    if (characters > charactersMax) {
      throw new SchemaError('ERR_SYNTAX', 'yaml: document contains excessive aliasing')
    }
    parts.push(text)
  }
  const write = (value: unknown, depth: number): void => {
    if (depth > nestingDepthMax) throw new SchemaError('ERR_DEPTH', 'yaml: exceeded max depth')
    if (Array.isArray(value)) {
      put('[')
      for (const [position, item] of value.entries()) {
        if (position > 0) put(',')
        write(item, depth + 1)
      }
      put(']')
    } else if (typeof value === 'object' && value !== null) {
      put('{')
      for (const [position, [key, member]] of Object.entries(value).entries()) {
        put(`${position === 0 ? '' : ','}${JSON.stringify(key)}:`)
        write(member, depth + 1)
      }
      put('}')
    } else {
      put(scalar(value))
    }
  }
  write(document, 0)
  return parts.join('')
}

function scalar(value: unknown): string {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new SchemaError('ERR_SYNTAX', `yaml: ${value} has no JSON form`)
    return JSON.stringify(value)
  }
  return 'null'
}
