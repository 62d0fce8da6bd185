import { mutationsInFlightMax, readsInFlightMax } from '../http-limits.ts'

/** Bounded concurrency of short requests (kubernetes/apiserver server/filters/maxinflight.go). Full: the caller answers 429. */
export class InFlight {
  #reads = 0
  #mutations = 0
  readonly #readsMax: number
  readonly #mutationsMax: number

  constructor(options?: { readonly readsMax?: number; readonly mutationsMax?: number }) {
    this.#readsMax = options?.readsMax ?? readsInFlightMax
    this.#mutationsMax = options?.mutationsMax ?? mutationsInFlightMax
  }

  /** undefined when full; else what to call, once, when the request is over. */
  enter(mutating: boolean): (() => void) | undefined {
    if (mutating) {
      if (this.#mutations >= this.#mutationsMax) return undefined
      this.#mutations += 1
    } else {
      if (this.#reads >= this.#readsMax) return undefined
      this.#reads += 1
    }
    let left = false
    return () => {
      if (left) return
      left = true
      if (mutating) this.#mutations -= 1
      else this.#reads -= 1
    }
  }
}
