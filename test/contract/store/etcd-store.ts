import * as grpc from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import { StorageError, type StorageErrorCode } from '../../../storage/errors.ts'
import type {
  CallOptions,
  Compare,
  KeyValue,
  LeaseId,
  Op,
  OpResult,
  RangeRequest,
  RangeResult,
  Store,
  StoreStatus,
  TxnRequest,
  TxnResult,
  Watcher,
  WatchRequest,
  WatchSink,
} from '../../../storage/store.ts'
import { etcdProto } from './etcd-proto.ts'

/** Decoded messages: int64 as decimal strings, absent fields at their defaults. */
interface Wire {
  readonly [field: string]: unknown
}

const root = protobuf.parse(etcdProto, { keepCase: true }).root

const targets: Record<Compare['target'], { readonly code: number; readonly field: string }> = {
  version: { code: 0, field: 'version' },
  create: { code: 1, field: 'create_revision' },
  mod: { code: 2, field: 'mod_revision' },
  value: { code: 3, field: 'value' },
  lease: { code: 4, field: 'lease' },
}
const operators = { '=': 0, '>': 1, '<': 2, '!=': 3 } as const

/** etcd's texts are its error codes. */
const texts: readonly (readonly [RegExp, StorageErrorCode])[] = [
  [/required revision has been compacted/, 'ERR_COMPACTED'],
  [/required revision is a future revision/, 'ERR_FUTURE_REVISION'],
  [/key is not provided/, 'ERR_EMPTY_KEY'],
  [/duplicate key given/, 'ERR_DUPLICATE_KEY'],
  [/too many operations/, 'ERR_TOO_MANY_OPS'],
  [/request is too large|larger than max/, 'ERR_TOO_LARGE'],
  [/requested lease not found/, 'ERR_LEASE_NOT_FOUND'],
  [/lease already exists/, 'ERR_LEASE_EXISTS'],
  [/too large lease TTL/, 'ERR_LEASE_TTL_TOO_LARGE'],
]

/** A real etcd behind the Store interface: what the contract suite takes for the truth. */
export class EtcdStore implements Store {
  readonly #client: grpc.Client
  readonly #watchers = new Set<EtcdWatcher>()
  #revision = 0

