/**
 * Syntax of names, labels and the like. Every function answers the problems, none when the text is fine, in the words of
 * apimachinery pkg/util/validation/validation.go.
 */
import { appendAll } from '../append.ts'

const dnsLabelMax = 63
const dnsSubdomainMax = 253
const qualifiedNameMax = 63
const labelValueMax = 63

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const subdomain = `${label}(\\.${label})*`
const qualifiedPart = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const labelValue = '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'
const configMapKey = '[-._a-zA-Z0-9]+'

const whole = (pattern: string): RegExp => new RegExp(`^(?:${pattern})$`)

const labelPattern = whole(label)
const subdomainPattern = whole(subdomain)
const qualifiedPartPattern = whole(qualifiedPart)
const labelValuePattern = whole(labelValue)
const configMapKeyPattern = whole(configMapKey)

/** `msg (e.g. 'a',  or 'b', regex used for validation is '…')`, two spaces before "or" as Go writes it. */
function patternProblem(text: string, pattern: string, ...examples: readonly string[]): string {
  if (examples.length === 0) return `${text} (regex used for validation is '${pattern}')`
  const list = examples.map((example) => `'${example}', `).join(' or ')
  return `${text} (e.g. ${list}regex used for validation is '${pattern}')`
}

export const byteLength = (text: string): number => Buffer.byteLength(text)

const tooManyBytes = (max: number): string => `must be no more than ${max} bytes`

const labelText =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"

export function dnsLabelProblems(text: string): readonly string[] {
  const problems: string[] = []
  if (byteLength(text) > dnsLabelMax) problems.push(tooManyBytes(dnsLabelMax))
  if (!labelPattern.test(text)) {
    problems.push(
      subdomainPattern.test(text) ? 'must not contain dots' : patternProblem(labelText, label, 'my-name', '123-abc'),
    )
  }
  return problems
}

export function dnsSubdomainProblems(text: string): readonly string[] {
  const problems: string[] = []
  if (byteLength(text) > dnsSubdomainMax) problems.push(tooManyBytes(dnsSubdomainMax))
  // The length goes first: the pattern backtracks on long hostile input.
  else if (!subdomainPattern.test(text)) problems.push(patternProblem(subdomainText, subdomain, 'example.com'))
  return problems
}

/** What may stand in a URL path: RBAC names with colons, IP addresses. */
export function pathSegmentProblems(text: string): readonly string[] {
  if (text === '.') return ["may not be '.'"]
  if (text === '..') return ["may not be '..'"]
  return ['/', '%'].filter((sign) => text.includes(sign)).map((sign) => `may not contain '${sign}'`)
}

const qualifiedPartText =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
const qualifiedExamples = ['MyName', 'my.name', '123-abc'] as const

/** `[prefix/]name`: label keys, annotation keys, finalizers, resource names. */
export function qualifiedNameProblems(text: string): readonly string[] {
  const problems: string[] = []
  const parts = text.split('/')
  let name = parts[0] ?? ''
  if (parts.length === 2) {
    const prefix = parts[0] ?? ''
    name = parts[1] ?? ''
    if (prefix === '') problems.push('prefix part must be non-empty')
    else
      appendAll(
        problems,
        dnsSubdomainProblems(prefix).map((problem) => `prefix part ${problem}`),
      )
  } else if (parts.length > 2) {
    return [
      `a valid label key ${patternProblem(qualifiedPartText, qualifiedPart, ...qualifiedExamples)} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  if (name === '') problems.push('name part must be non-empty')
  else if (byteLength(name) > qualifiedNameMax) problems.push(`name part ${tooManyBytes(qualifiedNameMax)}`)
  if (!qualifiedPartPattern.test(name)) {
    problems.push(`name part ${patternProblem(qualifiedPartText, qualifiedPart, ...qualifiedExamples)}`)
  }
  return problems
}

export function labelValueProblems(text: string): readonly string[] {
  const problems: string[] = []
  if (byteLength(text) > labelValueMax) problems.push(tooManyBytes(labelValueMax))
  if (!labelValuePattern.test(text)) {
    problems.push(
      patternProblem(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
        labelValue,
        'MyValue',
        'my_value',
        '12345',
      ),
    )
  }
  return problems
}

/** Keys of ConfigMaps and Secrets. */
export function configKeyProblems(text: string): readonly string[] {
  const problems: string[] = []
  if (byteLength(text) > dnsSubdomainMax) problems.push(tooManyBytes(dnsSubdomainMax))
  if (!configMapKeyPattern.test(text)) {
    problems.push(
      patternProblem(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        configMapKey,
        'key.name',
        'KEY_NAME',
        'key-name',
      ),
    )
  }
  appendAll(problems, dotProblems(text))
  return problems
}

function dotProblems(text: string): readonly string[] {
  if (text === '.') return ["must not be '.'"]
  if (text === '..') return ["must not be '..'"]
  return text.startsWith('..') ? ["must not start with '..'"] : []
}

/** Relaxed since 1.32: any printable ASCII but '='. */
export function envVarNameProblems(text: string): readonly string[] {
  for (const sign of text) {
    const code = sign.codePointAt(0) ?? 0
    if (code < 0x20 || code > 0x7e || sign === '=') {
      return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
    }
  }
  return []
}

/** Names of ports: at most 15 characters, at least one letter, single inner hyphens (IANA_SVC_NAME). */
export function portNameProblems(text: string): readonly string[] {
  const problems: string[] = []
  if (byteLength(text) > 15) problems.push(tooManyBytes(15))
  if (!/^[-a-z0-9]+$/.test(text))
    problems.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(text)) problems.push('must contain at least one letter (a-z)')
  if (text.includes('--')) problems.push('must not contain consecutive hyphens')
  if (text.startsWith('-') || text.endsWith('-')) problems.push('must not begin or end with a hyphen')
  return problems
}

export function portNumberProblems(port: number): readonly string[] {
  return port >= 1 && port <= 65535 ? [] : ['must be between 1 and 65535, inclusive']
}

const headerName = '[-A-Za-z0-9]+'
const headerNamePattern = whole(headerName)

export function headerNameProblems(text: string): readonly string[] {
  if (headerNamePattern.test(text)) return []
  const meaning = "a valid HTTP header must consist of alphanumeric characters or '-'"
  return [patternProblem(meaning, headerName, 'X-Header-Name')]
}

const wildcard = `\\*\\.${subdomain}`
const wildcardPattern = whole(wildcard)

/** "*.example.com" (RFC 1034 section 4.3.3). */
export function wildcardProblems(text: string): readonly string[] {
  if (byteLength(text) > dnsSubdomainMax) return [tooManyBytes(dnsSubdomainMax)]
  if (wildcardPattern.test(text)) return []
  const meaning =
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
  return [patternProblem(meaning, wildcard, '*.example.com')]
}

const searchLabel = '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?'
const search = `${searchLabel}(\\.${searchLabel})*`
const searchPattern = whole(search)

/** Domains of a search list may have underscores. */
export function searchDomainProblems(text: string): readonly string[] {
  if (byteLength(text) > dnsSubdomainMax) return [tooManyBytes(dnsSubdomainMax)]
  if (searchPattern.test(text)) return []
  const meaning =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character"
  return [patternProblem(meaning, search, 'example.com')]
}

export type NameRule = (name: string) => readonly string[]

/** A generateName is a prefix: what it ends in is mended by the suffix. */
export function maskedPrefix(prefix: string): string {
  return prefix.length > 1 && prefix.endsWith('-') ? `${prefix.slice(0, -2)}a` : prefix
}
