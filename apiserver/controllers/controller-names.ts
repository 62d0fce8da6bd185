/** Controllers that this server can run, by the names that kube-controller-manager has for them, and their older ones. */
export const controllerNames = [{ name: 'namespace-controller', alias: 'namespace' }] as const

export type ControllerName = (typeof controllerNames)[number]['name']

/**
 * Which controllers run, in the notation of kube-controller-manager's `--controllers`: `*` is all, `name` that one,
 * `-name` not that one; the first entry about a controller decides. `-name` alone runs nothing: `*,-name` is all but one.
 */
export function enabledControllers(entries: readonly string[]): ReadonlySet<ControllerName> {
  const enabled = new Set<ControllerName>()
  for (const { name, alias } of controllerNames) {
    const own = entries.find((entry) => [name, alias].includes(withoutMinus(entry) as typeof name))
    if (own === undefined ? entries.includes('*') : !own.startsWith('-')) enabled.add(name)
  }
  return enabled
}

/** The first entry that names no controller; undefined: all do. */
export function unknownController(entries: readonly string[]): string | undefined {
  const known = new Set<string>(controllerNames.flatMap(({ name, alias }) => [name, alias]))
  return entries.find((entry) => entry !== '*' && !known.has(withoutMinus(entry)))
}

const withoutMinus = (entry: string): string => (entry.startsWith('-') ? entry.slice(1) : entry)
