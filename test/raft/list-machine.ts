import type { Disk } from '../../raft/env.ts'
import type { SnapshotSource, StagedSnapshot, StateMachine } from '../../raft/seams.ts'
import type { Entry, Membership, SnapshotMeta } from '../../raft/types.ts'

interface State {
  readonly meta: SnapshotMeta
  readonly values: readonly string[]
}

/**
 * The smallest state machine: the list of all that was proposed. A checkpoint and an installed snapshot are one file
 * each, replaced by rename.
 */
export class ListMachine implements StateMachine {
  readonly #disk: Disk
  readonly #directory: string
  #index: number
  #term: number
  #membership: Membership
  #values: string[]
  discarded = 0
  installed = 0
  staged = 0
  /** A checkpoint waits for it. */
  checkpointAfter: Promise<void> | undefined

  private constructor(disk: Disk, directory: string, state: State) {
    this.#disk = disk
    this.#directory = directory
    this.#index = state.meta.index
    this.#term = state.meta.term
    this.#membership = state.meta.membership
    this.#values = [...state.values]
  }

  static async open(disk: Disk, directory: string): Promise<ListMachine> {
    await disk.makeDirectory(directory)
    const path = `${directory}/state`
    if (!(await disk.exists(path))) {
      return new ListMachine(disk, directory, { meta: { index: 0, term: 0, membership: none }, values: [] })
    }
    return new ListMachine(disk, directory, parse(await disk.readFile(path)))
  }

  get appliedIndex(): number {
    return this.#index
  }

  get values(): readonly string[] {
    return this.#values
  }

  get membership(): Membership {
    return this.#membership
  }

  apply(entry: Entry): number {
    if (entry.index !== this.#index + 1) throw new Error(`entry ${entry.index} applied after ${this.#index}`)
    this.#index = entry.index
    this.#term = entry.term
    if (entry.type === 'normal' && entry.data.length > 0) this.#values.push(Buffer.from(entry.data).toString())
    return this.#values.length
  }

  setMembership(membership: Membership): void {
    this.#membership = membership
  }

  #state(): State {
    const meta = { index: this.#index, term: this.#term, membership: this.#membership }
    return { meta, values: [...this.#values] }
  }

  async openSnapshot(): Promise<SnapshotSource> {
    const state = this.#state()
    const bytes = serialize(state)
    async function* chunks() {
      for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000)
    }
    return { meta: state.meta, chunks: chunks(), close: async () => {} }
  }

  async stageSnapshot(meta: SnapshotMeta, chunks: AsyncIterable<Uint8Array>): Promise<StagedSnapshot> {
    const parts: Uint8Array[] = []
    for await (const chunk of chunks) parts.push(Uint8Array.from(chunk))
    const state = parse(Buffer.concat(parts))
    this.staged++
    return {
      meta,
      install: async () => {
        await this.#save(state)
        this.#index = state.meta.index
        this.#term = state.meta.term
        this.#values = [...state.values]
        this.installed++
      },
      discard: async () => void this.discarded++,
    }
  }

  async checkpoint(): Promise<{ index: number; term: number }> {
    await this.checkpointAfter
    const state = this.#state()
    await this.#save(state)
    return state.meta
  }

  async #save(state: State): Promise<void> {
    const temporary = `${this.#directory}/state.tmp`
    if (await this.#disk.exists(temporary)) await this.#disk.remove(temporary)
    const file = await this.#disk.open(temporary, 'create')
    await file.write([serialize(state)], 0)
    await file.sync()
    await file.close()
    await this.#disk.rename(temporary, `${this.#directory}/state`)
    await this.#disk.syncDirectory(this.#directory)
  }
}

const none: Membership = { voters: [], learners: [] }

function serialize(state: State): Buffer {
  return Buffer.from(JSON.stringify(state, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value)))
}

function parse(bytes: Uint8Array): State {
  const text = Buffer.from(bytes).toString()
  return JSON.parse(text, (_, value: unknown) =>
    typeof value === 'string' && /^\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
  ) as State
}
