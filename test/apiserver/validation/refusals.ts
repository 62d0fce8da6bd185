import { strategyFor } from '../../../apiserver/strategies/index.ts'
import { record } from '../../../apiserver/validation/object-fields.ts'
import type { Cause, StrategyContext } from '../../../apiserver/types.ts'
import { applyDefaults, decodeJson, type ObjectValue, resources } from '../../../schemas/index.ts'

/** What a kind's strategy says about an object, as clients see it: `field: message`, without HTTP and store. */

const context: StrategyContext = {
  user: { name: 'tester', uid: '', groups: [], extra: {} },
  now: new Date(0),
  dryRun: false,
  subresource: '',
  warn: () => undefined,
  uid: () => '00000000-0000-4000-8000-000000000000',
}

/** "pods", "deployments.apps" */
function decoded(plural: string, manifest: object | string): { readonly object: ObjectValue; readonly name: string } {
  const [name = '', ...group] = plural.split('.')
  const resource = resources().find((one) => one.plural === name && one.group === group.join('.'))
  const type = resource?.served[0]?.type
  if (resource === undefined || type === undefined) throw new Error(`no such resource: ${plural}`)
  const { object } = decodeJson(Buffer.from(typeof manifest === 'string' ? manifest : JSON.stringify(manifest)), type)
  object['metadata'] ??= record({ name: 'x' })
  applyDefaults(object, type)
  return { object, name }
}

function strategyOf(plural: string): ReturnType<typeof strategyFor> {
  const [name = '', ...group] = plural.split('.')
  const resource = resources().find((one) => one.plural === name && one.group === group.join('.'))
  if (resource === undefined) throw new Error(`no such resource: ${plural}`)
  return strategyFor(resource)
}

const lines = (causes: readonly Cause[]): readonly string[] => causes.map((cause) => `${cause.field}: ${cause.message}`)

/** A manifest as text keeps numbers that JavaScript cannot hold. */
export function refusalsOf(plural: string, manifest: object | string): readonly string[] {
  const { object } = decoded(plural, manifest)
  const strategy = strategyOf(plural)
  strategy.prepareForCreate(object, context)
  return lines(strategy.validate(object))
}

/** Of an update of the main resource, or of a subresource. */
export function updateRefusalsOf(plural: string, before: object, after: object, subresource = ''): readonly string[] {
  const strategy = strategyOf(plural)
  const { object: old } = decoded(plural, before)
  const { object } = decoded(plural, after)
  const of = { ...context, subresource }
  strategy.prepareForUpdate(object, old, of)
  return lines(strategy.validateUpdate(object, old, of))
}
