import type { EmbeddedStore, Env, Store } from '../storage/index.ts'
import { storeProbeMs } from './http-limits.ts'

/** As much of the store as its health shows in. */
export type ProbedStore = Pick<Store, 'currentRevision'> & Partial<Pick<EmbeddedStore, 'replicas'>>

/**
 * The `etcd` check. Fails at once when the replicas' own state says that no write can succeed: fewer run than a majority,
 * or nobody leads. Else it asks for the current revision as every consistent read does: a quorum has answered, and what it
 * had committed is applied here. An answer that takes longer than kube-apiserver would wait counts as none.
 *
 * @returns what is wrong; undefined when nothing is
 */
export function storeHealth(env: Env, store: ProbedStore): () => Promise<string | undefined> {
  return async () => {
    const problem = replicaProblem(store.replicas?.() ?? [])
    if (problem !== undefined) return problem
    const late = new AbortController()
    const timer = env.scheduler.after(storeProbeMs, () => late.abort())
    try {
      await store.currentRevision({ signal: late.signal })
      return undefined
    } catch (error) {
      if (late.signal.aborted) return `no answer from a quorum within ${storeProbeMs} ms`
      return error instanceof Error ? error.message : String(error)
    } finally {
      timer.cancel()
    }
  }
}

function replicaProblem(replicas: ReturnType<EmbeddedStore['replicas']>): string | undefined {
  if (replicas.length === 0) return undefined
  const running = replicas.filter(({ state }) => state === 'running')
  const needed = Math.floor(replicas.length / 2) + 1
  if (running.length < needed) {
    const down = replicas.filter(({ state }) => state !== 'running').map(({ name, state }) => `${name} ${state}`)
    return `${running.length} of ${replicas.length} replicas run, ${needed} are needed (${down.join(', ')})`
  }
  return running.some(({ raft }) => raft?.role === 'leader') ? undefined : 'no leader'
}
