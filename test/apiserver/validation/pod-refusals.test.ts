import assert from 'node:assert/strict'
import test from 'node:test'
import { refusalsOf, updateRefusalsOf } from './refusals.ts'

const container = { name: 'a', image: 'a:1' }
const pod = (spec: object): readonly string[] => refusalsOf('pods', { spec: { containers: [container], ...spec } })
const inContainer = (fields: object, spec: object = {}): readonly string[] =>
  pod({ containers: [{ ...container, ...fields }], ...spec })

function expectEach(cases: readonly (readonly [found: readonly string[], expected: readonly string[]])[]): void {
  for (const [found, expected] of cases) assert.deepEqual(found, expected)
}

test('a plain pod is fine, and so is everything at the edge of its range', () => {
  expectEach([
    [pod({}), []],
    [
      pod({ securityContext: { runAsUser: 0, runAsGroup: 2147483647, fsGroup: 2147483647, supplementalGroups: [0] } }),
      [],
    ],
    [inContainer({ ports: [{ containerPort: 65535, hostPort: 1, name: 'a-1' }] }), []],
    [inContainer({ env: [{ name: '9 any!thing', value: 'x' }] }), []],
    [inContainer({ resources: { limits: { cpu: '1', 'example.com/gpu': '2' } } }), []],
    [inContainer({ restartPolicy: 'Never', restartPolicyRules: [] }), []],
  ])
})

test('ids lie between 0 and 2147483647', () => {
  const text = 'must be between 0 and 2147483647, inclusive'
  expectEach([
    [
      pod({ securityContext: { runAsUser: -1, runAsGroup: 2147483648, fsGroup: -5, supplementalGroups: [1, -2] } }),
      [
        `spec.securityContext.fsGroup: Invalid value: -5: ${text}`,
        `spec.securityContext.runAsUser: Invalid value: -1: ${text}`,
        `spec.securityContext.runAsGroup: Invalid value: 2147483648: ${text}`,
        `spec.securityContext.supplementalGroups[1]: Invalid value: -2: ${text}`,
      ],
    ],
    [
      refusalsOf(
        'pods',
        '{"spec":{"containers":[{"name":"a","image":"a"}],"securityContext":{"runAsUser":9007199254740993}}}',
      ),
      [`spec.securityContext.runAsUser: Invalid value: 9007199254740993: ${text}`],
    ],
    [
      inContainer({ securityContext: { runAsUser: -1 } }),
      [`spec.containers[0].securityContext.runAsUser: Invalid value: -1: ${text}`],
    ],
    [
      inContainer({ securityContext: { seccompProfile: { type: 'Localhost' } } }),
      [
        'spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost',
      ],
    ],
  ])
})

test('containers need names, images and sound ports', () => {
  expectEach([
    [pod({ containers: [] }), ['spec.containers: Required value']],
    [
      pod({ containers: [{}] }),
      ['spec.containers[0].name: Required value', 'spec.containers[0].image: Required value'],
    ],
    [
      pod({ containers: [container, container], initContainers: [container] }),
      ['spec.containers[1].name: Duplicate value: "a"', 'spec.initContainers[0].name: Duplicate value: "a"'],
    ],
    [
      inContainer({ image: ' a:1' }),
      ['spec.containers[0].image: Invalid value: " a:1": must not have leading or trailing whitespace'],
    ],
    [
      inContainer({ ports: [{ containerPort: 70000, hostPort: -1, name: 'Much-Too-Long-Name' }] }),
      [
        'spec.containers[0].ports[0].name: Invalid value: "Much-Too-Long-Name": must be no more than 15 bytes',
        'spec.containers[0].ports[0].name: Invalid value: "Much-Too-Long-Name": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
        'spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive',
        'spec.containers[0].ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive',
      ],
    ],
    [
      inContainer({
        ports: [
          { containerPort: 1, hostPort: 8 },
          { containerPort: 2, hostPort: 8 },
        ],
      }),
      ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//8"'],
    ],
    [
      inContainer({ imagePullPolicy: 'Sometimes' }),
      [
        'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"',
      ],
    ],
    [
      pod({ restartPolicy: 'x' }),
      ['spec.restartPolicy: Unsupported value: "x": supported values: "Always", "OnFailure", "Never"'],
    ],
  ])
})

