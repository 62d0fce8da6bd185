import assert from 'node:assert/strict'
import test from 'node:test'
import protobuf from 'protobufjs'
import {
  decodeEnvelope,
  decodeJson,
  decodeProtobuf,
  encodeEnvelope,
  encodeJsonText,
  encodeProtobuf,
  typeDescriptor,
} from '../../../schemas/index.ts'

/**
 * A second opinion on the bytes: definitions of a few kinds written down here, encoded by protobufjs' own reflection.
 * Proto2, so that a given zero is written and an absent field is not.
 */
const { root } = protobuf.parse(
  `syntax = "proto2";
  message Time { optional int64 seconds = 1; optional int32 nanos = 2; }
  message Quantity { optional string string = 1; }
  message IntOrString { optional int64 type = 1; optional int32 intVal = 2; optional string strVal = 3; }
  message Owner { optional string kind = 1; optional string name = 3; optional string uid = 4; optional string apiVersion = 5;
    optional bool controller = 6; }
  message FieldsV1 { optional bytes Raw = 1; }
  message Managed { optional string manager = 1; optional string operation = 2; optional string apiVersion = 3;
    optional Time time = 4; optional string fieldsType = 6; optional FieldsV1 fieldsV1 = 7; optional string subresource = 8; }
  message Meta { optional string name = 1; optional string generateName = 2; optional string namespace = 3;
    optional string selfLink = 4; optional string uid = 5; optional string resourceVersion = 6; optional int64 generation = 7;
    optional Time creationTimestamp = 8; optional Time deletionTimestamp = 9; map<string, string> labels = 11;
    map<string, string> annotations = 12; repeated Owner ownerReferences = 13; repeated string finalizers = 14;
    repeated Managed managedFields = 17; }
  message NamespaceSpec { repeated string finalizers = 1; }
  message NamespaceStatus { optional string phase = 1; }
  message Namespace { optional Meta metadata = 1; optional NamespaceSpec spec = 2; optional NamespaceStatus status = 3; }
  message Resources { map<string, Quantity> limits = 1; map<string, Quantity> requests = 2; }
  message HttpGet { optional string path = 1; optional IntOrString port = 2; optional string host = 3; optional string scheme = 4; }
  message Handler { optional HttpGet httpGet = 2; }
  message Probe { optional Handler handler = 1; optional int32 initialDelaySeconds = 2; optional int32 timeoutSeconds = 3;
    optional int32 periodSeconds = 4; optional int32 successThreshold = 5; optional int32 failureThreshold = 6; }
  message Env { optional string name = 1; optional string value = 2; optional EnvSource valueFrom = 3; }
  message EnvSource { optional KeySelector secretKeyRef = 4; }
  message LocalRef { optional string name = 1; }
  message KeySelector { optional LocalRef ref = 1; optional string key = 2; optional bool optional = 3; }
  message Port { optional string name = 1; optional int32 hostPort = 2; optional int32 containerPort = 3;
    optional string protocol = 4; optional string hostIP = 5; }
  message Container { optional string name = 1; optional string image = 2; repeated string command = 3; repeated string args = 4;
    optional string workingDir = 5; repeated Port ports = 6; repeated Env env = 7; optional Resources resources = 8;
    optional Probe livenessProbe = 10; optional string terminationMessagePath = 13; optional string imagePullPolicy = 14;
    optional bool stdin = 16; optional bool stdinOnce = 17; optional bool tty = 18; optional string terminationMessagePolicy = 20; }
  message EmptyDir { optional string medium = 1; optional Quantity sizeLimit = 2; }
  message Source { optional EmptyDir emptyDir = 2; }
  message Volume { optional string name = 1; optional Source source = 2; }
  message PodSpec { repeated Volume volumes = 1; repeated Container containers = 2; optional string restartPolicy = 3;
    optional int64 terminationGracePeriodSeconds = 4; map<string, string> nodeSelector = 7; }
  message Pod { optional Meta metadata = 1; optional PodSpec spec = 2; }
  message Template { optional Meta metadata = 1; optional PodSpec spec = 2; }
  message Selector { map<string, string> matchLabels = 1; }
  message Rolling { optional IntOrString maxUnavailable = 1; optional IntOrString maxSurge = 2; }
  message Strategy { optional string type = 1; optional Rolling rollingUpdate = 2; }
  message DeploymentSpec { optional int32 replicas = 1; optional Selector selector = 2; optional Template template = 3;
    optional Strategy strategy = 4; optional int32 minReadySeconds = 5; optional bool paused = 7; }
  message Deployment { optional Meta metadata = 1; optional DeploymentSpec spec = 2; }
  message Secret { optional Meta metadata = 1; map<string, bytes> data = 2; optional string type = 3; map<string, string> stringData = 4; }
  message Ref { optional string kind = 1; optional string namespace = 2; optional string name = 3; }
  message EventSource { optional string component = 1; optional string host = 2; }
  message Series { optional int32 count = 1; optional Time lastObservedTime = 2; }
  message Event { optional Meta metadata = 1; optional Ref involvedObject = 2; optional string reason = 3; optional string message = 4;
    optional EventSource source = 5; optional Time firstTimestamp = 6; optional Time lastTimestamp = 7; optional int32 count = 8;
    optional string type = 9; optional Time eventTime = 10; optional Series series = 11; optional string action = 12; }`,
  { keepCase: true },
)

