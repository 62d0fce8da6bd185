const quote = 0x22
const backslash = 0x5c
const unit = '  '

/**
 * Indents compact JSON by two spaces, as Go's json.Indent; empty objects and lists stay `{}` and `[]`.
 *
 * @param depth - Of the line the value stands in; its first line is not indented.
 */
export function indentJson(compact: Uint8Array, depth = 0): string {
  const text = Buffer.from(compact.buffer, compact.byteOffset, compact.byteLength).toString('utf8').trimEnd()
  let out = ''
  let level = depth
  let copied = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      for (at++; at < text.length && text.charCodeAt(at) !== quote; at++) if (text.charCodeAt(at) === backslash) at++
      continue
    }
    const character = text[at]!
    if (character === '{' || character === '[') {
      const next = text[at + 1]
      if (next === '}' || next === ']') {
        at++
        continue
      }
      level++
      out += `${text.slice(copied, at + 1)}\n${unit.repeat(level)}`
      copied = at + 1
    } else if (character === '}' || character === ']') {
      level--
      out += `${text.slice(copied, at)}\n${unit.repeat(level)}`
      copied = at
    } else if (character === ',') {
      out += `${text.slice(copied, at + 1)}\n${unit.repeat(level)}`
      copied = at + 1
    } else if (character === ':') {
      out += `${text.slice(copied, at + 1)} `
      copied = at + 1
    }
  }
  return out + text.slice(copied)
}
