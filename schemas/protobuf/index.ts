export { decodeProtobuf } from './decode.ts'
export { encodeProtobuf } from './encode.ts'
export { decodeEnvelope, encodeEnvelope, type Envelope, envelopeFrame } from './envelope.ts'
