import type { Random } from '../../../raft/env.ts'

/** xorshift128 seeded by splitmix32: small, fast, and the same everywhere. */
export class SeededRandom implements Random {
  readonly #state: Uint32Array

  constructor(seed: number) {
    let x = seed >>> 0
    this.#state = Uint32Array.from({ length: 4 }, () => {
      x = (x + 0x9e3779b9) >>> 0
      let z = Math.imul(x ^ (x >>> 16), 0x21f0aaad)
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97)
      return (z ^ (z >>> 15)) >>> 0
    })
  }

  uint32(): number {
    const s = this.#state
    let t = s[3]!
    t ^= t << 11
    t ^= t >>> 8
    s[3] = s[2]!
    s[2] = s[1]!
    s[1] = s[0]!
    const drawn = (t ^ s[0]! ^ (s[0]! >>> 19)) >>> 0
    s[0] = drawn
    return drawn
  }

  float(): number {
    return this.uint32() / 0x1_0000_0000
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.uint32() & 0xff)
  }

  /** Uniform integer in [low, high]. */
  between(low: number, high: number): number {
    return low + Math.floor(this.float() * (high - low + 1))
  }

  chance(probability: number): boolean {
    return this.float() < probability
  }

  /** An independent stream: what one part draws does not shift what another sees. */
  fork(): SeededRandom {
    return new SeededRandom(this.uint32())
  }
}
