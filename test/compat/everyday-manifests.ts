/** One of each kind that people apply daily; names start with "everyday". */
export const everydayManifests = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: everyday-config
data:
  greeting: hello
  file.conf: |
    a = 1
    b = 2
---
apiVersion: v1
kind: Secret
metadata:
  name: everyday-secret
type: Opaque
data:
  password: czNjcmV0
---
apiVersion: v1
kind: Pod
metadata:
  name: everyday-pod
  labels: { app: everyday }
spec:
  containers:
    - name: app
      image: example.test/app:1
      ports: [{ containerPort: 8080 }]
      resources:
        requests: { cpu: 100m, memory: 64Mi }
        limits: { memory: 128Mi }
      env:
        - name: GREETING
          valueFrom: { configMapKeyRef: { name: everyday-config, key: greeting } }
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: everyday-deployment
spec:
  replicas: 3
  selector: { matchLabels: { app: everyday } }
  template:
    metadata:
      labels: { app: everyday }
    spec:
      containers:
        - name: app
          image: example.test/app:1
          readinessProbe: { httpGet: { path: /ready, port: 8080 } }
---
apiVersion: v1
kind: Service
metadata:
  name: everyday-service
spec:
  selector: { app: everyday }
  ports: [{ port: 80, targetPort: 8080 }]
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: everyday-cronjob
spec:
  schedule: '*/5 * * * *'
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: job
              image: example.test/job:1
              command: [echo, hello]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: everyday-role
rules:
  - apiGroups: ['']
    resources: [pods]
    verbs: [get, list, watch]
`
