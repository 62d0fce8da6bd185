import { SchemaError } from '../errors.ts'
import { nestingDepthMax } from '../limits.ts'
import type { ObjectValue } from '../types.ts'

const quoteCode = 34
const commaCode = 44
const minusCode = 45
const colonCode = 58
const openBracketCode = 91
const backslashCode = 92
const closeBracketCode = 93
const openBraceCode = 123
const closeBraceCode = 125

const loneSurrogate = /\p{Surrogate}/gu
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** @throws SchemaError ERR_SYNTAX when the bytes are not UTF-8 (encoded surrogates included) */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch (cause) {
    throw new SchemaError('ERR_SYNTAX', 'invalid UTF-8 in the data', { cause })
  }
}

/** What follows in the text, as Go's errors call it. */
export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'bool' | 'null'

/**
 * A strict RFC 8259 reader over a text, which callers drive: they look at what follows and take it. Refusals
 * are SchemaErrors in the words of Go's scanner. Strings it returns may share memory with the whole text: who
 * keeps one for long copies it.
 */
export class JsonReader {
  readonly text: string
  at = 0
  depth = 0

  constructor(text: string) {
    this.text = text
  }

  /** Code of the next character that is not white space; it is not taken. NaN at the end. */
  peek(): number {
    let code = this.text.charCodeAt(this.at)
    while (code === 32 || code === 10 || code === 13 || code === 9) code = this.text.charCodeAt(++this.at)
    return code
  }

  /** What value follows. @throws SchemaError when none does */
  kind(): JsonKind {
    const code = this.peek()
    if (code === quoteCode) return 'string'
    if (code === openBraceCode) return 'object'
    if (code === openBracketCode) return 'array'
    if (code === minusCode || (code >= 48 && code <= 57)) return 'number'
    if (code === 116 || code === 102) return 'bool'
    if (code === 110) return 'null'
    this.fail('looking for beginning of value')
  }

  /** Steps into "{" or "[", which must follow. */
  open(): void {
    if (++this.depth > nestingDepthMax) throw new SchemaError('ERR_DEPTH', 'exceeded max depth')
    this.at++
  }

  /**
   * The next key of the object stepped into, its colon taken too; undefined when the object ends. `first` before
   * any key of this object was taken.
   */
  key(first: boolean): string | undefined {
    let code = this.peek()
    if (code === closeBraceCode) {
      this.at++
      this.depth--
      return undefined
    }
    if (!first) {
      if (code !== commaCode) this.fail('after object key:value pair')
      this.at++
      code = this.peek()
    }
    if (code !== quoteCode) this.fail('looking for beginning of object key string')
    const key = this.string()
    if (this.peek() !== colonCode) this.fail('after object key')
    this.at++
    return key
  }

  /** Whether the array stepped into has another element, which follows then; its end is taken. */
  element(first: boolean): boolean {
    const code = this.peek()
    if (code === closeBracketCode) {
      this.at++
      this.depth--
      return false
    }
    if (first) return true
    if (code !== commaCode) this.fail('after array element')
    this.at++
    if (this.peek() === closeBracketCode) this.fail('looking for beginning of value')
    return true
  }

