import { type RunningControlPlane, openControlPlane } from './compose.ts'
import { OptionsError, type Settings, settingsOfOptions } from './options.ts'
import { makeTemporaryDirectory, removeDirectory } from './temporary-directory-node.ts'

export { ApiError, type StatusReason } from './errors.ts'
export { OptionsError, type Settings } from './options.ts'
export { ListenError } from './http-server.ts'
export { StorageError, type StorageErrorCode } from '../storage/index.ts'

/** All optional: what is not given is free ports on 127.0.0.1, three replicas, and a data directory that goes at stop. */
export interface ControlPlaneOptions extends Partial<Settings> {
  /** Gets whole lines of JSON; the default throws them away. */
  readonly writeLog?: (line: string) => void
}

export interface ControlPlane {
  /** "https://127.0.0.1:43211" */
  readonly server: string
  /** "http://127.0.0.1:43212"; undefined unless `httpPort` was given. */
  readonly http: string | undefined
  /** Path of a kubeconfig whose context "trireme" is the administrator of this control plane. */
  readonly kubeconfig: string
  readonly startMilliseconds: number
  /** Ends watches, lets requests finish, closes files, frees ports; removes the data directory unless it was given. */
  stop(): Promise<void>
}

/**
 * Starts a control plane in this process; any number may run beside each other. Resolves when a write has succeeded.
 * When it rejects, nothing of it is left: no port, no timer, no file.
 *
 * @throws OptionsError for a bad option; ListenError when a port is taken; StorageError when the data directory is in
 *   use, damaged, or of a newer format.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  if (typeof options !== 'object' || (options as unknown) === null) throw new OptionsError('options must be an object')
  const { writeLog = () => {}, ...given } = options
  if (typeof writeLog !== 'function') throw new OptionsError('writeLog must be a function')
  const temporary = given.dataDir === undefined
  const settings = settingsOfOptions({ securePort: 0, logLevel: 'silent', ...given })
  const dataDir = temporary ? await makeTemporaryDirectory() : settings.dataDir
  const forget = async (): Promise<void> => {
    if (temporary) await removeDirectory(dataDir)
  }
  let running: RunningControlPlane
  try {
    running = await openControlPlane({ ...settings, dataDir }, { writeLog, naming: 'option' })
  } catch (error) {
    await forget()
    throw error
  }
  let stopping: Promise<void> | undefined
  return {
    server: running.server,
    http: running.http,
    kubeconfig: running.kubeconfig,
    startMilliseconds: running.startMs,
    stop: () => (stopping ??= stopAndForget(running, forget)),
  }
}

async function stopAndForget(running: RunningControlPlane, forget: () => Promise<void>): Promise<void> {
  try {
    await running.stop()
  } finally {
    await forget()
  }
}
