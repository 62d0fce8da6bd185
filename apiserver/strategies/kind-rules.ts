import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause, Strategy, StrategyContext } from '../types.ts'

/** What a kind adds to the generic strategy. Objects are of the storage version and may be changed. */
export interface KindRules {
  /** After status has been reset. */
  prepareForCreate?(object: ObjectValue, context: StrategyContext): void
  /** Of the main resource, after status has been carried over. */
  prepareForUpdate?(object: ObjectValue, old: ObjectValue, context: StrategyContext): void
  /** On create and on update of the main resource. */
  validate?(object: ObjectValue): readonly Cause[]
  /** On create only. */
  validateCreate?(object: ObjectValue): readonly Cause[]
  /** On update of the main resource only. */
  validateUpdate?(object: ObjectValue, old: ObjectValue): readonly Cause[]
  /** Of a subresource that takes the whole object; without rules of its own only `status` is known. */
  readonly subresources?: Readonly<Record<string, SubresourceRules>>
  readonly graceSeconds?: NonNullable<Strategy['graceSeconds']>
  readonly claims?: NonNullable<Strategy['claims']>
  readonly releases?: NonNullable<Strategy['releases']>
}

export interface SubresourceRules {
  /**
   * `object` has the old object's everything but metadata; `sent` is what the client sent. Copies over what the
   * subresource may change.
   */
  prepare(object: ObjectValue, sent: ObjectValue, old: ObjectValue, context: StrategyContext): void
  validate?(object: ObjectValue, old: ObjectValue): readonly Cause[]
}
