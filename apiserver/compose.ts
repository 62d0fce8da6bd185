import { dirname, join, resolve } from 'node:path'
import { createNodeEnv } from '../raft/env-node.ts'
import { resourceGroups, resources } from '../schemas/index.ts'
import { type EmbeddedStore, type Env, openEmbeddedStore, type Timer } from '../storage/index.ts'
import { bearerTokens, clientCertificates, loopbackListener } from './authentication/authenticator.ts'
import { builtInAuthorizer } from './authorization/built-in-authorizer.ts'
import { bootstrap } from './bootstrap.ts'
import { createObjectCache } from './cache/object-cache.ts'
import { enabledControllers } from './controllers/controller-names.ts'
import { startControllers } from './controllers/start-controllers.ts'
import { pkiPaths, planPki, writePki } from './certificates/certificates.ts'
import { machineAddresses } from './certificates/machine-addresses-node.ts'
import { readText, writePrivate } from './certificates/pki-files-node.ts'
import { createDispatcher, type Dispatcher } from './dispatch.ts'
import { createResponder } from './encoding/responder.ts'
import { DiscoveryPaths } from './discovery/discovery-paths.ts'
import { createReadHandlers } from './handlers/read-handlers.ts'
import { createWriteHandlers } from './handlers/write-handlers.ts'
import type { WriteServices } from './object-store/write-services.ts'
import { handlerTable } from './handler-table.ts'
import type { HealthCheck } from './health.ts'
import { shutdownGraceMs } from './http-limits.ts'
import { type Listener, listen } from './http-server.ts'
import { hostInUrl } from './ip-address.ts'
import { curlrcText, type KubeconfigEntry, KubeconfigError, kubeconfigText } from './kubeconfig.ts'
import type { LogLevel } from './logger.ts'
import { createLogger } from './logger.ts'
import { processMetrics } from './metrics/process-metrics-node.ts'
import { RequestMetrics } from './metrics/request-metrics.ts'
import { measureStore, storedObjects } from './metrics/store-metrics.ts'
import { type Naming, OptionsError, settingName, type Settings } from './options.ts'
import { createPaths } from './paths.ts'
import { assertReplaceable, inspectDataDir } from './start-traces-node.ts'
import { createResourceRegistry } from './registry.ts'
import { storeHealth } from './store-health.ts'
import { strategyFor } from './strategies/index.ts'
import type { ApiServices } from './types.ts'
import { gitVersion } from './version.ts'

export interface RunningControlPlane {
  /** https://… */
  readonly server: string
  /** http://…; undefined without --http-port. */
  readonly http: string | undefined
  /** Absolute path. */
  readonly kubeconfig: string
  readonly startMs: number
  /** For tests: to stop replicas below a running server. */
  readonly store: EmbeddedStore
  /** Ends watches, lets requests finish, closes the store. The same promise on every call. */
  stop(): Promise<void>
}

