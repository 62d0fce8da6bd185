import assert from 'node:assert/strict'
import test from 'node:test'
import { scheduleProblem, timeZoneProblem } from '../../../apiserver/validation/cron-schedule.ts'
import { validateCidr, validateIp } from '../../../apiserver/validation/ip-address.ts'
import { refusalsOf, updateRefusalsOf } from './refusals.ts'

const container = { name: 'a', image: 'a:1' }
const labels = { app: 'x' }
const template = { metadata: { labels }, spec: { containers: [container] } }
const selector = { matchLabels: labels }
const workload = { selector, template }

type Case = readonly [found: readonly string[], expected: readonly string[]]
function expectEach(cases: readonly Case[]): void {
  for (const [found, expected] of cases) assert.deepEqual(found, expected)
}

test('services are judged by their type', () => {
  const service = (spec: object): readonly string[] => refusalsOf('services', { spec })
  const ports = [{ port: 80 }]
  expectEach([
    [service({ ports }), []],
    [service({}), ['spec.ports: Required value']],
    [service({ clusterIP: 'None', clusterIPs: ['None'] }), []],
    [
      service({ type: 'NodePort', ports, clusterIP: 'None', clusterIPs: ['None'] }),
      ['spec.clusterIPs[0]: Invalid value: "None": may not be set to \'None\' for NodePort services'],
    ],
    [service({ type: 'ExternalName' }), ['spec.externalName: Required value']],
    [
      service({ type: 'Other', ports }),
      [
        'spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
      ],
    ],
    [
      service({
        ports: [
          { port: 0, targetPort: 'Bad_Name' },
          { port: 80, name: 'b', nodePort: 30000 },
        ],
      }),
      [
        'spec.ports[0].name: Required value',
        'spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
        'spec.ports[0].targetPort: Invalid value: "Bad_Name": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
        "spec.ports[1].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
      ],
    ],
    [
      service({ ports, externalTrafficPolicy: 'Local', loadBalancerClass: 'a/b' }),
      [
        "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
        'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services',
      ],
    ],
    [
      service({ ports, clusterIP: '10.96.0.5', clusterIPs: ['10.96.0.6'] }),
      ['spec.clusterIPs: Invalid value: ["10.96.0.6"]: first value must match `clusterIP`'],
    ],
    [
      service({ ports, externalIPs: ['127.0.0.1', 'x'] }),
      [
        'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
        'spec.externalIPs[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      ],
    ],
    [
      service({ ports, sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 90000 } } }),
      [
        'spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 90000: must be greater than 0 and less than 86400',
      ],
    ],
  ])
  const before = { spec: { ports, clusterIP: '10.96.0.5', clusterIPs: ['10.96.0.5'] } }
  const after = (spec: object): readonly string[] =>
    updateRefusalsOf('services', before, { spec: { ...before.spec, ...spec } })
  expectEach([
    [after({ clusterIP: '10.96.0.6' }), ['spec.clusterIPs[0]: Invalid value: ["10.96.0.6"]: may not change once set']],
    [after({ type: 'ExternalName', externalName: 'example.com' }), []],
  ])
})

test('a service whose type changes loses what only the old type needed', () => {
  const before = {
    spec: {
      type: 'LoadBalancer',
      ports: [{ port: 80, nodePort: 30000 }],
      clusterIP: '10.96.0.5',
      clusterIPs: ['10.96.0.5'],
    },
  }
  const after = {
    spec: { ...before.spec, type: 'ClusterIP', externalTrafficPolicy: 'Cluster', allocateLoadBalancerNodePorts: true },
  }
  assert.deepEqual(updateRefusalsOf('services', before, after), [])
})

