import { randomBytes } from 'node:crypto'
import { mkdir, open, readFile, realpath, rename, rm } from 'node:fs/promises'
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
 * Replaces a file by write and rename, readable by its owner alone: nobody ever sees half of it, and a crash leaves the
 * old or the new one. A symbolic link stays one; what it points to is replaced.
 */
export async function writePrivate(path: string, text: string): Promise<void> {
  let to = path
  try {
    to = await realpath(path)
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENOENT') throw error
  }
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  const temporary = join(dirname(to), `.${randomBytes(6).toString('hex')}.tmp`)
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  try {
    await rename(temporary, to)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
