/** mulberry32: a small seeded generator of numbers in [0, 1); equal seeds give equal runs. */
export function randomSource(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000
  }
}

/** SEED from the environment replays one run; otherwise `count` fixed ones. */
export function seeds(count: number): readonly number[] {
  const given = process.env['SEED']
  return given === undefined ? Array.from({ length: count }, (_, i) => i + 1) : [Number(given)]
}
