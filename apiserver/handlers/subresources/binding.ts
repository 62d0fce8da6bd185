import { type ObjectValue, typeOf } from '../../../schemas/index.ts'
import { badRequest, conflict, invalid, notFound } from '../../errors.ts'
import { bodyFormat } from '../../object-store/media-type.ts'
import { timestamp } from '../../object-store/object-meta.ts'
import {
  type CurrentObject,
  groupResource,
  type ObjectTarget,
  type WriteStep,
} from '../../object-store/object-store.ts'
import { decodeVersioned } from '../../object-store/request-body.ts'
import { writeOptions } from '../../object-store/write-options.ts'
import { uidMismatch } from '../../object-store/write-pipeline.ts'
import type { WriteServices } from '../../object-store/write-services.ts'
import type { ApiRequest, Handler } from '../../types.ts'
import { required } from '../../validation/field-error.ts'
import { ensureObject, entriesAt, metadataOf, objectsAt, record, textAt } from '../../validation/object-fields.ts'
import { successStatus } from './success-status.ts'

const bindingKind = { group: '', version: 'v1', kind: 'Binding' }

/**
 * POST pods/<name>/binding and POST bindings: assigns a pod to a node, once. The scheduler's only write
 * (kubernetes pkg/registry/core/pod/storage BindingREST).
 */
export function bindingHandler(services: WriteServices): Handler {
  return async (_scope, request, reply) => {
    const options = writeOptions(request, 'CreateOptions')
    const type = typeOf(bindingKind)
    if (type === undefined) throw new Error('no type for v1 Binding')
    const binding = await decodeVersioned(
      { gvk: bindingKind, type },
      await request.body(),
      bodyFormat(request.headers['content-type']),
      options.fieldValidation,
      (text) => request.warn(text),
    )
    const target = podTarget(services, request, binding)
    const call = { operation: 'create', dryRun: options.dryRun, signal: request.signal }
    const now = new Date(services.env.clock.wallMs())
    await services.objects.write(target, call, async (current) => assign(target, current, binding, now))
    services.responder.value(request, reply, { status: 201, value: successStatus(201) })
  }
}

export function podTarget(services: WriteServices, request: ApiRequest, body: ObjectValue): ObjectTarget {
  const pods = services.registry.find('', 'v1', 'pods', '')
  if (pods === undefined) throw new Error('pods are not served')
  const given = textAt(body, 'metadata', 'name')
  const name = request.info.subresource === '' ? given : request.info.name
  if (given !== '' && given !== name) {
    throw badRequest(`name in URL does not match name in ${textAt(body, 'kind')} object`)
  }
  const namespace = textAt(body, 'metadata', 'namespace')
  if (namespace !== '' && namespace !== request.info.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
  return { resource: pods.resource, strategy: pods.strategy, namespace: request.info.namespace, name }
}

async function assign(
  target: ObjectTarget,
  current: CurrentObject | undefined,
  binding: ObjectValue,
  now: Date,
): Promise<WriteStep> {
  if (current === undefined) throw notFound(groupResource(target), target.name)
  const node = textAt(binding, 'target', 'name')
  const kind = textAt(binding, 'target', 'kind')
  if (node === '') throw invalid({ group: '', kind: 'Binding' }, target.name, [required('target.name')])
  if (kind !== '' && kind !== 'Node') throw badRequest(`binding target kind ${JSON.stringify(kind)} is not supported`)
  const uid = textAt(binding, 'metadata', 'uid')
  const of = { group: '', resource: 'pods/binding' }
  if (uid !== '' && uid !== current.cached.uid) throw conflict(of, target.name, uidMismatch(target, uid, current))
  const { object } = current
  if (current.cached.deleting) {
    throw conflict(of, target.name, `pod ${target.name} is being deleted, cannot be assigned to a host`)
  }
  const assigned = textAt(object, 'spec', 'nodeName')
  if (assigned !== '') {
    throw conflict(of, target.name, `pod ${target.name} is already assigned to node ${JSON.stringify(assigned)}`)
  }
  if (objectsAt(object, 'spec', 'schedulingGates').length > 0) {
    throw conflict(of, target.name, `pod ${target.name} has non-empty .spec.schedulingGates`)
  }
  ensureObject(object, 'spec')['nodeName'] = node
  copyEntries(binding, object, 'annotations')
  copyEntries(binding, object, 'labels')
  setScheduled(object, now)
  return { do: 'put', object }
}

function copyEntries(binding: ObjectValue, object: ObjectValue, field: 'annotations' | 'labels'): void {
  const entries = entriesAt(binding, 'metadata', field)
  if (entries.length === 0) return
  const own = ensureObject(metadataOf(object), field)
  for (const [key, value] of entries) own[key] = value
}

function setScheduled(object: ObjectValue, now: Date): void {
  const status = ensureObject(object, 'status')
  const others = objectsAt(status, 'conditions').filter((condition) => textAt(condition, 'type') !== 'PodScheduled')
  status['conditions'] = [
    ...others,
    record({ type: 'PodScheduled', status: 'True', lastTransitionTime: timestamp(now) }),
  ]
}