test('probes have one handler and thresholds that make sense', () => {
  const exec = { command: ['true'] }
  expectEach([
    [
      inContainer({ livenessProbe: { exec, successThreshold: 2, periodSeconds: -1 } }),
      [
        'spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0',
        'spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1',
      ],
    ],
    [inContainer({ readinessProbe: { exec, successThreshold: 2 } }), []],
    [
      inContainer({ readinessProbe: { exec, terminationGracePeriodSeconds: 1 } }),
      [
        'spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes',
      ],
    ],
    [
      inContainer({ startupProbe: { exec, tcpSocket: { port: 1 } } }),
      ['spec.containers[0].startupProbe.tcpSocket: Forbidden: may not specify more than 1 handler type'],
    ],
    [
      inContainer({ livenessProbe: {} }),
      ['spec.containers[0].livenessProbe: Required value: must specify a handler type'],
    ],
    [
      inContainer({ livenessProbe: { httpGet: { port: 0 } } }),
      ['spec.containers[0].livenessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive'],
    ],
    [
      inContainer({ lifecycle: { preStop: { exec: { command: [] } } } }),
      ['spec.containers[0].lifecycle.preStop.exec.command: Required value'],
    ],
    [
      pod({ initContainers: [{ name: 'i', image: 'i', livenessProbe: { exec } }] }),
      [
        'spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always',
      ],
    ],
    [pod({ initContainers: [{ name: 'i', image: 'i', restartPolicy: 'Always', livenessProbe: { exec } }] }), []],
  ])
})

test('volumes have names and one source; mounts name a volume that is there', () => {
  expectEach([
    [
      inContainer({ volumeMounts: [{ name: 'v', mountPath: '/v' }] }),
      ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
    ],
    [
      inContainer(
        {
          volumeMounts: [
            { name: 'v', mountPath: '/v' },
            { name: 'v', mountPath: '/v', subPath: '../x' },
          ],
        },
        { volumes: [{ name: 'v', emptyDir: {} }] },
      ),
      [
        'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/v": must be unique',
        'spec.containers[0].volumeMounts.subPath: Invalid value: "../x": must not contain \'..\'',
      ],
    ],
    [
      pod({ volumes: [{ name: 'v' }, { name: 'v' }, { emptyDir: {}, secret: {} }] }),
      [
        'spec.volumes[1].name: Duplicate value: "v"',
        'spec.volumes[2].secret: Forbidden: may not specify more than 1 volume type',
        'spec.volumes[2].name: Required value',
      ],
    ],
    [
      pod({ volumes: [{ name: 'v', secret: { defaultMode: 512, items: [{ key: 'k', path: '/abs' }] } }] }),
      [
        'spec.volumes[0].secret.secretName: Required value',
        'spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive',
        'spec.volumes[0].secret.items[0].path: Invalid value: "/abs": must be a relative path',
      ],
    ],
    [
      pod({
        serviceAccountName: 's',
        volumes: [
          { name: 'v', projected: { sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 1 } }] } },
        ],
      }),
      [
        'spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes',
      ],
    ],
  ])
})

