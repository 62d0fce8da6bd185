import type { ObjectValue, ResourceInfo } from '../../schemas/index.ts'
import { ageOf } from './human-duration.ts'

/** metav1.TableColumnDefinition, in its field order. */
export interface Column {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date' | 'number'
  /** "name" marks the column that names the object. */
  readonly format: string
  readonly description: string
  /** 0 always shown, 1 with -o wide. */
  readonly priority: number
}

export type Cell = string | number | boolean | null

/** How a kind looks as a Table: columns, and one cell per column. */
export interface KindTable {
  readonly columns: readonly Column[]
  /** @param object - Parsed stored bytes, not decoded by type: fields may be absent. */
  cells(object: ObjectValue, nowMs: number): readonly Cell[]
}

export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Unique within a namespace; chosen at creation and fixed from then on.',
  priority: 0,
}

export const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  format: '',
  description: 'Time since the object was created.',
  priority: 0,
}

export function column(name: string, description: string, options?: Partial<Column>): Column {
  return { name, type: 'string', format: '', description, priority: 0, ...options }
}

/** The value at a path of field names; undefined where something on the way is absent. */
export function at(object: unknown, ...path: readonly string[]): unknown {
  let value = object
  for (const field of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, field)) return undefined
    value = (value as ObjectValue)[field]
  }
  return value
}

export function textAt(object: unknown, ...path: readonly string[]): string {
  const value = at(object, ...path)
  return typeof value === 'string' ? value : ''
}

export function numberAt(object: unknown, ...path: readonly string[]): number {
  const value = at(object, ...path)
  return typeof value === 'number' ? value : 0
}

export function listAt(object: unknown, ...path: readonly string[]): readonly unknown[] {
  const value = at(object, ...path)
  return Array.isArray(value) ? (value as readonly unknown[]) : []
}

export function keysAt(object: unknown, ...path: readonly string[]): readonly string[] {
  const value = at(object, ...path)
  return typeof value === 'object' && value !== null ? Object.keys(value) : []
}

export const nameOf = (object: ObjectValue): string => textAt(object, 'metadata', 'name')
export const objectAge = (object: ObjectValue, nowMs: number): string =>
  ageOf(at(object, 'metadata', 'creationTimestamp'), nowMs)

/** Of every kind that has no table of its own. */
export const plainTable: KindTable = {
  columns: [nameColumn, ageColumn],
  cells: (object, nowMs) => [nameOf(object), objectAge(object, nowMs)],
}

export const resourceId = (resource: ResourceInfo): string =>
  resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`
