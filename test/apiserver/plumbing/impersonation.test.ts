import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { Agent, request } from 'undici'
import { type ControlPlane, startControlPlane } from '../../../apiserver/index.ts'

let plane: ControlPlane

before(async () => {
  plane = await startControlPlane({ httpPort: 0, replicas: 1 })
})

after(() => plane.stop())

const reviews = '/apis/authentication.k8s.io/v1/selfsubjectreviews'

/** @param headers - Names and values in turn. */
async function ask(method: 'GET' | 'POST', path: string, headers: readonly string[], body?: object): Promise<Answer> {
  const answer = await request(`${plane.http}${path}`, {
    method,
    headers: [...headers, 'content-type', 'application/json'],
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { code: answer.statusCode, json: (await answer.body.json()) as Answer['json'] }
}

interface Answer {
  readonly code: number
  readonly json: { readonly message?: string; readonly status?: unknown; readonly code?: number }
}

async function whoAmI(headers: readonly string[]): Promise<unknown> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const { json } = await ask('POST', reviews, headers, body)
  return (json.status as { userInfo?: unknown } | undefined)?.userInfo ?? json
}

test('the administrator acts as the user, groups, uid and extra fields that the request names', async () => {
  assert.deepEqual(
    await whoAmI([
      'Impersonate-User',
      'bob',
      'Impersonate-Group',
      'team, with a comma',
      'Impersonate-Group',
      'other',
      'Impersonate-Uid',
      '42',
      'Impersonate-Extra-Example.com%2Fscopes',
      'view',
    ]),
    {
      username: 'bob',
      uid: '42',
      groups: ['team, with a comma', 'other', 'system:authenticated'],
      extra: { 'example.com/scopes': ['view'] },
    },
  )
})

test('an impersonated service account is in the groups of its namespace', async () => {
  assert.deepEqual(await whoAmI(['Impersonate-User', 'system:serviceaccount:kube-system:default']), {
    username: 'system:serviceaccount:kube-system:default',
    groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
  })
})

test('whoever is impersonated has their own rights, not those of the administrator', async () => {
  const bob = ['Impersonate-User', 'bob']
  const refused = await ask('GET', '/api/v1/namespaces/default/pods', bob)
  assert.equal(refused.code, 403)
  assert.equal(
    refused.json.message,
    'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"',
  )
  assert.equal((await ask('GET', '/api/v1/pods', [...bob, 'Impersonate-Group', 'system:masters'])).code, 200)
  const anonymous = await ask('GET', '/apis', ['Impersonate-User', 'system:anonymous'])
  assert.equal(anonymous.code, 403)
})

test('of several users the first is meant', async () => {
  const review = (await whoAmI(['Impersonate-User', 'bob', 'Impersonate-User', 'alice'])) as { username: string }
  assert.equal(review.username, 'bob')
})

test('a header behind thousands of others counts: whoever it names is not served as the caller', async () => {
  const many = Array.from({ length: 3000 }, (_, index) => [`x-${index}`, 'y']).flat()
  const answer = await ask('GET', '/api/v1/pods', [...many, 'Impersonate-User', 'bob'])
  assert.equal(answer.code, 403)
})

test('groups, uid or extra fields without a user are refused', async () => {
  for (const header of ['Impersonate-Group', 'Impersonate-Uid', 'Impersonate-Extra-scopes']) {
    const answer = await ask('GET', '/api/v1/pods', [header, 'x'])
    assert.equal(answer.code, 400)
    assert.match(answer.json.message ?? '', /without a user/)
  }
})

test('who may not impersonate is refused, whatever they ask for', async (t) => {
  const stranger = new Agent({ connect: { rejectUnauthorized: false } })
  t.after(() => stranger.close())
  const ways: readonly (readonly [readonly string[], string])[] = [
    [['Impersonate-User', 'root'], 'users "root" is forbidden: User "system:anonymous" cannot impersonate'],
    [
      ['Impersonate-User', 'system:serviceaccount:default:default', 'Impersonate-Group', 'system:masters'],
      'serviceaccounts "default" is forbidden: User "system:anonymous" cannot impersonate',
    ],
  ]
  for (const [headers, message] of ways) {
    const answer = await request(`${plane.server}/version`, { dispatcher: stranger, headers: [...headers] })
    assert.equal(answer.statusCode, 403)
    assert.ok((await answer.body.text()).includes(JSON.stringify(message).slice(1, -1)))
  }
})
