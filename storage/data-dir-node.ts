import { readFile } from 'node:fs/promises'
import type { ProcessTable } from './data-dir-lock.ts'

/** Processes of this machine. Where there is no /proc, a live pid alone counts as the same process. */
export function createProcessTable(): ProcessTable {
  return {
    ownPid: process.pid,
    async startOf(pid) {
      const boot = await readOrUndefined('/proc/sys/kernel/random/boot_id')
      if (boot === undefined) return isAlive(pid) ? 'unknown' : undefined
      const stat = await readOrUndefined(`/proc/${pid}/stat`)
      if (stat === undefined) return undefined
      // Fields behind the name, which is in parentheses and may hold anything; the start time is the 22nd of all.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const [state, start] = [fields[0], fields[19]]
      // A zombie holds no file any more.
      return state === 'Z' || start === undefined ? undefined : `${boot.slice(0, 8)}-${start}`
    },
  }
}

async function readOrUndefined(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH'))
      return undefined
    throw error
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
