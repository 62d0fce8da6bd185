import { badRequest } from '../errors.ts'
import { selectorLengthMax } from '../limits.ts'
import { labelValueProblems, qualifiedNameProblems } from '../validation/names.ts'

export type LabelRequirement =
  | { readonly key: string; readonly operator: 'in' | 'notin'; readonly values: readonly string[] }
  | { readonly key: string; readonly operator: 'exists' | 'doesNotExist' }
  | { readonly key: string; readonly operator: 'gt' | 'lt'; readonly value: number }

type Labels = Readonly<Record<string, string>>

const binaryOperators = 'in, notin, =, ==, !=, gt, lt'
const symbols = ['!=', '==', '=', '!', '(', ')', ',', '<', '>'] as const

type Token =
  | { readonly type: 'end' | 'symbol' | 'word'; readonly text: string }
  /** "in" and "notin" where an operator may stand; as a key or value they are words. */
  | { readonly type: 'operator'; readonly text: 'in' | 'notin' }

/**
 * Parses `a=b,c in (d,e),!f` (apimachinery pkg/labels/selector.go: same grammar, same texts). Requirements are joined
 * by "and"; an empty selector has none and matches everything.
 *
 * @throws ApiError 400
 */
export function parseLabelSelector(text: string): readonly LabelRequirement[] {
  if (text.length > selectorLengthMax) throw badRequest('label selector is too long')
  return new Parser(tokens(text)).parse()
}

export function matchesLabels(requirements: readonly LabelRequirement[], labels: Labels): boolean {
  for (const requirement of requirements) if (!matchesOne(requirement, labels)) return false
  return true
}

function matchesOne(requirement: LabelRequirement, labels: Labels): boolean {
  const value = Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined
  switch (requirement.operator) {
    case 'in':
      return value !== undefined && requirement.values.includes(value)
    case 'notin':
      return value === undefined || !requirement.values.includes(value)
    case 'exists':
      return value !== undefined
    case 'doesNotExist':
      return value === undefined
    case 'gt':
      return value !== undefined && isInteger(value) && Number(value) > requirement.value
    case 'lt':
      return value !== undefined && isInteger(value) && Number(value) < requirement.value
  }
}

const isInteger = (text: string): boolean => /^[+-]?\d+$/.test(text)
const isSpace = (unit: string): boolean => unit === ' ' || unit === '\t' || unit === '\r' || unit === '\n'

function tokens(text: string): readonly Token[] {
  const found: Token[] = []
  let at = 0
  while (at < text.length) {
    if (isSpace(text[at]!)) {
      at++
      continue
    }
    const symbol = symbols.find((candidate) => text.startsWith(candidate, at))
    if (symbol !== undefined) {
      found.push({ type: 'symbol', text: symbol })
      at += symbol.length
      continue
    }
    const from = at
    while (at < text.length && !isSpace(text[at]!) && !'=!(),<>'.includes(text[at]!)) at++
    const word = text.slice(from, at)
    found.push(word === 'in' || word === 'notin' ? { type: 'operator', text: word } : { type: 'word', text: word })
  }
  found.push({ type: 'end', text: '' })
  return found
}

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(found: readonly Token[]) {
    this.#tokens = found
  }

  parse(): readonly LabelRequirement[] {
    const requirements: LabelRequirement[] = []
    for (;;) {
      const start = this.#peek()
      if (start.type === 'end') return requirements
      if (!isKeyStart(start)) {
        throw badRequest(
          `unable to parse requirement: found '${start.text}', expected: !, identifier, or 'end of string'`,
        )
      }
      requirements.push(this.#requirement())
      const behind = this.#next()
      if (behind.type === 'end') return requirements
      if (behind.text !== ',') throw badRequest(`found '${behind.text}', expected: ',' or 'end of string'`)
      const following = this.#peek()
      if (!isKeyStart(following)) throw badRequest(`found '${following.text}', expected: identifier after ','`)
    }
  }

  #requirement(): LabelRequirement {
    let token = this.#next()
    const negated = token.text === '!'
    if (negated) token = this.#next()
    if (token.type !== 'word' && token.type !== 'operator') {
      throw unparsable(`found '${token.text}', expected: identifier`)
    }
    const key = token.text
    const problems = qualifiedNameProblems(key)
    if (problems.length > 0) throw unparsable(`key: Invalid value: ${JSON.stringify(key)}: ${problems.join('; ')}`)
    const behind = this.#peek()
    if (negated) return { key, operator: 'doesNotExist' }
    if (behind.type === 'end' || behind.text === ',') return { key, operator: 'exists' }
    return this.#comparison(key)
  }

  #comparison(key: string): LabelRequirement {
    const operator = this.#next()
    switch (operator.text) {
      case 'in':
      case 'notin':
        return { key, operator: operator.text, values: checkValues(key, this.#values()) }
      case '=':
      case '==':
        return { key, operator: 'in', values: checkValues(key, [this.#value()]) }
      case '!=':
        return { key, operator: 'notin', values: checkValues(key, [this.#value()]) }
      case '>':
      case '<': {
        const value = this.#value()
        if (!isInteger(value)) {
          throw unparsable(
            `values[0]: Invalid value: ${JSON.stringify(value)}: for 'Gt', 'Lt' operators, the value must be an integer`,
          )
        }
        return { key, operator: operator.text === '>' ? 'gt' : 'lt', value: Number(value) }
      }
      default:
        throw unparsable(`found '${operator.text}', expected: ${binaryOperators}`)
    }
  }

  #value(): string {
    const token = this.#peek()
    if (token.type === 'end' || token.text === ',') return ''
    this.#next()
    if (token.type === 'symbol') throw unparsable(`found '${token.text}', expected: identifier`)
    return token.text
  }

  #values(): readonly string[] {
    const open = this.#next()
    if (open.text !== '(') throw unparsable(`found '${open.text}' expected: '('`)
    const values: string[] = []
    let wanted = true
    for (;;) {
      const token = this.#next()
      if (token.text === ')' && token.type === 'symbol') {
        // "(a,)" holds an empty value, "()" none
        if (wanted && values.length > 0) values.push('')
        break
      }
      if (token.text === ',' && token.type === 'symbol') {
        if (wanted) values.push('')
        wanted = true
      } else if (token.type !== 'symbol' && token.type !== 'end' && wanted) {
        values.push(token.text)
        wanted = false
      } else {
        throw unparsable(`found '${token.text}', expected: ',' or ')'`)
      }
    }
    if (values.length === 0)
      throw unparsable("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    return [...new Set(values)].sort()
  }

  #peek(): Token {
    return this.#tokens[Math.min(this.#at, this.#tokens.length - 1)]!
  }

  #next(): Token {
    const token = this.#peek()
    this.#at++
    return token
  }
}

const isKeyStart = (token: Token): boolean => token.type === 'word' || token.type === 'operator' || token.text === '!'

function checkValues(key: string, values: readonly string[]): readonly string[] {
  for (const [index, value] of values.entries()) {
    const problems = labelValueProblems(value)
    if (problems.length === 0) continue
    throw unparsable(`values[${index}][${key}]: Invalid value: ${JSON.stringify(value)}: ${problems.join('; ')}`)
  }
  return values
}

function unparsable(why: string): Error {
  return badRequest(`unable to parse requirement: ${why}`)
}
