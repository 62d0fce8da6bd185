export { openApiV3Document } from './document.ts'
export { wellKnownSchemas, type SchemaNode } from './type-schema.ts'
export { openApiV2Document } from './v2-document.ts'
export { encodeOpenApiV2 } from './v2-protobuf.ts'