  constructor(address: string) {
    this.#client = new grpc.Client(address, grpc.credentials.createInsecure(), {
      'grpc.max_receive_message_length': 64 * 1024 * 1024,
    })
  }

  ready(deadlineMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#client.waitForReady(Date.now() + deadlineMs, (error) => (error ? reject(error) : resolve()))
    })
  }

  async range(request: RangeRequest, _options: CallOptions): Promise<RangeResult> {
    const response = await this.#call('KV/Range', 'RangeRequest', 'RangeResponse', rangeMessage(request))
    return { ...rangeResult(response), revision: this.#header(response) }
  }

  async txn(request: TxnRequest, _options: CallOptions): Promise<TxnResult> {
    const response = await this.#call('KV/Txn', 'TxnRequest', 'TxnResponse', txnMessage(request))
    return txnResult(response, this.#header(response))
  }

  async currentRevision(options: CallOptions): Promise<number> {
    return (await this.range({ key: Uint8Array.of(0) }, options)).revision
  }

  watch(request: WatchRequest, sink: WatchSink): EtcdWatcher {
    const request$ = message('WatchRequest')
    const response$ = message('WatchResponse')
    const stream = this.#client.makeBidiStreamRequest<Wire, Wire>(
      '/etcdserverpb.Watch/Watch',
      (value) => encode(request$, value),
      (data) => decode(response$, data),
    )
    const watcher = new EtcdWatcher(stream, sink, () => this.#watchers.delete(watcher))
    this.#watchers.add(watcher)
    stream.write({
      create_request: {
        key: request.key,
        range_end: request.rangeEnd ?? new Uint8Array(0),
        start_revision: String(request.startRevision),
        prev_kv: request.prevKv,
      },
    })
    return watcher
  }

  async compact(request: { readonly revision: number; readonly physical: boolean }): Promise<void> {
    await this.#call('KV/Compact', 'CompactionRequest', 'CompactionResponse', {
      revision: String(request.revision),
      physical: request.physical,
    })
  }

  async leaseGrant(request: { readonly id?: LeaseId; readonly ttlSeconds: number }) {
    const response = await this.#call('Lease/LeaseGrant', 'LeaseGrantRequest', 'LeaseGrantResponse', {
      ID: String(request.id ?? 0n),
      TTL: String(request.ttlSeconds),
    })
    return { id: BigInt(String(response['ID'])), ttlSeconds: Number(response['TTL']) }
  }

  leaseKeepAlive(id: LeaseId): Promise<number> {
    return new Promise((resolve, reject) => {
      const stream = this.#client.makeBidiStreamRequest<Wire, Wire>(
        '/etcdserverpb.Lease/LeaseKeepAlive',
        (value) => encode(message('LeaseKeepAliveRequest'), value),
        (data) => decode(message('LeaseKeepAliveResponse'), data),
      )
      stream.on('error', (error) => reject(storageError(error)))
      stream.on('data', (response: Wire) => {
        const ttl = Number(response['TTL'])
        stream.end()
        if (ttl > 0) resolve(ttl)
        else reject(new StorageError('ERR_LEASE_NOT_FOUND', `lease ${id} does not exist`))
      })
      stream.write({ ID: String(id) })
    })
  }

  async leaseRevoke(id: LeaseId): Promise<void> {
    await this.#call('Lease/LeaseRevoke', 'LeaseRevokeRequest', 'LeaseRevokeResponse', { ID: String(id) })
  }

  async leaseTimeToLive(id: LeaseId, options: { readonly keys?: boolean }) {
    const response = await this.#call('Lease/LeaseTimeToLive', 'LeaseTimeToLiveRequest', 'LeaseTimeToLiveResponse', {
      ID: String(id),
      keys: options.keys === true,
    })
    const ttlSeconds = Number(response['TTL'])
    if (ttlSeconds === -1) throw new StorageError('ERR_LEASE_NOT_FOUND', `lease ${id} does not exist`)
    return {
      ttlSeconds,
      grantedTtlSeconds: Number(response['grantedTTL']),
      keys: response['keys'] as readonly Uint8Array[],
    }
  }

  /** What the last answer said; etcd tells neither its compact revision nor how many keys it has. */
  status(): StoreStatus {
    return { revision: this.#revision, compactRevision: 0, keyCount: 0 }
  }

  async close(): Promise<void> {
    for (const watcher of this.#watchers) watcher.cancel()
    this.#client.close()
  }

  #header(response: Wire): number {
    this.#revision = Number((response['header'] as Wire)['revision'])
    return this.#revision
  }

  #call(method: string, requestType: string, responseType: string, value: Wire): Promise<Wire> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest<Wire, Wire>(
        `/etcdserverpb.${method}`,
        (request) => encode(message(requestType), request),
        (data) => decode(message(responseType), data),
        value,
        (error, response) => {
          if (error !== null) reject(storageError(error))
          else if (response === undefined) reject(new Error(`${method} answered nothing`))
          else resolve(response)
        },
      )
    })
  }
}

export class EtcdWatcher implements Watcher {
  /** Resolves when etcd has taken the watch: from then on a compaction finds it there. */
  readonly created: Promise<void>
  #resolveCreated: () => void = () => undefined
  readonly #stream: grpc.ClientDuplexStream<Wire, Wire>
  readonly #sink: WatchSink
  readonly #ended: () => void
  #progress: NodeJS.Timeout | undefined
  #done = false

