import { join } from 'node:path'
import {
  DiskError,
  openWal,
  RaftError,
  type Entry,
  type Env,
  type OpenedWal,
  type SnapshotMeta,
} from '../raft/index.ts'
import type { OpenBackend } from './backend/replica-backend.ts'
import { StorageError } from './errors.ts'
import type { Manifest, ManifestMember } from './manifest.ts'
import { ReplicaDirectory } from './replica-directory.ts'
import { storageError } from './replica-errors.ts'
import { fillState, ReplicaStateMachine } from './replica-state-machine.ts'

export interface ReplicaContext {
  readonly env: Env
  /** The data directory. */
  readonly directory: string
  readonly manifest: Manifest
  readonly openBackend: OpenBackend
  /** Sizes of log segments; absent = raft's. */
  readonly segments?: { readonly firstSegmentBytes?: number; readonly segmentBytes?: number }
}

/** Log and state of one replica, open, before its node runs. */
export interface OpenedReplica {
  readonly member: ManifestMember
  readonly wal: OpenedWal
  readonly machine: ReplicaStateMachine
}

/** What a replica's log amounts to, the state's checkpoint counted as its beginning. */
export interface ReplicaLog {
  readonly snapshot: SnapshotMeta
  readonly entries: readonly Entry[]
  readonly last: { readonly index: number; readonly term: number }
}

export function replicaPath(context: ReplicaContext, member: ManifestMember): string {
  return join(context.directory, member.name)
}

/** A first start, or nothing of an earlier one that was acknowledged to anybody. */
export async function createReplica(context: ReplicaContext, member: ManifestMember): Promise<OpenedReplica> {
  const { env } = context
  const directory = await ReplicaDirectory.create(env.disk, replicaPath(context, member))
  return openBoth(context, member, directory)
}

/**
 * Undefined when the replica is gone.
 *
 * @throws StorageError ERR_CORRUPT when it is damaged, ERR_FORMAT when it is newer than this program. Nothing stays
 *   open then.
 */
export async function openReplica(context: ReplicaContext, member: ManifestMember): Promise<OpenedReplica | undefined> {
  const { disk } = context.env
  const directory = await ReplicaDirectory.open(disk, replicaPath(context, member))
  if (directory === undefined) return undefined
  const mark = join(directory.path, damagedMark)
  if (await disk.exists(mark)) {
    const found = Buffer.from(await disk.readFile(mark)).toString('utf8')
    throw new StorageError('ERR_CORRUPT', `${directory.path} was found damaged while it ran: ${found}`)
  }
  // openWal would begin an empty log here, and the member would vote as if it had never voted.
  if (!(await hasLog(context, directory))) throw new StorageError('ERR_CORRUPT', `${directory.wal}: the log is gone`)
  const opened = await openBoth(context, member, directory)
  const { snapshot } = opened.wal.recovered
  if (opened.machine.appliedIndex < snapshot.index) {
    await closeReplica(opened)
    throw new StorageError(
      'ERR_CORRUPT',
      `${directory.path}: the state ends at index ${opened.machine.appliedIndex}, the log begins behind ${snapshot.index}`,
    )
  }
  return opened
}

/** In the directory of a replica that found itself damaged, with what it found. Not to be opened again, but rebuilt. */
const damagedMark = 'DAMAGED'

/** So that the next start rebuilds the replica: damage to a value shows only when somebody reads it. */
export async function markDamaged(context: ReplicaContext, member: ManifestMember, error: Error): Promise<void> {
  const { disk } = context.env
  const path = replicaPath(context, member)
  const mark = join(path, damagedMark)
  await disk.removeTree(mark)
  const file = await disk.open(mark, 'create')
  try {
    await file.write([Buffer.from(error.message, 'utf8')], 0)
    await file.sync()
  } finally {
    await file.close()
  }
  await disk.syncDirectory(path)
}

export async function closeReplica(opened: OpenedReplica): Promise<void> {
  await Promise.allSettled([opened.wal.wal.close(), opened.machine.close()])
}

/** True for what only this replica suffers from, so that the others can make up for it. */
export function isReplicaDamage(error: unknown): boolean {
  return isCorruption(error) || (error instanceof DiskError && damageCodes.has(error.code))
}

/** A file that cannot be read, is cut short, is gone, or is another kind of file. Not: no space, permission or memory. */
const damageCodes = new Set(['EIO', 'EINVAL', 'ENOENT', 'ENOTDIR', 'EISDIR'])

export function isCorruption(error: unknown): boolean {
  return (error instanceof StorageError || error instanceof RaftError) && error.code === 'ERR_CORRUPT'
}

