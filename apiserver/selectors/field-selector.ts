import { badRequest } from '../errors.ts'
import { selectorLengthMax } from '../limits.ts'

export interface FieldRequirement {
  readonly field: string
  readonly operator: '=' | '!='
  readonly value: string
}

/**
 * Parses `status.phase!=Running,metadata.name=a` (apimachinery pkg/fields/selector.go); values escape `\`, `,` and `=`
 * with a backslash.
 *
 * @throws ApiError 400
 */
export function parseFieldSelector(text: string): readonly FieldRequirement[] {
  if (text.length > selectorLengthMax) throw badRequest('field selector is too long')
  const requirements: FieldRequirement[] = []
  for (const term of splitTerms(text)) {
    if (term === '') continue
    const parts = splitTerm(term)
    if (parts === undefined) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`)
    requirements.push({
      field: parts.field,
      operator: parts.operator === '!=' ? '!=' : '=',
      value: unescapeValue(parts.value),
    })
  }
  return requirements
}

/**
 * Refuses labels the kind does not select on, with the two texts of kinds that have such labels and kinds that have
 * none (apimachinery runtime/conversion.go).
 *
 * @param fieldLabels - Beyond metadata.name and metadata.namespace.
 * @throws ApiError 400
 */
export function checkFieldLabels(requirements: readonly FieldRequirement[], fieldLabels: readonly string[]): void {
  for (const { field } of requirements) {
    if (field === 'metadata.name' || field === 'metadata.namespace' || fieldLabels.includes(field)) continue
    if (fieldLabels.length > 0) throw badRequest(`field label not supported: ${field}`)
    throw badRequest(
      `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
    )
  }
}

export function matchesFields(
  requirements: readonly FieldRequirement[],
  fields: Readonly<Record<string, string>>,
): boolean {
  for (const { field, operator, value } of requirements) {
    if (((fields[field] ?? '') === value) !== (operator === '=')) return false
  }
  return true
}

/** The one value the selector allows for the field, if it names exactly one. */
export function exactMatch(requirements: readonly FieldRequirement[], field: string): string | undefined {
  return requirements.find((requirement) => requirement.field === field && requirement.operator === '=')?.value
}

function splitTerms(text: string): readonly string[] {
  const terms: string[] = []
  let from = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === ',') {
      terms.push(text.slice(from, at))
      from = at + 1
    }
  }
  terms.push(text.slice(from))
  return terms
}

function splitTerm(
  term: string,
): { readonly field: string; readonly operator: string; readonly value: string } | undefined {
  for (let at = 0; at < term.length; at++) {
    for (const operator of ['!=', '==', '=']) {
      if (term.startsWith(operator, at)) {
        return { field: term.slice(0, at), operator, value: term.slice(at + operator.length) }
      }
    }
  }
  return undefined
}

function unescapeValue(text: string): string {
  let value = ''
  for (let at = 0; at < text.length; at++) {
    const unit = text[at]!
    if (unit === '\\') {
      const escaped = text[++at] ?? ''
      if (escaped === '' || !'\\,='.includes(escaped)) {
        throw badRequest(`invalid field selector: invalid escape sequence: \\${escaped}`)
      }
      value += escaped
    } else if (unit === ',' || unit === '=') {
      throw badRequest(`invalid field selector: unescaped character in value: ${unit}`)
    } else value += unit
  }
  return value
}
