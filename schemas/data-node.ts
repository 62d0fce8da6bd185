import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const packageRequire = createRequire(import.meta.url)

/**
 * Reads one file of `schemas/data/` from the package: the only I/O of this module, synchronous because
 * descriptors are needed in the middle of decoding. `name` comes from our own index, never from a client.
 */
export function readData(name: string): unknown {
  return JSON.parse(readFileSync(packageRequire.resolve(`#data/${name}`), 'utf8')) as unknown
}