export function replicaLog(opened: OpenedReplica): ReplicaLog {
  const { snapshot, entries } = opened.wal.recovered
  const checkpoint = opened.machine.checkpointed
  if (checkpoint === undefined) return { snapshot, entries, last: entries.at(-1) ?? snapshot }
  const { index, term, membership } = checkpoint
  const at = index === snapshot.index ? snapshot : entries[index - snapshot.index - 1]
  // A snapshot was installed and its WAL marker not written: the log before it is void.
  const after = at?.term === term ? entries.slice(index - snapshot.index) : []
  return { snapshot: { index, term, membership }, entries: after, last: after.at(-1) ?? { index, term } }
}

/** The most up-to-date log (Raft paper, section 5.4.1): of a majority, it holds every committed entry. */
export function mostUpToDate(replicas: readonly OpenedReplica[]): OpenedReplica {
  const [first, ...others] = replicas
  if (first === undefined) throw new StorageError('ERR_DATA_DIR', 'no replica is left')
  return others.reduce((best, replica) => {
    const [a, b] = [replicaLog(best).last, replicaLog(replica).last]
    return b.term > a.term || (b.term === a.term && b.index > a.index) ? replica : best
  }, first)
}

/**
 * Makes a lost replica anew from the most up-to-date log among a majority of the others, before anybody votes. Its term
 * is above all of theirs and it has no vote: whatever it had voted for in a term they know of cannot be voted for
 * again. Built aside and renamed, so that a half-built one is never taken for a replica.
 */
export async function rebuildReplica(
  context: ReplicaContext,
  member: ManifestMember,
  others: readonly OpenedReplica[],
): Promise<OpenedReplica> {
  const { env, manifest, directory } = context
  const { disk } = env
  const source = mostUpToDate(others)
  const log = replicaLog(source)
  const path = replicaPath(context, member)
  const building = `${path}.rebuild`
  await disk.removeTree(building)
  const target = await ReplicaDirectory.create(disk, building)
  if (source.machine.checkpointed !== undefined) await copyState(context, source, target)
  const term = 1 + Math.max(...others.map(({ wal }) => Math.max(wal.recovered.hardState.term, log.last.term)))
  const commit = Math.max(log.snapshot.index, Math.min(source.wal.recovered.hardState.commit, log.last.index))
  const { wal } = await openWal({
    disk,
    directory: target.wal,
    log: env.log,
    random: env.random,
    metadata: { clusterId: manifest.clusterId, memberId: member.id },
    initial: { hardState: { term, vote: 0n, commit }, snapshot: log.snapshot, entries: log.entries },
    ...segmentSizes(context),
  })
  await wal.close()
  await disk.syncDirectory(building)
  await disk.removeTree(path)
  await disk.rename(building, path)
  await disk.syncDirectory(directory)
  env.log.warn(
    { replica: member.name, from: source.member.name, term, lastIndex: log.last.index },
    'rebuilt a lost replica from the most up-to-date log of the others',
  )
  const opened = await openReplica(context, member)
  if (opened === undefined) throw new StorageError('ERR_CORRUPT', `${path}: gone right after it was rebuilt`)
  return opened
}

async function copyState(context: ReplicaContext, source: OpenedReplica, target: ReplicaDirectory): Promise<void> {
  const snapshot = await source.machine.openSnapshot()
  try {
    await fillState(context, target.state, snapshot.chunks, snapshot.meta)
  } finally {
    await snapshot.close()
  }
}

async function openBoth(
  context: ReplicaContext,
  member: ManifestMember,
  directory: ReplicaDirectory,
): Promise<OpenedReplica> {
  const { env, manifest, openBackend } = context
  const voters = manifest.members.map(({ id }) => id)
  const [wal, machine] = await Promise.allSettled([
    openWal({
      disk: env.disk,
      directory: directory.wal,
      log: env.log,
      random: env.random,
      metadata: { clusterId: manifest.clusterId, memberId: member.id },
      initial: {
        hardState: { term: 0, vote: 0n, commit: 0 },
        snapshot: { index: 0, term: 0, membership: { voters, learners: [] } },
      },
      ...segmentSizes(context),
    }),
    ReplicaStateMachine.open({ env, directory, openBackend }),
  ])
  if (wal.status === 'fulfilled' && machine.status === 'fulfilled') {
    return { member, wal: wal.value, machine: machine.value }
  }
  if (wal.status === 'fulfilled') await wal.value.wal.close()
  if (machine.status === 'fulfilled') await machine.value.close()
  const failed = [wal, machine].filter((result) => result.status === 'rejected').map(({ reason }) => reason)
  // A newer format counts before damage: the newer program may well read it.
  throw storageError(
    failed.find((error) => error instanceof Error && 'code' in error && error.code === 'ERR_FORMAT') ?? failed[0],
  )
}

function segmentSizes({ segments }: ReplicaContext): ReplicaContext['segments'] {
  return { firstSegmentBytes: segments?.firstSegmentBytes, segmentBytes: segments?.segmentBytes }
}

async function hasLog(context: ReplicaContext, directory: ReplicaDirectory): Promise<boolean> {
  const { disk } = context.env
  return (await disk.exists(directory.wal)) && (await disk.list(directory.wal)).some((name) => name.endsWith('.wal'))
}
