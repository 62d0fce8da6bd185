import type { ObjectValue } from '../../schemas/index.ts'
import { ensureObject, objectsAt, record, textAt } from '../validation/object-fields.ts'
import type { AdmissionPlugin } from './admission.ts'

const taints = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'] as const
const tolerationSeconds = 300

/** Pods stay five minutes on a node that fails, unless they say otherwise (plugin DefaultTolerationSeconds). */
export function defaultTolerations(): AdmissionPlugin {
  return {
    name: 'DefaultTolerationSeconds',
    operations: new Set(['CREATE', 'UPDATE']),
    admit({ object, resource, subresource }) {
      if (object === undefined || resource.group !== '' || resource.plural !== 'pods' || subresource !== '') return
      const spec = ensureObject(object, 'spec')
      const tolerations = objectsAt(spec, 'tolerations')
      const missing = taints.filter((taint) => !tolerations.some((toleration) => covers(toleration, taint)))
      if (missing.length === 0) return
      spec['tolerations'] = [
        ...tolerations,
        ...missing.map((key) => record({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds })),
      ]
    },
  }
}

function covers(toleration: ObjectValue, taint: string): boolean {
  const key = textAt(toleration, 'key')
  const effect = textAt(toleration, 'effect')
  return (key === taint || key === '') && (effect === 'NoExecute' || effect === '')
}
