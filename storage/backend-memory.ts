import { join } from 'node:path'
import { BufferedBackend } from './backend/buffered-backend.ts'
import { FileMedia } from './backend/file-media.ts'
import type { OpenBackend } from './backend/replica-backend.ts'

/**
 * Rows in memory, with every byte that must survive on `env.disk`: deterministic, for simulation. A crash of the disk
 * loses any subset of the batches since the last checkpoint, holes included, which is worse than LevelDB does.
 */
export const openMemoryBackend: OpenBackend = ({ directory, env }) =>
  BufferedBackend.open({ env, directory, openMedia: () => FileMedia.open(env.disk, join(directory, 'rows')) })
