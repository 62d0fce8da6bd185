import { RaftError } from './errors.ts'
import type { SnapshotSource, Transport, TransportReceiver } from './seams.ts'
import type { MemberId, Message } from './types.ts'

/** Messages waiting for one member's turn; beyond it they are dropped, as a network may. */
const queueMessagesMax = 4096

export interface MemoryHub {
  /** The transport of `id`; a second one for the same id takes the first one's place (a restart). */
  transport(id: MemberId): Transport
  /** Tests: a message for which `keep` is false is lost. Snapshot messages are asked about too. */
  filter(keep: (message: Message) => boolean): void
}

/**
 * Connects the members of one process. Entries are handed over as they are: their buffers are shared and nobody changes
 * them. A message arrives in a microtask of its own, never inside send().
 */
export function createMemoryHub(): MemoryHub {
  const ports = new Map<MemberId, Port>()
  let keep: (message: Message) => boolean = () => true
  return {
    transport(id) {
      ports.get(id)?.close()
      const port = new Port((message) => (keep(message) ? ports.get(message.to) : undefined))
      ports.set(id, port)
      return port
    },
    filter(next) {
      keep = next
    },
  }
}

class Port implements Transport {
  readonly #find: (message: Message) => Port | undefined
  #receiver: TransportReceiver | undefined
  #queue: Message[] = []
  #closed = false

  constructor(find: (message: Message) => Port | undefined) {
    this.#find = find
  }

  attach(receiver: TransportReceiver): void {
    this.#receiver = receiver
  }

  send(message: Message): void {
    if (!this.#closed) this.#find(message)?.enqueue(message)
  }

  async sendSnapshot(message: Message & { type: 'snapshot' }, source: SnapshotSource): Promise<void> {
    const receiver = this.#closed ? undefined : this.#find(message)?.receiver
    if (!receiver) throw new RaftError('ERR_STOPPED', `member ${message.to.toString(16)} is not reachable`)
    await receiver.onSnapshot(message, source.chunks)
  }

  close(): void {
    this.#closed = true
    this.#receiver = undefined
    this.#queue = []
  }

  get receiver(): TransportReceiver | undefined {
    return this.#receiver
  }

  enqueue(message: Message): void {
    if (this.#receiver === undefined || this.#queue.length >= queueMessagesMax) return
    this.#queue.push(message)
    if (this.#queue.length === 1) queueMicrotask(() => this.#deliver())
  }

  #deliver(): void {
    const messages = this.#queue
    this.#queue = []
    for (const message of messages) this.#receiver?.onMessage(message)
  }
}
