import type { ObjectValue } from '../../schemas/index.ts'
import {
  copyValue,
  ensureObject,
  metadataOf,
  record,
  setOrRemove,
  textAt,
  textsAt,
  valueAt,
} from '../validation/object-fields.ts'
import { qualifiedNameProblems } from '../validation/names.ts'
import { invalidValue } from '../validation/field-error.ts'
import type { KindRules } from './kind-rules.ts'

/** Set on every namespace so that selectors can name it (KEP-2161). */
const nameLabel = 'kubernetes.io/metadata.name'

function setNameLabel(object: ObjectValue): void {
  ensureObject(metadataOf(object), 'labels')[nameLabel] = textAt(object, 'metadata', 'name')
}

/** kubernetes pkg/registry/core/namespace. */
export const namespaceRules: KindRules = {
  prepareForCreate(object) {
    object['status'] = record({ phase: 'Active' })
    const finalizers = textsAt(object, 'spec', 'finalizers')
    if (!finalizers.includes('kubernetes')) ensureObject(object, 'spec')['finalizers'] = [...finalizers, 'kubernetes']
    setNameLabel(object)
  },
  prepareForUpdate(object, old) {
    // Content finalizers change through /finalize alone.
    setOrRemove(ensureObject(object, 'spec'), 'finalizers', copyValue(valueAt(old, 'spec', 'finalizers')))
    setNameLabel(object)
  },
  subresources: {
    finalize: {
      prepare(object, sent) {
        setOrRemove(ensureObject(object, 'spec'), 'finalizers', valueAt(sent, 'spec', 'finalizers'))
      },
      validate: (object) =>
        textsAt(object, 'spec', 'finalizers').flatMap((finalizer) =>
          qualifiedNameProblems(finalizer).map((problem) => invalidValue('spec.finalizers', finalizer, problem)),
        ),
    },
  },
}
