import { RaftError } from '../../../raft/errors.ts'
import { decodeFrame, encodeFrame } from '../../../raft/peer-codec.ts'
import type { SnapshotSource, Transport, TransportReceiver } from '../../../raft/seams.ts'
import type { MemberId, Message } from '../../../raft/types.ts'
import type { SeededRandom } from './random.ts'
import type { SimNode } from './sim-node.ts'
import type { Simulation } from './simulation.ts'

export interface NetworkWeather {
  /** Milliseconds; each message takes a random time between, so they overtake one another. */
  latencyMsMin: number
  latencyMsMax: number
  /** Probabilities per message. */
  drop: number
  duplicate: number
}

const keepAliveMs = 500

type SnapshotMessage = Message & { type: 'snapshot' }

/** Carries real frames: what arrives went through the peer codec. */
export class SimNetwork {
  readonly weather: NetworkWeather = { latencyMsMin: 0.1, latencyMsMax: 2, drop: 0, duplicate: 0 }
  readonly #simulation: Simulation
  readonly #random: SeededRandom
  readonly #ports = new Map<MemberId, Port>()
  readonly #cut = new Set<string>()

  constructor(simulation: Simulation) {
    this.#simulation = simulation
    this.#random = simulation.random.fork()
  }

  /** For one boot of `machine`: call it again after each. */
  transport(id: MemberId, machine: SimNode): Transport {
    const port = new Port(this, id, machine, machine.bootCount)
    this.#ports.set(id, port)
    return port
  }

  /** One way: what `from` sends does not reach `to`, under way or not. */
  cut(from: MemberId, to: MemberId): void {
    this.#cut.add(`${from}>${to}`)
  }

  /** Both ways between `id` and everybody. */
  isolate(id: MemberId): void {
    for (const other of this.#ports.keys()) {
      if (other === id) continue
      this.cut(id, other)
      this.cut(other, id)
    }
  }

  heal(): void {
    this.#cut.clear()
  }

  isCut(from: MemberId, to: MemberId): boolean {
    return this.#cut.has(`${from}>${to}`)
  }

  send(message: Message): void {
    const frame = encodeFrame(message)
    this.#simulation.trace(`${message.from} > ${message.to} ${message.type} ${frame.length}`)
    const copies = this.#random.chance(this.weather.drop) ? 0 : this.#random.chance(this.weather.duplicate) ? 2 : 1
    for (let i = 0; i < copies; i++) {
      this.#simulation.after(this.#latency(), () => this.#deliver(message.from, message.to, frame))
    }
  }

  #deliver(from: MemberId, to: MemberId, frame: Uint8Array): void {
    const port = this.#ports.get(to)
    if (!port?.receiver || this.isCut(from, to)) return
    // A stalled machine finds the message in its socket when it wakes.
    const late = port.machine.pausedUntil - this.#simulation.now
    if (late > 0) {
      this.#simulation.after(late, () => this.#deliver(from, to, frame))
      return
    }
    const message = decodeFrame(frame)
    if (message.type !== 'snapshotChunk') port.receiver.onMessage(message)
  }

  async sendSnapshot(message: SnapshotMessage, source: SnapshotSource): Promise<void> {
    const { from, to } = message
    await this.#wait()
    const port = this.#ports.get(to)
    const receiver = port?.receiver
    if (!port || !receiver || this.isCut(from, to)) throw new RaftError('ERR_STOPPED', `member ${to} is not reachable`)
    const decoded = decodeFrame(encodeFrame(message))
    if (decoded.type !== 'snapshot') throw new Error('a snapshot message decoded into something else')
    await this.#whileAlive(port, receiver.onSnapshot(decoded, this.#stream(message, source)))
  }

  /** Like a connection whose keep-alive fails: a receiver without power answers nothing. */
  #whileAlive(port: Port, staging: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      let settled = false
      const look = () => {
        if (settled) return
        if (port.receiver) this.#simulation.after(keepAliveMs, look)
        else reject(new RaftError('ERR_STOPPED', 'the receiver of a snapshot is gone'))
      }
      this.#simulation.after(keepAliveMs, look)
      staging.then(resolve, reject).finally(() => (settled = true))
    })
  }

  async *#stream({ from, to }: SnapshotMessage, source: SnapshotSource): AsyncIterable<Uint8Array> {
    let sequence = 0
    for await (const data of source.chunks) {
      await this.#wait()
      if (this.isCut(from, to) || !this.#ports.get(from)?.receiver) throw new RaftError('ERR_STOPPED', 'stream broken')
      const chunk = decodeFrame(encodeFrame({ type: 'snapshotChunk', sequence: sequence++, last: false, data }))
      if (chunk.type === 'snapshotChunk') yield chunk.data
    }
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => void this.#simulation.after(this.#latency(), resolve))
  }

  #latency(): number {
    const { latencyMsMin, latencyMsMax } = this.weather
    return latencyMsMin + this.#random.float() * (latencyMsMax - latencyMsMin)
  }
}

class Port implements Transport {
  readonly machine: SimNode
  readonly #network: SimNetwork
  readonly #id: MemberId
  readonly #boot: number
  #receiver: TransportReceiver | undefined

  constructor(network: SimNetwork, id: MemberId, machine: SimNode, boot: number) {
    this.#network = network
    this.#id = id
    this.machine = machine
    this.#boot = boot
  }

  /** Undefined once closed, or when the machine has crashed since. */
  get receiver(): TransportReceiver | undefined {
    return this.machine.bootCount === this.#boot ? this.#receiver : undefined
  }

  attach(receiver: TransportReceiver): void {
    this.#receiver = receiver
  }

  send(message: Message): void {
    if (this.receiver && !this.#network.isCut(this.#id, message.to)) this.#network.send(message)
  }

  async sendSnapshot(message: SnapshotMessage, source: SnapshotSource): Promise<void> {
    if (!this.receiver) throw new RaftError('ERR_STOPPED', 'this transport is closed')
    await this.#network.sendSnapshot(message, source)
  }

  close(): void {
    this.#receiver = undefined
  }
}
