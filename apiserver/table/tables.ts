import type { ResourceInfo } from '../../schemas/index.ts'
import { type KindTable, plainTable, resourceId } from './kind-table.ts'

/** Tables by "plural.group". */
const tables: ReadonlyMap<string, KindTable> = new Map()

export function tableFor(resource: ResourceInfo): KindTable {
  return tables.get(resourceId(resource)) ?? plainTable
}