test('workloads need a selector that fits, and counts that are none below zero', () => {
  const text = 'must be greater than or equal to 0'
  const deployment = (spec: object): readonly string[] =>
    refusalsOf('deployments.apps', { spec: { ...workload, ...spec } })
  expectEach([
    [deployment({}), []],
    [
      deployment({ replicas: -1, revisionHistoryLimit: -1 }),
      [`spec.replicas: Invalid value: -1: ${text}`, `spec.revisionHistoryLimit: Invalid value: -1: ${text}`],
    ],
    [
      deployment({ selector: { matchLabels: { app: 'y' } } }),
      ['spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`'],
    ],
    [deployment({ selector: {} }), ['spec.selector: Invalid value: {}: empty selector is invalid for deployment']],
    [
      deployment({ strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: '0%' } } }),
      ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0'],
    ],
    [
      deployment({ strategy: { rollingUpdate: { maxUnavailable: '101%' } } }),
      ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
    ],
    [
      deployment({ template: { ...template, spec: { ...template.spec, restartPolicy: 'Never' } } }),
      ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
    ],
    [
      refusalsOf('daemonsets.apps', {
        spec: { ...workload, updateStrategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } },
      }),
      ['spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero'],
    ],
    [
      refusalsOf('statefulsets.apps', {
        spec: { ...workload, serviceName: 's', updateStrategy: { type: 'Recreate' } },
      }),
      ['spec.updateStrategy: Invalid value: {"type":"Recreate"}: must be \'RollingUpdate\' or \'OnDelete\''],
    ],
  ])
  const change = (plural: string, spec: object): readonly string[] =>
    updateRefusalsOf(plural, { spec: workload }, { spec: { ...workload, ...spec } })
  const other = {
    selector: { matchLabels: { app: 'z' } },
    template: { ...template, metadata: { labels: { app: 'z' } } },
  }
  expectEach([
    [
      change('deployments.apps', other),
      ['spec.selector: Invalid value: {"matchLabels":{"app":"z"}}: field is immutable'],
    ],
    [
      change('statefulsets.apps', { serviceName: 'other' }),
      [
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
      ],
    ],
  ])
})

test('jobs end, and keep the selector that was made for them', () => {
  const once = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } }
  const job = (spec: object): readonly string[] =>
    refusalsOf('jobs.batch', { metadata: { name: 'j', uid: 'u' }, spec: { template: once, ...spec } })
  expectEach([
    [job({}), []],
    [job({ template }), ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"']],
    [
      job({ completionMode: 'Indexed', parallelism: 1 }),
      ['spec.completions: Required value: when completion mode is Indexed'],
    ],
    [
      job({ selector }),
      [
        'spec.selector: Invalid value: {"matchLabels":{"app":"x","batch.kubernetes.io/controller-uid":"u"}}: `selector` not auto-generated',
      ],
    ],
    [job({ backoffLimit: -1 }), ['spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0']],
  ])
  const before = { spec: { template: once, selector, manualSelector: true } }
  const after = { spec: { ...before.spec, template: { ...once, spec: { ...once.spec, nodeName: 'n' } } } }
  assert.match(
    updateRefusalsOf('jobs.batch', before, after)[0] ?? '',
    /^spec\.template: Invalid value: .*: field is immutable$/,
  )
})

test('schedules are what the cron library takes', () => {
  for (const good of [
    '* * * * *',
    '*/5 0 1,15 jan-MAR mon-fri',
    '0 0 1 1 0',
    '@hourly',
    '@every 1h30m',
    '5/10 * * * ?',
  ]) {
    assert.equal(scheduleProblem(good), undefined, good)
  }
  const bad: Readonly<Record<string, string>> = {
    '* * * *': 'expected exactly 5 fields, found 4: [* * * *]',
    '60 * * * *': 'end of range (60) above maximum (59): 60',
    '* * 0 * *': 'beginning of range (0) below minimum (1): 0',
    '5-1 * * * *': 'beginning of range (5) beyond end of range (1): 5-1',
    '*/0 * * * *': 'step of range should be a positive number: */0',
    '* * * * mo': 'failed to parse int from mo: strconv.Atoi: parsing "mo": invalid syntax',
    '1-2-3 * * * *': 'too many hyphens: 1-2-3',
    '1/2/3 * * * *': 'too many slashes: 1/2/3',
    '@sometimes': 'unrecognized descriptor: @sometimes',
    'TZ=UTC 0 * * * *': 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead',
  }
  for (const [schedule, problem] of Object.entries(bad)) assert.equal(scheduleProblem(schedule), problem)
  assert.equal(timeZoneProblem('Europe/Berlin'), undefined)
  assert.equal(timeZoneProblem('Mars/Olympus'), 'unknown time zone Mars/Olympus')
  assert.equal(timeZoneProblem('+02:00'), 'unknown time zone +02:00')
  const once = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } }
  const cron = (spec: object): readonly string[] =>
    refusalsOf('cronjobs.batch', { spec: { jobTemplate: { spec: { template: once } }, ...spec } })
  expectEach([
    [cron({ schedule: '@daily' }), []],
    [cron({}), ['spec.schedule: Required value']],
    [
      cron({ schedule: '@daily', timeZone: '', failedJobsHistoryLimit: -1 }),
      [
        'spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string',
        'spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0',
      ],
    ],
  ])
})

