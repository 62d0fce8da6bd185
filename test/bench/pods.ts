export interface BenchPod {
  readonly metadata: { readonly name: string; readonly [field: string]: unknown }
  readonly [field: string]: unknown
}

/** Pods of about 2 KB as real controllers make them: what the figures in the README are measured with. */
export function benchPod(index: number, namespace = 'default'): BenchPod {
  const name = `bench-${String(index).padStart(6, '0')}`
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      labels: {
        app: `app-${index % 50}`,
        'pod-template-hash': `h${index % 97}`,
        tier: index % 2 === 0 ? 'front' : 'back',
      },
      annotations: {
        'example.test/checksum': `sha256-${String(index).repeat(12).slice(0, 48)}`,
        'example.test/owner': 'bench',
      },
    },
    spec: {
      terminationGracePeriodSeconds: 30,
      nodeSelector: { 'example.test/pool': `pool-${index % 5}` },
      containers: ['app', 'sidecar'].map((container, position) => ({
        name: container,
        image: `registry.example.test/team/${container}:1.${index % 20}.${position}`,
        args: ['--listen=0.0.0.0:8080', `--shard=${index % 16}`, '--log-level=info'],
        ports: [{ name: 'http', containerPort: 8080 + position }],
        env: [
          { name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } },
          { name: 'SHARD', value: String(index % 16) },
        ],
        resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '128Mi' } },
        readinessProbe: { httpGet: { path: '/ready', port: 8080 + position }, periodSeconds: 5 },
        volumeMounts: [{ name: 'config', mountPath: '/etc/app', readOnly: true }],
      })),
      volumes: [{ name: 'config', configMap: { name: `config-${index % 50}` } }],
      tolerations: [{ key: 'example.test/dedicated', operator: 'Equal', value: 'bench', effect: 'NoSchedule' }],
    },
  }
}