function bytes(message: string, value: object): Uint8Array {
  const type = root.lookupType(message)
  return type.encode(type.fromObject(value)).finish()
}

const core = 'io.k8s.api.core.v1'

function same(message: string, typeName: string, wire: object, json: object): void {
  const type = typeDescriptor(typeName)
  const decoded = decodeProtobuf(bytes(message, wire), type)
  const expected = decodeJson(Buffer.from(JSON.stringify(json)), type)
  assert.deepEqual(expected.problems, [])
  assert.equal(encodeJsonText(decoded, type), encodeJsonText(expected.object, type))
  // What we write ourselves reads back through the definitions above.
  const back = root.lookupType(message).decode(encodeProtobuf(expected.object, type))
  assert.equal(
    encodeJsonText(decodeProtobuf(root.lookupType(message).encode(back).finish(), type), type),
    encodeJsonText(expected.object, type),
  )
}

// 2026-11-30T05:20:00Z
const seconds = 1_796_016_000

test('the bytes kubectl sends for a namespace are the namespace', () => {
  // creationTimestamp is an empty message: Go's zero time.
  const wire = {
    metadata: {
      name: 'sea',
      generateName: '',
      namespace: '',
      selfLink: '',
      uid: '',
      resourceVersion: '',
      generation: 0,
      creationTimestamp: {},
    },
    spec: {},
    status: { phase: '' },
  }
  same('Namespace', `${core}.Namespace`, wire, { metadata: { name: 'sea' } })
  // Written as Go writes it, byte for byte.
  const object = decodeProtobuf(bytes('Namespace', wire), typeDescriptor(`${core}.Namespace`))
  assert.deepEqual(
    Buffer.from(encodeProtobuf(object, typeDescriptor(`${core}.Namespace`))),
    Buffer.from(bytes('Namespace', wire)),
  )
})

test('metadata with owners, managed fields and maps', () => {
  const meta = {
    name: 'sea',
    uid: 'u',
    resourceVersion: '7',
    generation: 9_007_199_254_740_991,
    creationTimestamp: { seconds, nanos: 0 },
    labels: { b: '2', a: '1', __proto__x: 'ok', constructor: 'c' },
    finalizers: ['kubernetes', ''],
    ownerReferences: [{ kind: 'Pod', name: 'p', uid: 'x', apiVersion: 'v1', controller: true }],
    managedFields: [
      {
        manager: 'kubectl',
        operation: 'Update',
        apiVersion: 'v1',
        time: { seconds, nanos: 0 },
        fieldsType: 'FieldsV1',
        fieldsV1: { Raw: Buffer.from('{"f:metadata":{}}') },
      },
    ],
  }
  const [managed] = meta.managedFields
  same(
    'Namespace',
    `${core}.Namespace`,
    { metadata: meta, spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } },
    {
      metadata: {
        ...meta,
        creationTimestamp: '2026-11-30T05:20:00Z',
        managedFields: [{ ...managed, time: '2026-11-30T05:20:00Z', fieldsV1: { 'f:metadata': {} } }],
      },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    },
  )
})

