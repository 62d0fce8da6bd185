export { applyDefaults } from './defaults/index.ts'
export * from './descriptors.ts'
export * from './errors.ts'
export * from './json/decode.ts'
export { decodeYaml } from './json/decode-yaml.ts'
export * from './json/encode.ts'
export { parseJson } from './json/parse.ts'
export { newObject } from './json/reader.ts'
export * from './limits.ts'
export * from './openapi/index.ts'
export * from './resources.ts'
export {
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  roundQuantityUp,
} from './scalars/quantity.ts'
export type { Quantity } from './scalars/quantity.ts'
export * from './types.ts'
export * from './patch/index.ts'
export { dropDisabledFields } from './feature-gates.ts'
export { lazy } from './lazy.ts'
export { decodeEnvelope, decodeProtobuf, encodeEnvelope, encodeProtobuf, envelopeFrame } from './protobuf/index.ts'
export type { Envelope } from './protobuf/index.ts'
