import { encodeGenericJson } from '../../schemas/index.ts'
import type { Env } from '../../storage/index.ts'
import { ApiError } from '../errors.ts'
import type { ResourceRegistry, Responder } from '../types.ts'
import { indentJson } from './json-text.ts'
import { writeList } from './list-stream.ts'
import { type AnswerFormat, negotiate } from './negotiation.ts'
import { ObjectEncoder } from './object-encoder.ts'
import { protobufValue } from './protobuf-encoder.ts'
import { yamlText } from './yaml-text.ts'
import { WorkTurns } from '../work-turns.ts'

/** Responder plus what the read handlers share with it. */
export interface ObjectResponder extends Responder {
  readonly encoder: ObjectEncoder
  /** Taken in turn by everything that goes over many objects. */
  readonly turns: WorkTurns
}

export function createResponder(options: { readonly env: Env; readonly registry: ResourceRegistry }): ObjectResponder {
  const { env } = options
  const encoder = new ObjectEncoder(env.clock)
  const turns = new WorkTurns(env)
  return {
    encoder,
    turns,
    check(_scope, request) {
      negotiate(request, 'object')
    },
    object(scope, request, reply, answer) {
      const format = objectFormat(negotiate(request, 'object'))
      reply.send(answer.status, format.contentType, encoder.object(scope, format, answer.object, answer.at))
    },
    async list(scope, request, reply, answer) {
      const format = listFormat(negotiate(request, 'object'))
      const meta = { revision: answer.revision }
      const { objects } = answer
      await writeList({ encoder, turns }, { scope, format, objects, meta, reply, signal: request.signal })
    },
    value(request, reply, answer) {
      // A Status is an answer to any request; other values have no metadata that a Table could show.
      const isStatus = answer.value['kind'] === 'Status'
      const format = negotiateValue(request, isStatus)
      const message = format.media === 'protobuf' ? protobufValue(answer.value) : undefined
      if (message !== undefined) {
        reply.send(answer.status, format.contentType, message)
        return
      }
      const compact = encodeGenericJson(answer.value)
      const body =
        format.media === 'yaml'
          ? yamlText(JSON.parse(compact))
          : format.pretty
            ? indentJson(Buffer.from(compact))
            : `${compact}\n`
      // What has no protobuf form is JSON, and says so.
      const contentType = format.media === 'protobuf' ? 'application/json' : format.contentType
      reply.send(answer.status, contentType, body)
    },
  }
}

function negotiateValue(request: Parameters<typeof negotiate>[0], isStatus: boolean): AnswerFormat {
  return isStatus ? { ...negotiate(request, 'object'), as: 'Object' } : negotiate(request, 'value')
}

/** @throws ApiError 406 when one object was asked for as a list. */
export function objectFormat(format: AnswerFormat): AnswerFormat {
  if (format.as !== 'PartialObjectMetadataList') return format
  throw new ApiError(
    406,
    'NotAcceptable',
    'you requested PartialObjectMetadataList, but the requested object is not a list',
  )
}

/** @throws ApiError 406 when a list was asked for as one object. */
export function listFormat(format: AnswerFormat): AnswerFormat {
  if (format.as !== 'PartialObjectMetadata') return format
  throw new ApiError(406, 'NotAcceptable', 'you requested PartialObjectMetadata, but the requested object is a list')
}
