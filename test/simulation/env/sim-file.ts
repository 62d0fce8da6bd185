const sectorBytes = 512

/** A file's bytes as programs see them, and as they are on the platter. */
export class SimFile {
  #seen = new Uint8Array(0)
  #platter = new Uint8Array(0)
  #size = 0
  #platterSize = 0
  /** Sector -> number of the write that last touched it. */
  readonly #dirty = new Map<number, number>()
  #writes = 0

  get size(): number {
    return this.#size
  }

  read(buffer: Uint8Array, position: number): number {
    const part = this.#seen.subarray(position, Math.min(this.#size, position + buffer.length))
    buffer.set(part)
    return part.length
  }

  contents(): Uint8Array {
    return this.#seen.slice(0, this.#size)
  }

  write(bytes: Uint8Array, position: number): void {
    this.#reserve(position + bytes.length)
    this.#seen.set(bytes, position)
    this.#size = Math.max(this.#size, position + bytes.length)
    const write = ++this.#writes
    const last = Math.floor((position + bytes.length - 1) / sectorBytes)
    for (let sector = Math.floor(position / sectorBytes); sector <= last; sector++) this.#dirty.set(sector, write)
  }

  truncate(size: number): void {
    this.#reserve(size)
    this.#seen.fill(0, Math.min(size, this.#size))
    this.#size = size
    this.#dirty.set(Math.floor(size / sectorBytes), ++this.#writes)
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#seen.length) return
    const room = Math.ceil(Math.max(bytes, this.#seen.length * 1.5) / sectorBytes) * sectorBytes
    this.#seen = grown(this.#seen, room)
    this.#platter = grown(this.#platter, room)
  }

  /** Begins a sync: what is dirty now is on the platter once the returned function is called. */
  beginSync(): () => void {
    const size = this.#size
    const sectors = [...this.#dirty].map(([sector, write]) => ({ sector, write, bytes: this.#sector(sector).slice() }))
    return () => {
      for (const { sector, write, bytes } of sectors) {
        this.#platter.set(bytes, sector * sectorBytes)
        if (this.#dirty.get(sector) === write) this.#dirty.delete(sector)
      }
      this.#platterSize = size
    }
  }

  /** A failed sync: pages count as clean though they never reached the platter. A later sync will not write them. */
  failSync(): void {
    this.#dirty.clear()
  }

  /** Each dirty sector made it or not, for itself, in no order. */
  crash(chance: () => boolean): void {
    for (const sector of [...this.#dirty.keys()].sort((a, b) => a - b)) {
      if (chance()) this.#platter.set(this.#sector(sector), sector * sectorBytes)
    }
    if (this.#size !== this.#platterSize && chance()) this.#platterSize = this.#size
    this.#dirty.clear()
    this.#size = this.#platterSize
    this.#platter.fill(0, this.#size)
    this.#seen = this.#platter.slice()
  }

  /** Damage, for tests of detection: both views change. */
  flipBit(position: number, bit: number): void {
    this.#seen[position]! ^= 1 << bit
    this.#platter[position]! ^= 1 << bit
  }

  #sector(sector: number): Uint8Array {
    return this.#seen.subarray(sector * sectorBytes, (sector + 1) * sectorBytes)
  }
}

function grown(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length)
  larger.set(bytes)
  return larger
}