test('a pod with quantities, probes, ports by name, embedded structs', () => {
  const container = { name: 'main', image: 'example.com/tiny:1', command: ['a', 'b'] }
  const pod = { metadata: { name: 'p' }, spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 0 } }
  same(
    'Pod',
    `${core}.Pod`,
    {
      ...pod,
      spec: {
        ...pod.spec,
        volumes: [{ name: 'v', source: { emptyDir: { medium: '', sizeLimit: { string: '1024Mi' } } } }],
        containers: [
          {
            ...container,
            ports: [{ name: '', hostPort: 0, containerPort: 80, protocol: 'TCP' }],
            env: [
              { name: 'A', value: '', valueFrom: { secretKeyRef: { ref: { name: 's' }, key: 'k', optional: false } } },
            ],
            resources: {
              limits: { cpu: { string: '1000m' }, memory: { string: '0.5Gi' } },
              requests: { cpu: { string: '100m' } },
            },
            livenessProbe: {
              handler: { httpGet: { path: '/', port: { type: 1, intVal: 0, strVal: 'web' } } },
              periodSeconds: 5,
            },
          },
          {
            name: 'side',
            livenessProbe: { handler: { httpGet: { port: { type: 0, intVal: -1, strVal: 'ignored' } } } },
          },
        ],
      },
    },
    {
      ...pod,
      spec: {
        ...pod.spec,
        volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Gi' } }],
        containers: [
          {
            ...container,
            ports: [{ containerPort: 80, protocol: 'TCP' }],
            env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: false } } }],
            resources: { limits: { cpu: '1', memory: '512Mi' }, requests: { cpu: '100m' } },
            livenessProbe: { httpGet: { path: '/', port: 'web' }, periodSeconds: 5 },
          },
          { name: 'side', livenessProbe: { httpGet: { port: -1 } } },
        ],
      },
    },
  )
})

test('a deployment: pointers to zero stay, structs that are empty go', () => {
  same(
    'Deployment',
    'io.k8s.api.apps.v1.Deployment',
    {
      metadata: { name: 'd' },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'd' } },
        template: { metadata: { labels: { app: 'd' } }, spec: {} },
        strategy: {
          type: 'RollingUpdate',
          rollingUpdate: { maxUnavailable: { type: 1, strVal: '25%' }, maxSurge: { type: 0, intVal: 0 } },
        },
        minReadySeconds: 0,
        paused: false,
      },
    },
    {
      metadata: { name: 'd' },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'd' } },
        template: { metadata: { labels: { app: 'd' } } },
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: 0 } },
      },
    },
  )
})

test('a secret: bytes are base64 in objects, empty ones too', () => {
  const text = Buffer.from('hush\x00\xff', 'latin1')
  same(
    'Secret',
    `${core}.Secret`,
    { metadata: { name: 's' }, data: { a: text, b: Buffer.alloc(0) }, type: 'Opaque', stringData: { c: 'd' } },
    { metadata: { name: 's' }, data: { a: text.toString('base64'), b: '' }, type: 'Opaque', stringData: { c: 'd' } },
  )
})

test('an event: whole seconds, microseconds, times before 1970', () => {
  const event = { metadata: { name: 'e' }, reason: 'R', count: 2 }
  same(
    'Event',
    `${core}.Event`,
    {
      ...event,
      involvedObject: { kind: 'Pod', name: 'p' },
      firstTimestamp: { seconds: -1, nanos: 0 },
      // Go keeps whole seconds of a Time, whatever else is sent.
      lastTimestamp: { seconds, nanos: 999_999_999 },
      eventTime: { seconds, nanos: 123_456_789 },
      series: { count: 3, lastObservedTime: { seconds: -1, nanos: 999_999_000 } },
    },
    {
      ...event,
      involvedObject: { kind: 'Pod', name: 'p' },
      firstTimestamp: '1969-12-31T23:59:59Z',
      lastTimestamp: '2026-11-30T05:20:00Z',
      eventTime: '2026-11-30T05:20:00.123456Z',
      series: { count: 3, lastObservedTime: '1969-12-31T23:59:59.999999Z' },
    },
  )
})

test('an envelope is four bytes, type meta, the message, and two empty strings', () => {
  const bytes = encodeEnvelope({ apiVersion: 'v1', kind: 'Namespace', raw: Buffer.from('0a00', 'hex') })
  assert.equal(
    Buffer.from(bytes).toString('hex'),
    `6b3873000a0f0a0276311209${Buffer.from('Namespace').toString('hex')}12020a001a002200`,
  )
  const opened = decodeEnvelope(bytes)
  assert.deepEqual(
    [opened.apiVersion, opened.kind, Buffer.from(opened.raw).toString('hex')],
    ['v1', 'Namespace', '0a00'],
  )
})
