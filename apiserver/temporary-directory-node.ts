import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new, empty directory that only its owner may enter. */
export function makeTemporaryDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'trireme-'))
}

export async function removeDirectory(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true })
}
