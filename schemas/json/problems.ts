import { fieldProblemsMax } from '../limits.ts'
import type { FieldProblem } from '../types.ts'

/** A key of a map on a path, told apart from a field because Go's type errors leave it out. */
export class MapKey {
  readonly key: string
  constructor(key: string) {
    this.key = key
  }
}

/** One step of a path: a field, a map key, an index. */
export type PathStep = string | MapKey | number

/** "spec.containers[0].name", as in reports of unknown and duplicate fields. */
export function formatPath(path: readonly PathStep[], last?: string): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text += `${text === '' ? '' : '.'}${typeof step === 'string' ? step : step.key}`
  }
  return last === undefined ? text : `${text}${text === '' ? '' : '.'}${last}`
}

/** "spec.containers.name": the fields of a path alone, as in Go's type errors. */
export function formatFieldPath(path: readonly PathStep[]): string {
  return path.filter((step) => typeof step === 'string').join('.')
}

/** Collects problems: each message once, at most `fieldProblemsMax`; what comes after is left unsaid, as in Go. */
export class ProblemList {
  readonly problems: FieldProblem[] = []
  readonly #seen = new Set<string>()

  add(reason: FieldProblem['reason'], path: readonly PathStep[], field: string): void {
    if (this.problems.length >= fieldProblemsMax) return
    const at = formatPath(path, field)
    const message = `${reason} field ${JSON.stringify(at)}`
    if (this.#seen.has(message)) return
    this.#seen.add(message)
    this.problems.push({ path: at, reason, message })
  }
}
