import { join } from 'node:path'
import { LevelMedia } from './backend/level-media.ts'
import { BufferedBackend } from './backend/buffered-backend.ts'
import type { OpenBackend } from './backend/replica-backend.ts'

/**
 * Rows in LevelDB under `<directory>/rows`, the CHECKPOINT file beside them. LevelDB does its own I/O, hence this is
 * one of the named adapters.
 *
 * @throws StorageError ERR_CORRUPT, ERR_FORMAT; ERR_DATA_DIR when another process has the rows open.
 */
export const openLevelBackend: OpenBackend = ({ directory, env }) =>
  BufferedBackend.open({ env, directory, openMedia: () => LevelMedia.open(join(directory, 'rows')) })