  constructor(stream: grpc.ClientDuplexStream<Wire, Wire>, sink: WatchSink, ended: () => void) {
    this.#stream = stream
    this.#sink = sink
    this.#ended = ended
    this.created = new Promise((resolve) => (this.#resolveCreated = resolve))
    stream.on('data', (response: Wire) => this.#receive(response))
    stream.on('error', (error) => this.#end(storageError(error)))
    stream.on('end', () => this.#end(undefined))
  }

  requestProgress(): void {
    // etcd drops a request that comes while the watch is behind, so clients ask again.
    const ask = () => this.#stream.write({ progress_request: {} })
    this.#progress ??= setInterval(ask, 100)
    ask()
  }

  cancel(): void {
    this.#end(undefined)
  }

  #receive(response: Wire): void {
    if (this.#done) return
    if (response['canceled'] === true) {
      const compactRevision = Number(response['compact_revision'])
      if (compactRevision > 0 || /compacted/.test(String(response['cancel_reason']))) {
        this.#end(new StorageError('ERR_COMPACTED', 'compacted', { compactRevision }))
      } else {
        this.#end(new StorageError('ERR_EMPTY_KEY', String(response['cancel_reason'])))
      }
      return
    }
    if (response['created'] === true) {
      this.#resolveCreated()
      return
    }
    const events = (response['events'] as readonly Wire[]).map((event) => {
      const type = Number(event['type']) === 1 ? ('delete' as const) : ('put' as const)
      const kv = keyValue(event['kv'] as Wire)
      const previous = event['prev_kv'] as Wire | null
      return previous === null ? { type, kv } : { type, kv, prevKv: keyValue(previous) }
    })
    if (events.length === 0) this.#stopAsking()
    this.#sink.onBatch({ revision: Number((response['header'] as Wire)['revision']), events })
  }

  #stopAsking(): void {
    clearInterval(this.#progress)
    this.#progress = undefined
  }

  #end(reason: StorageError | undefined): void {
    if (this.#done) return
    this.#done = true
    this.#resolveCreated()
    this.#stopAsking()
    this.#stream.cancel()
    this.#ended()
    this.#sink.onEnd(reason)
  }
}

function message(name: string): protobuf.Type {
  return root.lookupType(`trireme.etcd.${name}`)
}

function encode(type: protobuf.Type, value: Wire): Buffer {
  return Buffer.from(type.encode(type.fromObject(value)).finish())
}

function decode(type: protobuf.Type, data: Buffer): Wire {
  return type.toObject(type.decode(data), { longs: String, defaults: true, arrays: true, oneofs: true })
}

function storageError(error: Error): StorageError {
  const code = texts.find(([text]) => text.test(error.message))?.[1]
  return new StorageError(code ?? 'ERR_STOPPED', error.message, { cause: error })
}

function rangeMessage(request: RangeRequest): Wire {
  return {
    key: request.key,
    range_end: request.rangeEnd ?? new Uint8Array(0),
    revision: String(request.revision ?? 0),
    limit: String(request.limit ?? 0),
    keys_only: request.keysOnly === true,
    count_only: request.countOnly === true,
    serializable: request.serializable === true,
  }
}

function txnMessage(request: TxnRequest): Wire {
  return {
    compare: request.compare.map((compare) => ({
      key: compare.key,
      range_end: compare.rangeEnd ?? new Uint8Array(0),
      result: operators[compare.op],
      target: targets[compare.target].code,
      [targets[compare.target].field]: compare.target === 'value' ? compare.is : String(compare.is),
    })),
    success: request.success.map(opMessage),
    failure: request.failure.map(opMessage),
  }
}

function opMessage(op: Op): Wire {
  switch (op.type) {
    case 'range':
      return { request_range: rangeMessage(op) }
    case 'put':
      return {
        request_put: {
          key: op.key,
          value: op.value,
          lease: String(op.lease ?? 0n),
          prev_kv: op.prevKv === true,
        },
      }
    case 'delete':
      return {
        request_delete_range: {
          key: op.key,
          range_end: op.rangeEnd ?? new Uint8Array(0),
          prev_kv: op.prevKv === true,
        },
      }
    case 'txn':
      return { request_txn: txnMessage(op) }
  }
}

function keyValue(wire: Wire): KeyValue {
  return {
    key: wire['key'] as Uint8Array,
    value: wire['value'] as Uint8Array,
    createRevision: Number(wire['create_revision']),
    modRevision: Number(wire['mod_revision']),
    version: Number(wire['version']),
    lease: BigInt(String(wire['lease'])),
  }
}

function keyValues(wire: unknown): KeyValue[] {
  return (wire as readonly Wire[]).map(keyValue)
}

function rangeResult(wire: Wire): OpResult {
  return { kvs: keyValues(wire['kvs']), count: Number(wire['count']), more: wire['more'] === true, prevKvs: [] }
}

function txnResult(wire: Wire, revision: number): TxnResult {
  return {
    revision,
    succeeded: wire['succeeded'] === true,
    responses: (wire['responses'] as readonly Wire[]).map((response) => opResult(response, revision)),
  }
}

function opResult(wire: Wire, revision: number): OpResult {
  const none = { kvs: [], count: 0, more: false, prevKvs: [] }
  switch (wire['response']) {
    case 'response_range':
      return rangeResult(wire['response_range'] as Wire)
    case 'response_put': {
      const previous = (wire['response_put'] as Wire)['prev_kv'] as Wire | null
      return { ...none, prevKvs: previous === null ? [] : [keyValue(previous)] }
    }
    case 'response_delete_range': {
      const response = wire['response_delete_range'] as Wire
      return { ...none, count: Number(response['deleted']), prevKvs: keyValues(response['prev_kvs']) }
    }
    case 'response_txn':
      return { ...none, txn: txnResult(wire['response_txn'] as Wire, revision) }
    default:
      throw new Error(`unknown response ${String(wire['response'])}`)
  }
}