test('ingresses and network policies lead somewhere', () => {
  const ingress = (path: object, rule: object = {}): readonly string[] =>
    refusalsOf('ingresses.networking.k8s.io', { spec: { rules: [{ ...rule, http: { paths: [path] } }] } })
  const backend = { service: { name: 's', port: { number: 80 } } }
  const at = 'spec.rules[0].http.paths[0]'
  expectEach([
    [ingress({ path: '/', pathType: 'Prefix', backend }), []],
    [
      refusalsOf('ingresses.networking.k8s.io', { spec: {} }),
      ['spec: Invalid value: null: either `defaultBackend` or `rules` must be specified'],
    ],
    [ingress({ path: 'x', pathType: 'Exact', backend }), [`${at}.path: Invalid value: "x": must be an absolute path`]],
    [
      ingress({ path: '/a//b', pathType: 'Prefix', backend }),
      [`${at}.path: Invalid value: "/a//b": must not contain '//'`],
    ],
    [
      ingress({ path: '/', pathType: 'Other', backend }),
      [`${at}.pathType: Unsupported value: "Other": supported values: "Exact", "ImplementationSpecific", "Prefix"`],
    ],
    [
      ingress({ path: '/', pathType: 'Prefix', backend: {} }),
      [`${at}.backend: Invalid value: "": resource or service backend is required`],
    ],
    [
      ingress({ path: '/', pathType: 'Prefix', backend: { service: { name: 's' } } }),
      [`${at}.backend: Required value: port name or number is required`],
    ],
    [
      ingress({ path: '/', pathType: 'Prefix', backend }, { host: '10.0.0.1' }),
      ['spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address'],
    ],
    [ingress({ path: '/', pathType: 'Prefix', backend }, { host: '*.example.com' }), []],
    [
      refusalsOf('networkpolicies.networking.k8s.io', {
        spec: { podSelector: {}, ingress: [{ from: [{}], ports: [{ port: 80, endPort: 79 }] }] },
      }),
      [
        'spec.ingress[0].ports[0].endPort: Invalid value: 79: must be greater than or equal to `port`',
        'spec.ingress[0].from[0]: Required value: must specify a peer',
      ],
    ],
  ])
})

test('volumes and claims: what they are stays, and claims do not shrink', () => {
  const claim = (spec: object, status: object = {}): object => ({
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } }, ...spec },
    status,
  })
  const bound = { phase: 'Bound', capacity: { storage: '2Gi' } }
  const requests = (storage: string): object => ({ resources: { requests: { storage } } })
  expectEach([
    [refusalsOf('persistentvolumeclaims', claim({})), []],
    [
      refusalsOf(
        'persistentvolumeclaims',
        claim({ accessModes: ['ReadWriteOncePod', 'ReadWriteMany'], ...requests('0') }),
      ),
      [
        'spec.resources[storage]: Invalid value: "0": must be greater than zero',
        'spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
      ],
    ],
    [updateRefusalsOf('persistentvolumeclaims', claim({}, bound), claim(requests('3Gi'), bound)), []],
    [
      updateRefusalsOf('persistentvolumeclaims', claim({}, bound), claim(requests('1Gi'), bound)),
      ['spec.resources.requests.storage: Forbidden: field can not be less than status.capacity'],
    ],
    [
      updateRefusalsOf('persistentvolumeclaims', claim({}), claim({ accessModes: ['ReadOnlyMany'] })),
      [
        'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
      ],
    ],
    [
      refusalsOf('persistentvolumes', {
        spec: { capacity: { storage: '-1', cpu: '1' }, accessModes: ['ReadWriteOnce'] },
      }),
      [
        'spec.capacity: Unsupported value: {"storage":"-1","cpu":"1"}: supported values: "storage"',
        'spec.capacity[storage]: Invalid value: "-1": must be greater than zero',
        'spec: Required value: must specify a volume type',
      ],
    ],
    [
      updateRefusalsOf(
        'storageclasses.storage.k8s.io',
        { provisioner: 'a' },
        { provisioner: 'b', parameters: { c: 'd' } },
      ),
      [
        'parameters: Forbidden: updates to parameters are forbidden.',
        'provisioner: Forbidden: updates to provisioner are forbidden.',
      ],
    ],
  ])
})

