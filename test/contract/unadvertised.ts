/** What discovery does not offer is refused the way clients know: 405 where the path exists, 404 where it does not. */
import assert from 'node:assert/strict'
import type { Dispatcher } from 'undici'
import { mergePatch, type Subject } from './subject.ts'

const methods: readonly (readonly [verb: string, method: Dispatcher.HttpMethod])[] = [
  ['get', 'GET'],
  ['create', 'POST'],
  ['update', 'PUT'],
  ['patch', 'PATCH'],
  ['delete', 'DELETE'],
]

const ofOneObject = ['get', 'update', 'patch', 'delete']

/** Nothing here may reach an object: the paths name none that exists. */
export async function refusesWhatIsNotAdvertised(subject: Subject): Promise<void> {
  const { collection, everywhere, resource } = subject
  const onCollection: Readonly<Record<string, string>> = { GET: 'list', POST: 'create', DELETE: 'deletecollection' }
  for (const [, method] of methods) {
    if (!subject.has(onCollection[method] ?? '')) await notAllowed(subject, method, collection)
    // Over all namespaces there are only lists and watches.
    if (resource.namespaced && method !== 'GET') await notAllowed(subject, method, everywhere)
  }
  if (!subject.has('watch')) await notAllowed(subject, 'GET', `${collection}?watch=true`)

  const absent = `${collection}/absent`
  const named = ofOneObject.some((verb) => subject.has(verb))
  for (const [verb, method] of methods) {
    if (!named) await noSuchPath(subject, method, absent)
    else if (verb === 'create' || !subject.has(verb)) await notAllowed(subject, method, absent)
  }
  for (const { name, verbs } of resource.subresources) {
    for (const [verb, method] of methods) {
      if (!verbs.includes(verb)) await notAllowed(subject, method, `${absent}/${name}`)
    }
  }
  await noSuchPath(subject, 'GET', `${absent}/no-such-subresource`)
}

async function notAllowed(subject: Subject, method: Dispatcher.HttpMethod, path: string): Promise<void> {
  const answer = await subject.refuses(405, 'MethodNotAllowed', method, path, ...bodyFor(method))
  assert.equal(answer.json['message'], 'the server does not allow this method on the requested resource')
}

async function noSuchPath(subject: Subject, method: Dispatcher.HttpMethod, path: string): Promise<void> {
  const answer = await subject.refuses(404, 'NotFound', method, path, ...bodyFor(method))
  assert.equal(answer.json['message'], 'the server could not find the requested resource')
}

function bodyFor(method: Dispatcher.HttpMethod): [body?: unknown, options?: { contentType: string }] {
  if (method === 'PATCH') return [{}, { contentType: mergePatch }]
  return method === 'POST' || method === 'PUT' ? [{}] : []
}
