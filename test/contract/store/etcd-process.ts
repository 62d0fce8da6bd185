import { spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../../external.ts'
import { EtcdStore } from './etcd-store.ts'

const path = findProgram('etcd')

/** For testWith(): the real etcd that the suite takes for the truth. */
export const etcdProgram = {
  name: 'etcd',
  path,
  install: 'apt-get install etcd-server',
  ...(path === undefined ? {} : { version: versionOf(path) }),
}

function versionOf(program: string): string {
  return spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout.split('\n')[0]?.split(' ').at(-1) ?? 'unknown'
}

export interface EtcdProcess {
  readonly store: EtcdStore
  /** Ends the process and removes its directory. */
  close(): Promise<void>
}

/** One etcd member in a directory of its own, on free loopback ports. */
export async function startEtcd(program: string): Promise<EtcdProcess> {
  const directory = await mkdtemp(join(tmpdir(), 'trireme-etcd-'))
  const [clientPort, peerPort] = await freePorts(2)
  const client = `http://127.0.0.1:${clientPort}`
  const peer = `http://127.0.0.1:${peerPort}`
  const child = spawn(
    program,
    ['--name', 'truth', '--data-dir', directory, '--logger', 'zap', '--log-level', 'error'].concat(
      ['--listen-client-urls', client, '--advertise-client-urls', client],
      ['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `truth=${peer}`],
    ),
    { stdio: 'ignore' },
  )
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  const store = new EtcdStore(`127.0.0.1:${clientPort}`)
  const close = async () => {
    await store.close()
    child.kill('SIGKILL')
    await ended
    await rm(directory, { recursive: true, force: true })
  }
  try {
    await store.ready(20_000)
    await store.currentRevision({ signal: new AbortController().signal })
  } catch (error) {
    await close()
    throw error
  }
  return { store, close }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports: number[] = []
  for (const server of servers) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('a server without a port')
    ports.push(address.port)
  }
  for (const server of servers) await new Promise((resolve) => server.close(resolve))
  return ports
}
