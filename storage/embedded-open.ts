import { join } from 'node:path'
import { inspectWal, summaryOf } from '../raft/index.ts'
import { StorageError } from './errors.ts'
import {
  closeReplica,
  createReplica,
  isReplicaDamage,
  openReplica,
  rebuildReplica,
  replicaPath,
  type OpenedReplica,
  type ReplicaContext,
} from './embedded-replica.ts'
import { damagedKeptMax } from './limits.ts'
import { writeManifest, type Manifest, type ManifestMember } from './manifest.ts'
import { wantsSpace } from './replica-revival.ts'

interface LostReplica {
  readonly member: ManifestMember
  /** undefined = gone. */
  readonly damage: unknown
}

/** The members of a new cluster. */
export function newManifest(replicas: 1 | 3, clusterId: bigint): Manifest {
  const members = Array.from({ length: replicas }, (_, i) => ({ id: BigInt(i + 1), name: `replica-${i + 1}` }))
  return { clusterId, members }
}

/**
 * A first start: the manifest comes last, so that what it lists has existed.
 *
 * @throws StorageError ERR_DATA_DIR when there are replicas with entries and no manifest.
 */
export async function createReplicas(context: ReplicaContext): Promise<OpenedReplicas> {
  const { env, manifest, directory } = context
  const { disk } = env
  for (const member of manifest.members) await assertNoEntries(context, member)
  for (const member of manifest.members) await disk.removeTree(replicaPath(context, member))
  const opened = await allOrNone(manifest.members.map((member) => createReplica(context, member)))
  try {
    await disk.syncDirectory(directory)
    await writeManifest(disk, directory, manifest)
    return { opened, waiting: [] }
  } catch (error) {
    await Promise.all(opened.map(closeReplica))
    throw error
  }
}

/** One that cannot be opened for want of disk space: the others go on without it. */
export interface WaitingReplica {
  readonly member: ManifestMember
  readonly error: unknown
}

export interface OpenedReplicas {
  readonly opened: readonly OpenedReplica[]
  readonly waiting: readonly WaitingReplica[]
}

/**
 * Opens what the manifest lists, and rebuilds what is gone or damaged while a majority is there.
 *
 * @throws StorageError ERR_DATA_DIR when no majority is left (nothing is changed if directories are missing);
 *   ERR_FORMAT when a replica was written by a newer program.
 */
export async function openReplicas(context: ReplicaContext): Promise<OpenedReplicas> {
  const { manifest } = context
  const needed = Math.floor(manifest.members.length / 2) + 1
  const gone: LostReplica[] = []
  for (const member of manifest.members) {
    const present = await context.env.disk.exists(join(replicaPath(context, member), 'CURRENT'))
    if (!present) gone.push({ member, damage: undefined })
  }
  if (manifest.members.length - gone.length < needed) throw noMajority(context, gone)

  const results = await Promise.allSettled(manifest.members.map((member) => openReplica(context, member)))
  const opened: OpenedReplica[] = []
  const lost: LostReplica[] = []
  const waiting: WaitingReplica[] = []
  const fatal: unknown[] = []
  for (const [i, member] of manifest.members.entries()) {
    const result = results[i]
    if (result?.status === 'fulfilled' && result.value !== undefined) opened.push(result.value)
    else if (result?.status === 'fulfilled') lost.push({ member, damage: undefined })
    else if (isReplicaDamage(result?.reason)) lost.push({ member, damage: result?.reason })
    else if (wantsSpace(result?.reason)) waiting.push({ member, error: result?.reason })
    else fatal.push(result?.reason)
  }
  try {
    if (fatal.length > 0) throw fatal[0]
    if (opened.length < needed) throw waiting.length > 0 ? waiting[0]?.error : noMajority(context, lost)
    const healthy = [...opened]
    for (const { member, damage } of lost) {
      if (damage !== undefined) await moveAside(context, member, damage)
      opened.push(await rebuildReplica(context, member, healthy))
    }
    return { opened, waiting }
  } catch (error) {
    await Promise.all(opened.map(closeReplica))
    throw error
  }
}

/** Kept: a person may want to look at it. The oldest go, so that a disk that damages often is not filled besides. */
async function moveAside(context: ReplicaContext, member: ManifestMember, damage: unknown): Promise<void> {
  const { disk, log } = context.env
  const path = replicaPath(context, member)
  const numbers = (await disk.list(context.directory))
    .flatMap((name) => (name.startsWith(`${member.name}.damaged-`) ? [Number(name.split('-').at(-1))] : []))
    .sort((a, b) => a - b)
  for (const old of numbers.slice(0, -damagedKeptMax + 1)) await disk.removeTree(`${path}.damaged-${old}`)
  const kept = `${path}.damaged-${(numbers.at(-1) ?? 0) + 1}`
  log.error({ replica: member.name, kept, error: damage }, 'a replica is damaged: moved aside, it will be rebuilt')
  await disk.rename(path, kept)
  await disk.syncDirectory(context.directory)
}

async function assertNoEntries(context: ReplicaContext, member: ManifestMember): Promise<void> {
  const path = replicaPath(context, member)
  const inspection = await inspectWal({ disk: context.env.disk, directory: join(path, 'wal') })
  if (inspection === undefined || summaryOf(inspection).lastIndex === 0) return
  throw new StorageError(
    'ERR_DATA_DIR',
    `${path} holds data, but ${join(context.directory, 'MANIFEST')} is missing: put it back, or move the directory away`,
  )
}

function noMajority(context: ReplicaContext, lost: readonly LostReplica[]): StorageError {
  const { manifest, directory } = context
  const { length } = manifest.members
  const reasons = lost.map(
    ({ member, damage }) => `${member.name}: ${damage instanceof Error ? damage.message : 'gone'}`,
  )
  return new StorageError(
    'ERR_DATA_DIR',
    `${directory}: ${length - lost.length} of ${length} replicas can be used, a majority is needed ` +
      `(${reasons.join('; ')}): put the missing ones back or restore a backup; to begin empty, move ${directory} away`,
    { cause: lost.find(({ damage }) => damage)?.damage },
  )
}

async function allOrNone(opening: readonly Promise<OpenedReplica>[]): Promise<readonly OpenedReplica[]> {
  const results = await Promise.allSettled(opening)
  const opened = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failed = results.find((result) => result.status === 'rejected')
  if (failed === undefined) return opened
  await Promise.all(opened.map(closeReplica))
  throw failed.reason
}
