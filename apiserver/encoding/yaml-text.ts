/** Words that YAML 1.1 or 1.2 readers take for something else than a string. */
const reserved = /^(?:y|n|yes|no|on|off|true|false|null|none|~)$/i
const plain = /^[A-Za-z/][A-Za-z0-9_./@%+-]*(?:[ :][A-Za-z0-9_./@%+(-][A-Za-z0-9_./@%+()-]*)*$/

/** Block YAML with sorted keys, as sigs.k8s.io/yaml writes it. `value` is plain JSON. Ends in a newline. */
export function yamlText(value: unknown): string {
  return isBlock(value) ? block(value, '') : `${scalar(value, '')}\n`
}

/** A sequence item at no indentation: "- a: 1\n  b: 2\n". */
export function yamlItem(value: unknown): string {
  return isBlock(value) ? `- ${block(value, '  ').slice(2)}` : `- ${scalar(value, '  ')}\n`
}

function isBlock(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

/** Lines of a non-empty object or list, each indented. */
function block(value: object, indent: string): string {
  let out = ''
  if (Array.isArray(value)) {
    for (const item of value as readonly unknown[]) {
      out += isBlock(item)
        ? `${indent}- ${block(item, `${indent}  `).slice(indent.length + 2)}`
        : `${indent}- ${scalar(item, `${indent}  `)}\n`
    }
    return out
  }
  const record = value as Readonly<Record<string, unknown>>
  for (const key of Object.keys(record).sort()) {
    const field = record[key]
    const name = scalar(key, indent, true)
    // Lists stand at the indentation of their key.
    if (!isBlock(field)) out += `${indent}${name}: ${scalar(field, `${indent}  `)}\n`
    else out += `${indent}${name}:\n${block(field, Array.isArray(field) ? indent : `${indent}  `)}`
  }
  return out
}

function scalar(value: unknown, indent: string, key = false): string {
  if (typeof value !== 'string') {
    if (Array.isArray(value)) return '[]'
    return typeof value === 'object' && value !== null ? '{}' : String(value)
  }
  if (plain.test(value) && !reserved.test(value)) return value
  const literal =
    !key && value.includes('\n') && /^[^\s][\t\n\x20-\x7e\u00a0-\ud7ff]*$/.test(value) && !/ \n/.test(value)
  if (!literal) return JSON.stringify(value)
  const chomp = value.endsWith('\n\n') || value === '\n' ? '+' : value.endsWith('\n') ? '' : '-'
  const lines = (chomp === '-' ? value : value.slice(0, -1)).split('\n')
  return `|${chomp}\n${lines.map((line) => (line === '' ? '' : indent + line)).join('\n')}`
}
