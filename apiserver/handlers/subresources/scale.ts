import { type ObjectValue, typeOf } from '../../../schemas/index.ts'
import { apiVersionOf } from '../../encoding/stored-object.ts'
import { conflict, invalid, modifiedText, notFound } from '../../errors.ts'
import { bodyFormat, mediaTypeOf } from '../../object-store/media-type.ts'
import { type CurrentObject, groupResource, type ObjectTarget } from '../../object-store/object-store.ts'
import { decodeVersioned, reportProblems } from '../../object-store/request-body.ts'
import { writeOptions, type OptionsKind } from '../../object-store/write-options.ts'
import { prepareUpdate, targetOf, uidMismatch, type WriteRequest } from '../../object-store/write-pipeline.ts'
import { strategyContext, type WriteServices } from '../../object-store/write-services.ts'
import type { ApiReply, ApiRequest, Handler, RequestScope, Verb } from '../../types.ts'
import { invalidValue } from '../../validation/field-error.ts'
import { selectorText } from '../../validation/label-selector.ts'
import {
  copyValue,
  ensureObject,
  metadataOf,
  numberAt,
  record,
  textAt,
  valueAt,
} from '../../validation/object-fields.ts'
import { applyPatch, parsePatch, requirePatchType } from '../patch.ts'

/**
 * autoscaling/v1 Scale: the replica count of a Deployment, ReplicaSet, StatefulSet or ReplicationController as one small
 * object of the parent's name, uid and resourceVersion.
 */
export function scaleHandlers(services: WriteServices): Partial<Record<Verb, Handler>> {
  return {
    async get(scope, request, reply) {
      const target = scaleTarget(scope, request)
      const current = await services.objects.read(target, { operation: 'get', signal: request.signal })
      if (current === undefined) throw notFound(groupResource(target), target.name)
      answer(services, request, reply, scaleOf(target, current))
    },
    async update(scope, request, reply) {
      const options = writeOptions(request, 'UpdateOptions')
      const served = scaleVersion(scope)
      const format = bodyFormat(request.headers['content-type'])
      const body = await request.body()
      const scale = await decodeVersioned(served, body, format, options.fieldValidation, (text) => request.warn(text))
      await write(services, scope, request, reply, 'UpdateOptions', () => scale)
    },
    async patch(scope, request, reply) {
      const type = mediaTypeOf(request.headers['content-type'])
      requirePatchType(type)
      const served = scaleVersion(scope)
      const { fieldValidation } = writeOptions(request, 'PatchOptions', 'other')
      const report = (problems: Parameters<typeof reportProblems>[2]): void =>
        reportProblems(served, '', problems, fieldValidation, (text) => request.warn(text))
      const patch = parsePatch(type, await request.body(), report)
      await write(services, scope, request, reply, 'PatchOptions', (target, current) => {
        const { object, problems } = applyPatch({ served }, scaleOf(target, current), patch)
        report(problems)
        return object
      })
    },
  }
}

type ScaleFunction = (target: ObjectTarget, current: CurrentObject) => ObjectValue

async function write(
  services: WriteServices,
  scope: RequestScope,
  request: ApiRequest,
  reply: ApiReply,
  kind: OptionsKind,
  wanted: ScaleFunction,
): Promise<void> {
  const options = writeOptions(request, kind)
  const target = scaleTarget(scope, request)
  // The parent is updated as a whole, so that its own strategy counts generations and validates.
  const context = strategyContext(services, request, { dryRun: options.dryRun, subresource: '' })
  const write: WriteRequest = { scope, request, context, fieldManager: options.fieldManager }
  const call = { operation: 'update', dryRun: options.dryRun, signal: request.signal }
  const outcome = await services.objects.write(target, call, async (current) => {
    if (current === undefined) throw notFound(groupResource(target), target.name)
    const replicas = replicasOf(target, current, wanted(target, current))
    const object = copyValue(current.object)
    ensureObject(object, 'spec')['replicas'] = replicas
    metadataOf(object)['resourceVersion'] = String(current.cached.revision)
    return prepareUpdate(services, write, target, object, current)
  })
  const stored = JSON.parse(Buffer.from(outcome.object.stored).toString('utf8')) as ObjectValue
  answer(services, request, reply, scaleOf(target, { cached: outcome.object, object: stored }))
}

/** Checks what the Scale says about the parent; its replica count. */
function replicasOf(target: ObjectTarget, current: CurrentObject, scale: ObjectValue): number {
  const of = groupResource(target)
  const version = textAt(scale, 'metadata', 'resourceVersion')
  if (version !== '' && version !== String(current.cached.revision)) throw conflict(of, target.name, modifiedText)
  const uid = textAt(scale, 'metadata', 'uid')
  if (uid !== '' && uid !== current.cached.uid) throw conflict(of, target.name, uidMismatch(target, uid, current))
  const name = textAt(scale, 'metadata', 'name')
  const scaleKind = { group: 'autoscaling', kind: 'Scale' }
  if (name !== '' && name !== target.name) {
    throw invalid(scaleKind, name, [invalidValue('metadata.name', name, `must be ${target.name}`)])
  }
  const replicas = numberAt(scale, 'spec', 'replicas') ?? 0
  if (replicas < 0) {
    const cause = invalidValue('spec.replicas', replicas, 'must be greater than or equal to 0')
    throw invalid(scaleKind, target.name, [cause])
  }
  return replicas
}

function scaleOf(target: ObjectTarget, current: CurrentObject): ObjectValue {
  const { object, cached } = current
  const selector = valueAt(object, 'spec', 'selector')
  const plainSelector = target.resource.group === '' ? { matchLabels: selector } : selector
  const text = selectorText(plainSelector)
  const replicas = numberAt(object, 'spec', 'replicas')
  return record({
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: record({
      name: cached.name,
      namespace: cached.namespace,
      uid: cached.uid,
      resourceVersion: String(cached.revision),
      creationTimestamp: textAt(object, 'metadata', 'creationTimestamp'),
    }),
    spec: record(replicas === undefined || replicas === 0 ? {} : { replicas }),
    status: record({
      replicas: numberAt(object, 'status', 'replicas') ?? 0,
      ...(text === '' ? {} : { selector: text }),
    }),
  })
}

function scaleVersion(scope: RequestScope): {
  readonly gvk: RequestScope['served']['gvk']
  readonly type: RequestScope['served']['type']
  readonly toStorage: (object: ObjectValue) => ObjectValue
  readonly fromStorage: (object: ObjectValue) => ObjectValue
} {
  const gvk = scope.subresource?.gvk ?? { group: 'autoscaling', version: 'v1', kind: 'Scale' }
  const type = typeOf(gvk)
  if (type === undefined) throw new Error(`no type for ${apiVersionOf(gvk)} ${gvk.kind}`)
  return { gvk, type, toStorage: (object) => object, fromStorage: (object) => object }
}

function scaleTarget(scope: RequestScope, request: ApiRequest): ObjectTarget {
  return targetOf(scope, request.info.namespace, request.info.name)
}

function answer(services: WriteServices, request: ApiRequest, reply: ApiReply, value: ObjectValue): void {
  services.responder.value(request, reply, { status: 200, value })
}
