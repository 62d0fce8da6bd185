import type { ObjectValue } from '../../../schemas/index.ts'
import { record } from '../../validation/object-fields.ts'

/** The answer of subresources that do something rather than show something. */
export function successStatus(code: number): ObjectValue {
  return record({ kind: 'Status', apiVersion: 'v1', metadata: record(), status: 'Success', code })
}
