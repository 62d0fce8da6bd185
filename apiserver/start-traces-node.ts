import { access, constants, readdir, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { OptionsError } from './options.ts'

/** What a failed start leaves behind in a directory, and how to take it away again. */
export interface StartTraces {
  /**
   * Removes what was not there before, claims on the directory excepted. Only for whoever holds the claim and has found no
   * store here with it: what came since is its own then.
   */
  remove(): Promise<void>
  /** Removes the directories that were not there before, when they are empty. */
  removeDirectories(): Promise<void>
}

/**
 * Looks at the data directory before anything is written.
 *
 * @throws OptionsError when it is no directory, or cannot be made or written
 */
export async function inspectDataDir(setting: string, path: string): Promise<StartTraces> {
  const names = await namesIn(path)
  const missing: string[] = []
  let existing = path
  if (names === undefined) {
    while ((await kindOf(existing)) === undefined && dirname(existing) !== existing) {
      missing.push(existing)
      existing = dirname(existing)
    }
  }
  await assertWritableDirectory(setting, path, existing)
  return {
    async remove() {
      const before = new Set(names)
      for (const name of (await namesIn(path)) ?? []) {
        if (before.has(name) || name.startsWith('LOCK.')) continue
        await rm(join(path, name), { recursive: true, force: true })
      }
    },
    async removeDirectories() {
      // fails where somebody has put something: that stays
      for (const made of missing) await rmdir(made).catch(() => {})
    },
  }
}

/** @throws OptionsError when `path` can be neither replaced nor made */
export async function assertReplaceable(setting: string, path: string): Promise<void> {
  if ((await kindOf(path)) === 'directory') {
    throw new OptionsError(`${setting} ${path} is a directory: name a file in it, or another one`)
  }
  let existing = dirname(path)
  while ((await kindOf(existing)) === undefined && dirname(existing) !== existing) existing = dirname(existing)
  await assertWritableDirectory(setting, path, existing)
}

/** @param existing - `path` itself, or the nearest directory above it that exists. */
async function assertWritableDirectory(setting: string, path: string, existing: string): Promise<void> {
  if ((await kindOf(existing)) !== 'directory') {
    throw new OptionsError(`${setting} ${path} cannot be used: ${existing} is not a directory, choose another path`)
  }
  try {
    await access(existing, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new OptionsError(
      `${setting} ${path} cannot be used: no permission to write in ${existing} (${codeOf(error)}), choose another path`,
    )
  }
}

async function kindOf(path: string): Promise<'directory' | 'other' | undefined> {
  try {
    return (await stat(path)).isDirectory() ? 'directory' : 'other'
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return undefined
    throw error
  }
}

/** undefined: no such directory. */
async function namesIn(path: string): Promise<readonly string[] | undefined> {
  try {
    return await readdir(path)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return undefined
    throw error
  }
}

const codeOf = (error: unknown): string => (error as { code?: string }).code ?? String(error)
