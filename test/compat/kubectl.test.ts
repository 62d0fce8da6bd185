/** Real kubectl, oldest, middle and newest supported, does what people do with it daily; every command exits 0. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { type ControlPlaneProcess, startProcess } from '../control-plane.ts'
import { findProgram, testWith } from '../external.ts'
import { everydayManifests } from './everyday-manifests.ts'

const versions = ['1.27', '1.30', '1.33'] as const

/** A command that has not ended by then is killed, and its test fails with what it had said: far above any normal run. */
const commandLimitMs = 90_000

let plane: ControlPlaneProcess
let work: string

before(async () => {
  plane = await startProcess()
  work = mkdtempSync(join(tmpdir(), 'trireme-kubectl-'))
  writeFileSync(join(work, 'everyday.yaml'), everydayManifests)
})

after(async () => {
  assert.equal(await plane.stop(), 0)
  rmSync(work, { recursive: true, force: true })
})

interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

for (const version of versions) {
  const program = {
    name: `kubectl ${version}`,
    path: findProgram(`kubectl.${version}`, 'kubectl'),
    install: `install kubectl ${version} as kubectl.${version} on PATH`,
  }
  const namespace = `everyday-${version.replace('.', '-')}`

  const start = (path: string, args: readonly string[], input?: string, variables: Record<string, string> = {}) => {
    const child = spawn(path, args, {
      env: {
        ...process.env,
        KUBECONFIG: plane.kubeconfig,
        HOME: work,
        KUBECACHEDIR: join(work, version),
        ...variables,
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    let stdout = ''
    let stderr = ''
    const watchers: (() => void)[] = []
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      for (const check of watchers) check()
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.stdin.end(input ?? '')
    const limit = setTimeout(() => {
      stderr += `killed: not done after ${commandLimitMs / 1000} s`
      child.kill('SIGKILL')
    }, commandLimitMs)
    const ended = new Promise<Run>((resolve) =>
      child.once('close', (code) => {
        clearTimeout(limit)
        resolve({ code, stdout, stderr })
      }),
    )
    return {
      child,
      ended,
      /** Resolves once standard output matches; rejects when the command ends before. */
      prints: (pattern: RegExp) =>
        new Promise<void>((resolve, reject) => {
          const check = (): void => {
            if (pattern.test(stdout)) resolve()
          }
          watchers.push(check)
          check()
          void ended.then((run) =>
            reject(new Error(`ended with ${run.code} before ${pattern}: ${run.stdout}${run.stderr}`)),
          )
        }),
    }
  }

  const kubectl = async (
    path: string,
    args: readonly string[],
    input?: string,
    variables?: Record<string, string>,
  ): Promise<string> => {
    const run = await start(path, args, input, variables).ended
    assert.equal(run.code, 0, `kubectl ${args.join(' ')}\n${run.stdout}${run.stderr}`)
    return run.stdout
  }

  testWith(program, `kubectl ${version} discovers the server`, async (path) => {
    assert.match(await kubectl(path, ['version']), /Server Version: .*v1\.37\.0\+trireme/)
    const resources = await kubectl(path, ['api-resources'])
    for (const name of ['configmaps', 'pods', 'deployments', 'cronjobs', 'roles', 'customresourcedefinitions']) {
      assert.match(resources, new RegExp(`^${name} `, 'm'))
    }
    assert.match(await kubectl(path, ['api-versions']), /^apps\/v1$/m)
    assert.match(await kubectl(path, ['explain', 'pod.spec.containers']), /image/)
    assert.equal((await kubectl(path, ['get', '--raw', '/readyz'])).trim(), 'ok')
    assert.match(await kubectl(path, ['cluster-info']), /control plane/)
    assert.match(await kubectl(path, ['auth', 'can-i', 'create', 'pods']), /yes/)
  })

  testWith(program, `kubectl ${version} applies everyday objects twice, the second time unchanged`, async (path) => {
    await kubectl(path, ['create', 'namespace', namespace])
    const file = join(work, 'everyday.yaml')
    const first = await kubectl(path, ['apply', '-n', namespace, '-f', file])
    assert.equal(first.match(/ created$/gm)?.length, 7, first)
    const second = await kubectl(path, ['apply', '-n', namespace, '-f', file])
    assert.equal(second.match(/ unchanged$/gm)?.length, 7, second)
  })

  testWith(program, `kubectl ${version} gets in every output form`, async (path) => {
    const forms = [
      'json',
      'yaml',
      'wide',
      'name',
      'jsonpath={.items[*].metadata.name}',
      'go-template={{len .items}}',
      'custom-columns=N:.metadata.name',
    ]
    for (const form of forms) {
      const pods = await kubectl(path, ['get', 'pods', '-n', namespace, '-o', form])
      if (!form.startsWith('go-template')) assert.match(pods, /everyday-pod/)
    }
    assert.match(await kubectl(path, ['get', 'pods', '-n', namespace]), /^NAME .*AGE\s*\neveryday-pod .*\n$/)
    assert.match(await kubectl(path, ['get', 'pods', '-n', namespace, '--show-labels', '-L', 'app']), /app=everyday/)
    await kubectl(path, ['get', 'all,cm,secrets,roles', '-n', namespace])
    await kubectl(path, ['get', 'pods', '-A', '--sort-by=.metadata.creationTimestamp'])
    await kubectl(path, [
      'get',
      'pods',
      '-n',
      namespace,
      '-l',
      'app in (everyday)',
      '--field-selector',
      'metadata.name=everyday-pod',
    ])
    assert.match(await kubectl(path, ['describe', 'pod', 'everyday-pod', '-n', namespace]), /Name: +everyday-pod/)
    const empty = await start(path, ['get', 'pods', '-n', namespace, '-l', 'app=none']).ended
    assert.match(empty.stderr, /No resources found/)
  })

  testWith(program, `kubectl ${version} watches pods`, async (path) => {
    const watching = start(path, ['get', 'pods', '-n', namespace, '-w'])
    await watching.prints(/everyday-pod/)
    await kubectl(path, ['run', 'watched', '--image=example.test/app:1', '-n', namespace])
    await watching.prints(/watched/)
    watching.child.kill('SIGINT')
    await watching.ended
  })

  testWith(
    program,
    `kubectl ${version} labels, annotates, patches in all three types, edits and replaces`,
    async (path) => {
      const in_ = ['-n', namespace]
      const read = async (what: string, at: string): Promise<string> =>
        kubectl(path, ['get', what, ...in_, '-o', `jsonpath={${at}}`])
      await kubectl(path, ['label', 'cm/everyday-config', 'tier=one', ...in_])
      assert.equal(await read('cm/everyday-config', '.metadata.labels.tier'), 'one')
      await kubectl(path, ['annotate', 'cm/everyday-config', 'note=hello', ...in_])
      assert.equal(await read('cm/everyday-config', '.metadata.annotations.note'), 'hello')
      await kubectl(path, ['patch', 'cm/everyday-config', '--type=merge', '-p', '{"data":{"merge":"1"}}', ...in_])
      await kubectl(path, [
        'patch',
        'cm/everyday-config',
        '--type=json',
        '-p',
        '[{"op":"add","path":"/data/json","value":"2"}]',
        ...in_,
      ])
      assert.equal(await read('cm/everyday-config', '.data.merge}{.data.json'), '12')
      const strategic = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"example.test/side:1"}]}}}}'
      await kubectl(path, ['patch', 'deployment/everyday-deployment', '-p', strategic, ...in_])
      assert.equal(await read('deployment/everyday-deployment', '.spec.template.spec.containers[*].name'), 'side app')
      await kubectl(path, ['edit', 'cm/everyday-config', ...in_], undefined, {
        KUBE_EDITOR: "sed -i -e 's/greeting: hello/greeting: edited/'",
      })
      assert.equal(await read('cm/everyday-config', '.data.greeting'), 'edited')
      const current = await kubectl(path, ['get', 'cm/everyday-config', ...in_, '-o', 'json'])
      await kubectl(path, ['replace', ...in_, '-f', '-'], current.replace('edited', 'replaced'))
      assert.equal(await read('cm/everyday-config', '.data.greeting'), 'replaced')
      await kubectl(path, ['scale', 'deployment/everyday-deployment', '--replicas=5', ...in_])
      assert.equal(await read('deployment/everyday-deployment', '.spec.replicas'), '5')
      await kubectl(path, ['set', 'image', 'deployment/everyday-deployment', 'app=example.test/app:2', ...in_])
    },
  )

  testWith(program, `kubectl ${version} deletes and waits for deletion`, async (path) => {
    const waiting = start(path, ['wait', '--for=delete', 'cm/everyday-config', '-n', namespace, '--timeout=60s'])
    await kubectl(path, ['delete', 'cm', 'everyday-config', '-n', namespace])
    const waited = await waiting.ended
    assert.equal(waited.code, 0, waited.stderr)
    await kubectl(path, ['delete', 'pods', '--all', '-n', namespace])
    await kubectl(path, ['delete', '-n', namespace, '-f', join(work, 'everyday.yaml'), '--ignore-not-found'])
    await kubectl(path, ['delete', 'namespace', namespace])
  })

  testWith(program, `kubectl ${version} is refused clearly`, async (path) => {
    const missing = await start(path, ['get', 'pod', 'nobody']).ended
    assert.equal(missing.code, 1)
    assert.match(missing.stderr, /Error from server \(NotFound\): pods "nobody" not found/)
    const strict = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"strict"},"dta":{}}'
    const unknown = await start(path, ['create', '-f', '-'], strict).ended
    assert.equal(unknown.code, 1)
    assert.match(unknown.stderr, /unknown field "dta"/)
  })
}