  /** A string; the opening quote must follow. Escaped lone surrogates become U+FFFD, as in Go. */
  string(): string {
    const { text } = this
    const start = this.at + 1
    let at = start
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === quoteCode) {
        this.at = at + 1
        return text.slice(start, at)
      }
      if (code === backslashCode) return this.#escapedString(start, at)
      if (!(code >= 32)) {
        this.at = at
        this.fail('in string literal')
      }
      at++
    }
  }

  #escapedString(start: number, firstEscape: number): string {
    const { text } = this
    let result = ''
    let from = start
    let at = firstEscape
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === quoteCode) {
        this.at = at + 1
        return (result + text.slice(from, at)).replaceAll(loneSurrogate, '\ufffd')
      }
      if (code === backslashCode) {
        result += text.slice(from, at)
        this.at = at + 1
        result += this.#escape()
        at = this.at
        from = at
        continue
      }
      if (!(code >= 32)) {
        this.at = at
        this.fail('in string literal')
      }
      at++
    }
  }

  #escape(): string {
    const char = this.text.charAt(this.at)
    const simple = simpleEscapes.get(char)
    if (simple !== undefined) {
      this.at++
      return simple
    }
    if (char !== 'u') this.fail('in string escape code')
    this.at++
    let unit = 0
    for (let digit = 0; digit < 4; digit++) {
      const value = hexDigit(this.text.charCodeAt(this.at))
      if (value < 0) this.fail('in \\u hexadecimal character escape')
      unit = unit * 16 + value
      this.at++
    }
    return String.fromCharCode(unit)
  }

  /** The text of a number, which must follow. */
  number(): string {
    const start = this.at
    if (this.text.charCodeAt(this.at) === minusCode) this.at++
    if (this.text.charCodeAt(this.at) === 48) this.at++
    else this.#digits('in numeric literal')
    if (this.text.charAt(this.at) === '.') {
      this.at++
      this.#digits('after decimal point in numeric literal')
    }
    const exponent = this.text.charAt(this.at)
    if (exponent === 'e' || exponent === 'E') {
      this.at++
      const sign = this.text.charAt(this.at)
      if (sign === '+' || sign === '-') this.at++
      this.#digits('in exponent of numeric literal')
    }
    return this.text.slice(start, this.at)
  }

  #digits(where: string): void {
    const start = this.at
    let code = this.text.charCodeAt(this.at)
    while (code >= 48 && code <= 57) code = this.text.charCodeAt(++this.at)
    if (this.at === start) this.fail(where)
  }

  /** true, false or null, whose first letter must follow. */
  literal(): boolean | null {
    const word = this.text.charAt(this.at) === 't' ? 'true' : this.text.charAt(this.at) === 'f' ? 'false' : 'null'
    for (let letter = 1; letter < word.length; letter++) {
      this.at++
      if (this.text.charCodeAt(this.at) !== word.charCodeAt(letter)) {
        this.fail(`in literal ${word} (expecting '${word.charAt(letter)}')`)
      }
    }
    this.at++
    return word === 'null' ? null : word === 'true'
  }

  /** Nothing but white space may follow. */
  end(): void {
    if (!Number.isNaN(this.peek())) this.fail('after top-level value')
  }

  /** Takes any value without keeping it. */
  skip(): void {
    switch (this.kind()) {
      case 'string':
        this.string()
        return
      case 'number':
        this.number()
        return
      case 'bool':
      case 'null':
        this.literal()
        return
      case 'object':
        this.open()
        for (let first = true; this.key(first) !== undefined; first = false) this.skip()
        return
      case 'array':
        this.open()
        for (let first = true; this.element(first); first = false) this.skip()
    }
  }

  /** @throws SchemaError ERR_SYNTAX always, about the character that follows */
  fail(where: string): never {
    if (this.at >= this.text.length) throw new SchemaError('ERR_SYNTAX', 'unexpected end of JSON input')
    throw new SchemaError('ERR_SYNTAX', `invalid character ${quoteCharacter(this.text, this.at)} ${where}`)
  }
}

const simpleEscapes: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
])

function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48
  if (code >= 97 && code <= 102) return code - 87
  if (code >= 65 && code <= 70) return code - 55
  return -1
}

/** As Go quotes a byte in its syntax errors: of a longer character, its first byte read as Latin-1. */
function quoteCharacter(text: string, at: number): string {
  const code = text.codePointAt(at) ?? 0
  if (code === 39) return `'\\''`
  if (code === 34) return `'"'`
  if (code >= 0x80) return `'${String.fromCharCode(Buffer.from(String.fromCodePoint(code))[0] ?? 0)}'`
  if (code < 32 || code === 127) {
    const named = new Map([
      [7, '\\a'],
      [8, '\\b'],
      [9, '\\t'],
      [10, '\\n'],
      [11, '\\v'],
      [12, '\\f'],
      [13, '\\r'],
    ]).get(code)
    return `'${named ?? `\\x${code.toString(16).padStart(2, '0')}`}'`
  }
  return code === 92 ? `'\\\\'` : `'${String.fromCharCode(code)}'`
}

/** A JSON object without prototype, so that "__proto__" and "constructor" are keys like any other. */
export function newObject(): ObjectValue {
  return Object.create(null) as ObjectValue
}
