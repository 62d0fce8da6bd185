import type { ObjectValue } from '../../schemas/index.ts'
import { metadataOf } from '../validation/object-fields.ts'

/**
 * Keeps metadata.managedFields. A real call on every write, in front of the strategy, so that field ownership can be
 * added behind it without touching the handlers.
 */
export interface FieldManager {
  /** Changes `object` in place; `live` is absent on create. */
  update(object: ObjectValue, live: ObjectValue | undefined, manager: string): void
}

/** Tracks nothing: what clients send as managedFields is dropped, never stored. */
export const untrackedFields: FieldManager = {
  update(object) {
    delete metadataOf(object)['managedFields']
  },
}
