export { openApiV3Document } from './document.ts'
export { wellKnownSchemas, type SchemaNode } from './type-schema.ts'
