import { randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import { type FileHandle, mkdir, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** A file's text; undefined when it is not there. */
export async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Replaces a file by write and rename: nobody ever sees half of it, and a crash leaves the old or the new one. A symbolic
 * link stays one; what it points to is replaced. A new file is readable by its owner alone.
 *
 * The directory is made when it alone is missing.
 *
 * @param options - `keepAccess`: the mode and owner of a file that is there stay what they are.
 */
export async function writePrivate(
  path: string,
  text: string,
  options?: { readonly keepAccess: boolean },
): Promise<void> {
  let to = path
  let old: Stats | undefined
  try {
    to = await realpath(path)
    old = options?.keepAccess === true ? await stat(to) : undefined
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENOENT') throw error
  }
  await mkdir(dirname(to), { mode: 0o700 }).catch((error: { readonly code?: string }) => {
    if (error.code !== 'EEXIST') throw error
  })
  const temporary = join(dirname(to), `.${randomBytes(6).toString('hex')}.tmp`)
  try {
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.writeFile(text)
      if (old !== undefined) await takeAccess(file, old)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, to)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

async function takeAccess(file: FileHandle, old: Stats): Promise<void> {
  const own = await file.stat()
  if (own.uid !== old.uid || own.gid !== old.gid) {
    try {
      await file.chown(old.uid, old.gid)
    } catch (error) {
      // only root may give files away; whoever may replace the file keeps it then
      if ((error as { code?: string }).code !== 'EPERM') throw error
      return
    }
  }
  await file.chmod(old.mode & 0o777)
}