test('environment variables have a name and one source', () => {
  expectEach([
    [
      inContainer({ env: [{ name: '' }, { name: 'a=b' }] }),
      [
        'spec.containers[0].env[0].name: Required value',
        'spec.containers[0].env[1].name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than \'=\'',
      ],
    ],
    [
      inContainer({ env: [{ name: 'a', value: 'x', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] }),
      ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
    ],
    [
      inContainer({ env: [{ name: 'a', valueFrom: {} }] }),
      [
        'spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`',
      ],
    ],
    [inContainer({ env: [{ name: 'a', valueFrom: { fieldRef: { fieldPath: "metadata.labels['a/b']" } } }] }), []],
    [
      inContainer({ env: [{ name: 'a', valueFrom: { fieldRef: { fieldPath: 'spec.x' } } }] }),
      [
        'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.x": error converting fieldPath: field label not supported: spec.x',
      ],
    ],
  ])
})

test('requests stay within limits, and resources have known names', () => {
  const resources = (requests: object, limits: object): readonly string[] =>
    inContainer({ resources: { requests, limits } })
  const at = 'spec.containers[0].resources'
  expectEach([
    [
      resources({ cpu: '2' }, { cpu: '1500m' }),
      [`${at}.requests: Invalid value: "2": must be less than or equal to cpu limit of 1500m`],
    ],
    [
      resources({ 'example.com/gpu': '1' }, { 'example.com/gpu': '2' }),
      [`${at}.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2`],
    ],
    [
      resources({}, { 'example.com/gpu': '500m' }),
      [
        `${at}.limits[example.com/gpu]: Invalid value: "500m": must be an integer`,
        `${at}.requests[example.com/gpu]: Invalid value: "500m": must be an integer`,
      ],
    ],
    [
      resources({ memory: '-1' }, {}),
      [`${at}.requests[memory]: Invalid value: "-1": must be greater than or equal to 0`],
    ],
    [
      resources({ gpu: '1' }, {}),
      [
        `${at}.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified`,
        `${at}.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers`,
      ],
    ],
  ])
})

test('where a pod may run is said correctly', () => {
  expectEach([
    [
      pod({
        tolerations: [
          { key: 'a', operator: 'Exists', value: 'x' },
          { operator: 'Gt', key: 'b', value: '1' },
        ],
      }),
      [
        'spec.tolerations[0].operator: Invalid value: "x": value must be empty when `operator` is \'Exists\'',
        'spec.tolerations[1].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"',
      ],
    ],
    [
      pod({ topologySpreadConstraints: [{ maxSkew: 0, topologyKey: '', whenUnsatisfiable: 'DoNotSchedule' }] }),
      [
        'spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero',
        'spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty',
      ],
    ],
    [
      pod({
        affinity: {
          nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } },
          podAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 101, podAffinityTerm: { topologyKey: 'k' } }],
          },
        },
      }),
      [
        'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term',
        'spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100',
      ],
    ],
    [pod({ dnsPolicy: 'None' }), ['spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None']],
    [
      pod({ hostAliases: [{ ip: '1.2.3', hostnames: ['ok'] }] }),
      ['spec.hostAliases[0].ip: Invalid value: "1.2.3": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
    ],
    [
      pod({ nodeName: 'n', schedulingGates: [{ name: 'g' }] }),
      ['spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared'],
    ],
  ])
})

test('of a running pod only little may change', () => {
  const before = {
    spec: {
      containers: [container],
      nodeName: 'n',
      activeDeadlineSeconds: 10,
      tolerations: [{ key: 'a', operator: 'Exists' }],
    },
  }
  const after = (spec: object): readonly string[] =>
    updateRefusalsOf('pods', before, { spec: { ...before.spec, ...spec } })
  const immutable =
    'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'
  expectEach([
    [after({}), []],
    [after({ containers: [{ ...container, image: 'a:2' }], activeDeadlineSeconds: 5 }), []],
    [
      after({
        tolerations: [
          { key: 'a', operator: 'Exists' },
          { key: 'b', operator: 'Exists' },
        ],
      }),
      [],
    ],
    [
      after({ tolerations: [] }),
      ['spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds'],
    ],
    [
      after({ activeDeadlineSeconds: 11 }),
      ['spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous value'],
    ],
    [
      after({ containers: [container, { ...container, name: 'b' }] }),
      ['spec.containers: Forbidden: pod updates may not add or remove containers'],
    ],
    [after({ nodeName: 'm' }), [immutable]],
    [after({ containers: [{ ...container, command: ['x'] }] }), [immutable]],
  ])
})

test('behind a scheduling gate nodes can be narrowed down, not exchanged', () => {
  const gated = { spec: { containers: [container], schedulingGates: [{ name: 'g' }], nodeSelector: { a: '1' } } }
  const after = (spec: object): readonly string[] =>
    updateRefusalsOf('pods', gated, { spec: { ...gated.spec, ...spec } })
  const term = (key: string): object => ({ matchExpressions: [{ key, operator: 'Exists' }] })
  const affinity = {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term('k')] } },
  }
  expectEach([
    [after({ nodeSelector: { a: '1', b: '2' }, affinity }), []],
    [
      after({ nodeSelector: { a: '2' } }),
      [
        'spec.nodeSelector: Invalid value: {"a":"2"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)',
      ],
    ],
    [after({ schedulingGates: [] }), []],
    [
      after({ schedulingGates: [{ name: 'g' }, { name: 'h' }] }),
      ["spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'h'"],
    ],
  ])
})
