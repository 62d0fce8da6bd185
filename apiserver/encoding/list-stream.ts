import { listBufferedBytesMax, listChunkBytes } from '../limits.ts'
import type { WorkTurns } from '../work-turns.ts'
import type { ApiReply, ByteStream, CachedObject, RequestScope } from '../types.ts'
import type { AnswerFormat } from './negotiation.ts'
import { type ListFraming, type ListMeta, type ObjectEncoder, spliceItemInto } from './object-encoder.ts'
import { protobufListPieces } from './protobuf-list.ts'

/** Commas and the resourceVersion that an item may need beside its stored bytes. */
const itemOverheadBytes = 64

/**
 * Writes a list in pieces of 128 KiB, waits while the client has not taken what is there, and gives the event loop
 * back between turns. A list of one piece is sent whole, with its length. Resolves when all is handed over or the
 * client is gone; an aborted signal cuts the connection, so that nobody takes half a list for a whole one.
 */
export async function writeList(
  { encoder, turns }: { readonly encoder: ObjectEncoder; readonly turns: WorkTurns },
  answer: {
    readonly scope: RequestScope
    readonly format: AnswerFormat
    readonly objects: readonly CachedObject[]
    readonly meta: ListMeta
    readonly reply: ApiReply
    readonly signal: AbortSignal
  },
): Promise<void> {
  const { scope, format, objects, meta, reply, signal } = answer
  const pieces =
    format.media === 'protobuf'
      ? await protobufListPieces(turns, encoder.protobuf.list(scope, format, meta), objects, signal)
      : listPieces(encoder, scope, encoder.list(scope, format, meta, objects.length === 0), objects)
  if (pieces === undefined) return
  const first = pieces.next()
  let piece = first.done === true ? undefined : first.value
  let following = pieces.next()
  if (following.done === true) {
    reply.send(200, format.contentType, piece ?? Buffer.alloc(0))
    return
  }
  const stream = reply.stream(200, format.contentType)
  let slice = await turns.next()
  while (piece !== undefined) {
    stream.write(piece)
    if (stream.bufferedBytes > listBufferedBytesMax) {
      turns.pass()
      await drained(stream, signal)
      slice = await turns.next()
    } else if (slice.spent()) {
      slice = await turns.next()
    }
    if (stream.closed) return
    if (signal.aborted) {
      stream.destroy()
      return
    }
    piece = following.done === true ? undefined : following.value
    if (piece !== undefined) following = pieces.next()
  }
  stream.end()
  turns.pass()
}

function drained(stream: ByteStream, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
    else stream.onDrain(done)
  })
}

/** Pieces are never reused: the connection takes them over. */
function* listPieces(
  encoder: ObjectEncoder,
  scope: RequestScope,
  framing: ListFraming,
  objects: readonly CachedObject[],
): Generator<Buffer, undefined> {
  let piece = Buffer.allocUnsafeSlow(pieceSize(framing, objects))
  let used = 0
  const put = function* (bytes: Buffer): Generator<Buffer, void> {
    let from = 0
    while (from < bytes.length) {
      const taken = bytes.copy(piece, used, from)
      used += taken
      from += taken
      if (used === piece.length) {
        yield piece
        piece = Buffer.allocUnsafeSlow(listChunkBytes)
        used = 0
      }
    }
  }
  yield* put(Buffer.from(framing.head))
  const separator = Buffer.from(framing.separator)
  for (const [index, object] of objects.entries()) {
    if (framing.spliced) {
      const of = encoder.represent(scope, object)
      if (used + of.bytes.length + itemOverheadBytes <= piece.length) {
        // The usual case, without a buffer of its own.
        if (index > 0) piece[used++] = 0x2c
        used = spliceItemInto(piece, used, of, object.revision)
        continue
      }
    }
    if (index > 0) yield* put(separator)
    yield* put(framing.item(object))
  }
  yield* put(Buffer.from(framing.tail))
  if (used > 0) yield piece.subarray(0, used)
  return undefined
}

/** Short lists get a buffer of their size. */
function pieceSize(framing: ListFraming, objects: readonly CachedObject[]): number {
  let bytes = framing.head.length * 2 + framing.tail.length * 2
  for (const object of objects) {
    bytes += object.stored.length + itemOverheadBytes
    if (bytes >= listChunkBytes) return listChunkBytes
  }
  return Math.max(bytes, 1024)
}