test('quotas, limits, endpoints, nodes and roles are checked', () => {
  expectEach([
    [refusalsOf('resourcequotas', { spec: { hard: { 'requests.cpu': '1', 'count/pods': '5' } } }), []],
    [
      refusalsOf('resourcequotas', {
        spec: { hard: { pods: '1500m', cats: '1' }, scopes: ['Terminating', 'NotTerminating'] },
      }),
      [
        'spec.hard[pods]: Invalid value: "1500m": must be an integer',
        'spec.hard[cats]: Invalid value: "cats": must be a standard resource type or fully qualified',
        'spec.hard[cats]: Invalid value: "cats": must be a standard resource for quota',
        'spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes',
      ],
    ],
    [
      refusalsOf('limitranges', {
        spec: { limits: [{ type: 'Pod', min: { cpu: '2' }, max: { cpu: '1' } }, { type: 'Pod' }] },
      }),
      [
        'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
        'spec.limits[1].type: Duplicate value: "Pod"',
      ],
    ],
    [
      refusalsOf('endpoints', {
        subsets: [{ addresses: [{ ip: '169.254.1.1' }], ports: [{ port: 1 }, { port: 2, name: 'b' }] }],
      }),
      [
        'subsets[0].addresses[0].ip: Invalid value: "169.254.1.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
        'subsets[0].ports[0].name: Required value',
      ],
    ],
    [
      refusalsOf('nodes', {
        spec: {
          taints: [
            { key: 'a', effect: 'NoSchedule' },
            { key: 'a', effect: 'NoSchedule' },
          ],
        },
      }),
      [
        'metadata.taints[1]: Duplicate value: {"key":"a","effect":"NoSchedule"}: taints must be unique by key and effect pair',
      ],
    ],
    [
      refusalsOf('roles.rbac.authorization.k8s.io', { rules: [{ apiGroups: [''], resources: ['pods'], verbs: [] }] }),
      ['rules[0].verbs: Required value: verbs must contain at least one value'],
    ],
    [
      refusalsOf('clusterrolebindings.rbac.authorization.k8s.io', {
        roleRef: { kind: 'Role', name: '' },
        subjects: [{ kind: 'ServiceAccount', name: 's' }],
      }),
      [
        'roleRef.name: Required value',
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        'subjects[0].namespace: Required value',
      ],
    ],
    [
      refusalsOf('rolebindings.rbac.authorization.k8s.io', {
        roleRef: { kind: 'Role', name: 'r' },
        subjects: [{ kind: 'ServiceAccount', name: 's' }],
      }),
      [],
    ],
    [
      refusalsOf('poddisruptionbudgets.policy', { spec: { minAvailable: '150%', selector } }),
      ['spec.minAvailable: Invalid value: "150%": must not be greater than 100%'],
    ],
  ])
})

test('configuration data: keys, size, and what immutable means', () => {
  const big = 'x'.repeat(1024 * 1024)
  expectEach([
    [
      refusalsOf('configmaps', { data: { 'a/b': '', ok: big } }),
      [
        "data[a/b]: Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
      ],
    ],
    [refusalsOf('configmaps', { data: { a: big, b: 'x' } }), [': Too long: may not be more than 1048576 bytes']],
    [
      refusalsOf('secrets', { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': 'eA==' } }),
      ['data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": invalid character in JSON input'],
    ],
    [
      refusalsOf('secrets', { type: 'kubernetes.io/tls', data: {} }),
      ['data[tls.crt]: Required value', 'data[tls.key]: Required value'],
    ],
    [
      updateRefusalsOf('configmaps', { immutable: true, data: { a: '1' } }, { data: { a: '2' } }),
      [
        'immutable: Forbidden: field is immutable when `immutable` is set',
        'data: Forbidden: field is immutable when `immutable` is set',
      ],
    ],
    [updateRefusalsOf('secrets', { type: 'a' }, { type: 'b' }), ['type: Invalid value: "b": field is immutable']],
  ])
})

test('addresses and ranges are read as text', () => {
  const problems = (causes: readonly { readonly message: string }[]): string[] => causes.map(({ message }) => message)
  for (const good of ['10.0.0.1', '::1', '2001:db8::ffff', '::', '1:2:3:4:5:6:7:8', '64:ff9b::192.0.2.1']) {
    assert.deepEqual(problems(validateIp(good, 'ip')), [], good)
  }
  for (const bad of ['', '1.2.3', '1.2.3.256', ':::', '1::2::3', 'g::1', '1:2:3:4:5:6:7', '12345::']) {
    assert.equal(validateIp(bad, 'ip').length, 1, bad)
  }
  assert.deepEqual(problems(validateIp('010.0.0.1', 'ip')), ['Invalid value: "010.0.0.1": must not have leading 0s'])
  assert.deepEqual(problems(validateIp('::ffff:1.2.3.4', 'ip')), [
    'Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address',
  ])
  for (const good of ['10.0.0.0/8', '0.0.0.0/0', '10.9.8.128/25', '2001:db8::/64'])
    assert.deepEqual(validateCidr(good, 'c'), [])
  for (const bad of ['10.0.0.0', '10.0.0.0/33', '10.0.0.1/8', '10.9.8.129/25', 'x/8', '1.2.3.4/8/8']) {
    assert.equal(validateCidr(bad, 'c').length, 1, bad)
  }
})