/** Undoes what was started, last first, each once; so that a failed start leaves nothing and a stop forgets nothing. */
class Unwinding {
  #steps: (() => Promise<void> | void)[] = []
  push(step: () => Promise<void> | void): void {
    this.#steps.push(step)
  }
  /** Runs all steps even when some fail; rejects with the first failure. */
  async run(): Promise<void> {
    const failures: unknown[] = []
    for (const step of this.#steps.splice(0).reverse()) {
      try {
        await step()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}

/**
 * Wires raft, storage and API together and starts them. The order is what makes a failed start leave no trace: first
 * the ports are taken, then the data directory is locked and opened (both fail before anything is written), and
 * certificates, kubeconfig and bootstrap objects are written last.
 *
 * @throws ListenError, StorageError (ERR_DATA_DIR, ERR_FORMAT, …), OptionsError, KubeconfigError
 */
export async function openControlPlane(
  settings: Settings,
  io: { readonly writeLog: (line: string) => void; readonly naming: Naming },
): Promise<RunningControlPlane> {
  const name = (setting: keyof Settings): string => settingName(setting, io.naming)
  const env = environment(settings.logLevel, io.writeLog)
  const startedMs = env.clock.monotonicMs()
  const phase = (name: string): void => env.log.debug({ ms: Math.round(env.clock.monotonicMs() - startedMs) }, name)
  const unwinding = new Unwinding()
  try {
    const dataDir = resolve(settings.dataDir)
    const kubeconfigPath = resolve(settings.kubeconfig ?? join(dataDir, 'kubeconfig'))

    const traces = await inspectDataDir(name('dataDir'), dataDir)
    if (settings.kubeconfig !== undefined) await assertReplaceable(name('kubeconfig'), kubeconfigPath)
    const secure = await listen({
      host: settings.bindAddress,
      port: settings.securePort,
      secure: true,
      settings: { host: name('bindAddress'), port: name('securePort') },
    })
    unwinding.push(() => close(secure, env))
    const plain =
      settings.httpPort === undefined
        ? undefined
        : await listen({
            host: '127.0.0.1',
            port: settings.httpPort,
            secure: false,
            settings: { host: name('bindAddress'), port: name('httpPort') },
          })
    if (plain !== undefined) unwinding.push(() => close(plain, env))
    const server = `https://${hostInUrl(reachable(settings.bindAddress))}:${secure.port}`
    phase('ports taken')

    // certificates are planned while the store opens, and written when it is open
    const planning = planPki({
      dataDir,
      bindAddress: settings.bindAddress,
      machineAddresses,
      nowMs: env.clock.wallMs(),
      loadIssuer: async () => {
        const { createIssuer } = await import('./certificates/issuer-node.ts')
        return createIssuer({ nowMs: env.clock.wallMs(), entropy: (length) => env.random.bytes(length) })
      },
    })
    planning.catch(() => {}) // awaited below; a failing store must not leave it unhandled
    // a file that cannot be merged into fails the start before anything is written
    await mergeKubeconfig(name('kubeconfig'), kubeconfigPath, { server, authority: '', certificate: '', key: '' })
    // what a first start has made is taken away again when it fails: under the store's lock, then the directories
    let kept = false
    unwinding.push(() => (kept ? undefined : traces.removeDirectories()))
    const store = await openStore(settings, dataDir, env, () => traces.remove())
    unwinding.push(() => (kept ? store.close() : store.discard()))
    phase('store open')
    const plan = await planning
    phase('certificates ready')

    const { pki } = plan
    const api = createApi({
      settings,
      env,
      store,
      serverAddress: `${hostInUrl(reachable(settings.bindAddress))}:${secure.port}`,
    })
    unwinding.push(() => api.close())
    await api.services.cache.ready
    phase('cache filled')

    await writePki(plan)
    const paths = pkiPaths(dataDir)
    const curlrc = curlrcText({
      authority: paths.authority.certificate,
      certificate: paths.admin.certificate,
      key: paths.admin.key,
    })
    const curlrcPath = join(dataDir, 'curlrc')
    if ((await readText(curlrcPath)) !== curlrc) await writePrivate(curlrcPath, curlrc)
    const starting = new AbortController()
    await bootstrap({
      services: api.services,
      handlerFor: api.handlerFor,
      signal: starting.signal,
      version: gitVersion(),
    })
    const controllers = startControllers(enabledControllers(settings.controllers), api.writes)
    unwinding.push(() => controllers.stop())
    // last, and read again: somebody else's file is touched only by a start that has succeeded
    await writeKubeconfig(env, name('kubeconfig'), kubeconfigPath, {
      server,
      authority: pki.authority.certificate,
      certificate: pki.admin.certificate,
      key: pki.admin.key,
    })
    // from here on others write too: nothing is taken away any more
    kept = true
    secure.setTls({
      certificate: pki.server.certificate,
      key: pki.server.key,
      clientAuthority: pki.authority.certificate,
    })
    secure.serve(api.dispatcher.handle)
    plain?.serve(api.dispatcher.handle)
    api.setReady(true)
    phase('ready')

    let stopping: Promise<void> | undefined
    return {
      server,
      http: plain === undefined ? undefined : `http://127.0.0.1:${plain.port}`,
      kubeconfig: kubeconfigPath,
      store,
      startMs: Math.round(env.clock.monotonicMs() - startedMs),
      stop() {
        stopping ??= stop({ api, listeners: plain === undefined ? [secure] : [secure, plain], env, unwinding })
        return stopping
      },
    }
  } catch (error) {
    await unwinding.run().catch((failure: unknown) => env.log.error({ failure }, 'cleaning up a failed start'))
    throw error
  }
}

/** What to write; undefined: the file is as it must be. @throws OptionsError when it cannot be merged into */
async function mergeKubeconfig(setting: string, path: string, entry: KubeconfigEntry): Promise<string | undefined> {
  try {
    return await kubeconfigText(await readText(path), entry)
  } catch (error) {
    if (error instanceof KubeconfigError) {
      const wayOut = `repair it, or name another file with ${setting}`
      throw new OptionsError(`${path} is left as it is, ${error.message}: ${wayOut}`)
    }
    throw new OptionsError(`the kubeconfig ${path} cannot be read: ${textOf(error)}`)
  }
}

async function writeKubeconfig(env: Env, setting: string, path: string, entry: KubeconfigEntry): Promise<void> {
  const text = await mergeKubeconfig(setting, path, entry)
  if (text === undefined) return
  try {
    await env.disk.makeDirectory(dirname(path))
    await writePrivate(path, text, { keepAccess: true })
  } catch (error) {
    throw new OptionsError(`the kubeconfig ${path} cannot be written: ${textOf(error)}`)
  }
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function environment(level: LogLevel, write: (line: string) => void): Env {
  // the logger needs a clock and the environment a logger: the clock comes from an environment of its own
  const { clock } = createNodeEnv({ log: createLogger({ level: 'silent', wallMs: () => 0, write }) })
  return createNodeEnv({ log: createLogger({ level, wallMs: () => clock.wallMs(), write }) })
}

function openStore(
  settings: Settings,
  dataDir: string,
  env: Env,
  onDiscard: () => Promise<void>,
): Promise<EmbeddedStore> {
  return openEmbeddedStore({
    directory: dataDir,
    env,
    replicas: settings.replicas,
    compaction: { intervalMs: settings.compactionIntervalMs },
    revive: true,
    onDiscard,
  })
}

interface Api {
  readonly writes: WriteServices
  readonly services: ApiServices & { readonly cache: { readonly ready: Promise<void> } }
  readonly dispatcher: Dispatcher
  readonly handlerFor: ReturnType<typeof handlerTable>
  setReady(ready: boolean): void
  /** Watches end cleanly. */
  endWatches(): void
  close(): Promise<void> | void
}

function createApi(options: {
  readonly settings: Settings
  readonly env: Env
  readonly store: EmbeddedStore
  readonly serverAddress: string
}): Api {
  const { env } = options
  const registry = createResourceRegistry({ resources: resources(), strategyFor })
  const { store, metric } = measureStore(options.store, { clock: env.clock, registry })
  const requests = new RequestMetrics({ clock: env.clock, registry })
  const cache = createObjectCache({ store, registry, env, log: env.log.child({ part: 'cache' }) })
  const responder = createResponder({ env, registry })
  const services = { env, store, cache, responder, registry }
  const read = createReadHandlers(services)
  const write = createWriteHandlers(services)
  const handlerFor = handlerTable({ read, write, responder, authorizer: builtInAuthorizer })
  let ready = false
  let stopping = false
  const everywhere = ['healthz', 'livez', 'readyz'] as const
  const started = (): string | undefined => (ready || stopping ? undefined : 'not finished')
  const checks: readonly HealthCheck[] = [
    { name: 'ping', on: everywhere, problem: () => undefined },
    { name: 'log', on: everywhere, problem: () => undefined },
    { name: 'etcd', on: everywhere, problem: storeHealth(env, options.store) },
    { name: 'informer-sync', on: ['readyz'], problem: started },
    { name: 'poststarthook/start-system-namespaces-controller', on: everywhere, problem: started },
    { name: 'shutdown', on: ['readyz'], problem: () => (stopping ? 'process is shutting down' : undefined) },
  ]
  const api = { groups: resourceGroups(), resources: resources() }
  const metrics = [...requests.all, metric, ...storedObjects(cache, registry, store), ...processMetrics()]
  const dispatcher = createDispatcher({
    env,
    registry,
    authenticators: [loopbackListener, clientCertificates, bearerTokens],
    authorizer: builtInAuthorizer,
    handlerFor,
    paths: createPaths({
      env,
      turns: responder.turns,
      checks,
      discovery: new DiscoveryPaths({ api, serverAddress: options.serverAddress }),
      api,
      metrics: () => metrics.map((each) => each.text()).join(''),
    }),
    metrics: requests,
    requestTimeoutMs: options.settings.requestTimeoutMs,
  })
  return {
    services,
    writes: write.services,
    dispatcher,
    handlerFor,
    setReady(now) {
      ready = now
      if (!now) stopping = true
    },
    endWatches: () => read.close(),
    close: () => cache.close(),
  }
}

/**
 * readyz fails at once, so that load balancers look elsewhere; no new connections or requests; watches end cleanly;
 * what is under way finishes, or is cut after shutdownGraceMs; then the store closes.
 */
async function stop(options: {
  readonly api: Api
  readonly listeners: readonly Listener[]
  readonly env: Env
  readonly unwinding: Unwinding
}): Promise<void> {
  const { api, env } = options
  api.setReady(false)
  api.dispatcher.refuse()
  for (const listener of options.listeners) void listener.drain()
  api.endWatches()
  await settleWithin(env, api.dispatcher.idle(), shutdownGraceMs)
  api.dispatcher.abort()
  await settleWithin(env, api.dispatcher.idle(), 500)
  await options.unwinding.run()
}

/** Waits for `work`, at most so long. */
async function settleWithin(env: Env, work: Promise<void>, limitMs: number): Promise<void> {
  let timer: Timer | undefined
  const limit = new Promise<void>((resolve) => (timer = env.scheduler.after(limitMs, resolve)))
  await Promise.race([work, limit])
  timer?.cancel()
}

async function close(listener: Listener, env: Env): Promise<void> {
  const drained = listener.drain()
  await settleWithin(env, drained, 250)
  listener.destroy()
  await drained
}

/** Where clients on this machine find a server that listens on all addresses. */
function reachable(bindAddress: string): string {
  if (bindAddress === '0.0.0.0') return '127.0.0.1'
  return bindAddress === '::' ? '::1' : bindAddress
}
