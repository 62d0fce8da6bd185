import { ApiError, badRequest, notFound } from '../../errors.ts'
import { groupResource } from '../../object-store/object-store.ts'
import { targetOf } from '../../object-store/write-pipeline.ts'
import type { WriteServices } from '../../object-store/write-services.ts'
import type { ApiRequest, Handler, RequestScope } from '../../types.ts'
import type { ObjectValue } from '../../../schemas/index.ts'
import { objectsAt, textAt } from '../../validation/object-fields.ts'

/**
 * What a kubelet would answer. Nodes of this control plane have none that can be reached, so these say what kube-apiserver
 * says in that case (kubernetes pkg/registry/core/pod/{strategy.go,rest}).
 */

const kubeletPort = 10250

async function podOf(services: WriteServices, scope: RequestScope, request: ApiRequest): Promise<ObjectValue> {
  const target = targetOf(scope, request.info.namespace, request.info.name)
  const pod = await services.objects.read(target, { operation: 'get', signal: request.signal })
  if (pod === undefined) throw notFound(groupResource(target), target.name)
  return pod.object
}

/** The container asked for, or the only one. */
function containerOf(pod: ObjectValue, name: string, asked: string): string {
  const lists = ['containers', 'initContainers', 'ephemeralContainers'] as const
  const all = lists.flatMap((list) => objectsAt(pod, 'spec', list).map((container) => textAt(container, 'name')))
  if (asked !== '') {
    if (!all.includes(asked)) throw badRequest(`container ${asked} is not valid for pod ${name}`)
    return asked
  }
  const main = objectsAt(pod, 'spec', 'containers').map((container) => textAt(container, 'name'))
  if (main.length === 1 && main[0] !== undefined) return main[0]
  const init = objectsAt(pod, 'spec', 'initContainers').map((container) => textAt(container, 'name'))
  const inits = init.length === 0 ? '' : ` or one of the init containers: [${init.join(' ')}]`
  throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${main.join(' ')}]${inits}`)
}

export function logHandler(services: WriteServices): Handler {
  return async (scope, request, reply) => {
    const pod = await podOf(services, scope, request)
    const { name, namespace } = request.info
    const container = containerOf(pod, name, request.query.get('container') ?? '')
    const node = textAt(pod, 'spec', 'nodeName')
    if (node === '') {
      // Nothing has run yet, so nothing was logged.
      reply.send(200, 'text/plain', '')
      return
    }
    const url = `https://${node}:${kubeletPort}/containerLogs/${namespace}/${name}/${container}`
    throw unreachable(`Get ${JSON.stringify(url)}: dial tcp: lookup ${node}: no such host`)
  }
}

/** exec, attach, portforward. */
export function streamHandler(services: WriteServices): Handler {
  return async (scope, request) => {
    const pod = await podOf(services, scope, request)
    const { name, subresource } = request.info
    if (subresource !== 'portforward') containerOf(pod, name, request.query.get('container') ?? '')
    const node = textAt(pod, 'spec', 'nodeName')
    if (node === '') throw badRequest(`pod ${name} does not have a host assigned`)
    throw new ApiError(500, '', `error dialing backend: dial tcp: lookup ${node}: no such host`)
  }
}

/** proxy of pods, services and nodes. */
export function proxyHandler(services: WriteServices): Handler {
  return async (scope, request) => {
    const object = await podOf(services, scope, request)
    const { name } = request.info
    switch (scope.resource.plural) {
      case 'services':
        throw new ApiError(503, 'ServiceUnavailable', `no endpoints available for service ${JSON.stringify(name)}`)
      case 'pods':
        if (textAt(object, 'status', 'podIP') === '') throw badRequest('address not allowed')
        throw new ApiError(
          503,
          'ServiceUnavailable',
          `error trying to reach service: dial tcp: no route to pod ${name}`,
        )
      default:
        throw new ApiError(
          503,
          'ServiceUnavailable',
          `error trying to reach service: dial tcp: lookup ${name}: no such host`,
        )
    }
  }
}

function unreachable(message: string): ApiError {
  return new ApiError(500, 'InternalError', `Internal error occurred: ${message}`)
}
