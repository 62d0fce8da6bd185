import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { validateContainers, validateEphemeralContainers, validateInitContainers, type PodParts } from './container.ts'
import { duplicate, forbiddenField, invalidValue, required } from './field-error.ts'
import { validateIp } from './ip-address.ts'
import { dnsLabelProblems, dnsSubdomainProblems, qualifiedNameProblems, searchDomainProblems } from './names.ts'
import { flagAt, isObject, numberAt, objectAt, objectsAt, textAt, textsAt, valueAt } from './object-fields.ts'
import { validateAnnotations, validateLabels } from './object-meta.ts'
import { inRange, int32Max } from './ranges.ts'
import { validateResources } from './resource-amounts.ts'
import { validateAffinity, validateTolerations, validateTopologySpread } from './scheduling.ts'
import { validatePodSecurityContext } from './security-context.ts'
import { validateVolumes } from './volumes.ts'
import { appendAll } from '../append.ts'

/** Pod specs, alone and in templates (kubernetes pkg/apis/core/validation). */
export function validatePodSpec(spec: ObjectValue | undefined, at: string, inPod: boolean): readonly Cause[] {
  if (spec === undefined) return [required(`${at}.containers`)]
  const volumes = validateVolumes(objectsAt(spec, 'volumes'), `${at}.volumes`)
  const claimNames = new Set(objectsAt(spec, 'resourceClaims').map((claim) => textAt(claim, 'name')))
  const pod: PodParts = {
    volumes: volumes.names,
    claimNames,
    graceSeconds: numberAt(spec, 'terminationGracePeriodSeconds'),
    restartPolicy: textAt(spec, 'restartPolicy'),
    inPod,
  }
  const containers = objectsAt(spec, 'containers')
  const initContainers = objectsAt(spec, 'initContainers')
  const causes: Cause[] = [
    ...volumes.causes,
    ...validateResourceClaims(objectsAt(spec, 'resourceClaims'), `${at}.resourceClaims`),
    ...validateContainers(containers, `${at}.containers`, pod),
    ...validateInitContainers(initContainers, containers, `${at}.initContainers`, pod),
    ...validateEphemeralContainers(
      objectsAt(spec, 'ephemeralContainers'),
      [...containers, ...initContainers],
      `${at}.ephemeralContainers`,
      pod,
    ),
    ...validateResources(objectAt(spec, 'resources'), `${at}.resources`, { of: 'pod', claimNames }),
    ...validateHostNetworkPorts(spec, at, inPod),
    ...validateLabels(spec, 'nodeSelector', `${at}.nodeSelector`),
    ...validatePodSecurityContext(spec, `${at}.securityContext`),
    ...validateAffinity(objectAt(spec, 'affinity'), `${at}.affinity`),
    ...validateDns(spec, at),
    ...validateGates(spec, at),
    ...validateTopologySpread(objectsAt(spec, 'topologySpreadConstraints'), `${at}.topologySpreadConstraints`),
    ...validateTolerations(objectsAt(spec, 'tolerations'), `${at}.tolerations`),
    ...validateHostNames(spec, at),
  ]
  for (const [field, rule] of nameFields) {
    const value = textAt(spec, field)
    if (value !== '')
      appendAll(
        causes,
        rule(value).map((problem) => invalidValue(`${at}.${field}`, value, problem)),
      )
  }
  appendAll(causes, inRange(numberAt(spec, 'activeDeadlineSeconds'), 1, int32Max, `${at}.activeDeadlineSeconds`))
  const overhead = valueAt(spec, 'overhead')
  if (isObject(overhead)) {
    appendAll(
      causes,
      validateResources({ limits: overhead }, `${at}.overhead`, { of: 'container', claimNames: new Set() }),
    )
  }
  return causes
}

const nameFields = [
  ['serviceAccountName', dnsSubdomainProblems],
  ['nodeName', dnsSubdomainProblems],
  ['hostname', dnsLabelProblems],
  ['subdomain', dnsLabelProblems],
  ['priorityClassName', dnsSubdomainProblems],
  ['runtimeClassName', dnsSubdomainProblems],
] as const

function validateResourceClaims(claims: readonly ObjectValue[], at: string): readonly Cause[] {
  const causes: Cause[] = []
  const names = new Set<string>()
  for (const [index, claim] of claims.entries()) {
    const where = `${at}[${index}]`
    const name = textAt(claim, 'name')
    if (name === '') causes.push(required(`${where}.name`))
    else if (names.has(name)) causes.push(duplicate(`${where}.name`, name))
    else {
      appendAll(
        causes,
        dnsLabelProblems(name).map((problem) => invalidValue(`${where}.name`, name, problem)),
      )
      names.add(name)
    }
    const sources = ['resourceClaimName', 'resourceClaimTemplateName'].filter((field) => textAt(claim, field) !== '')
    if (sources.length === 1) continue
    const text = 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`'
    const both = 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified'
    causes.push(invalidValue(where, claim, sources.length === 0 ? text : both))
  }
  return causes
}

/** On the host's network a port is the host's port, and nothing else; a template may leave it open. */
function validateHostNetworkPorts(spec: ObjectValue, at: string, inPod: boolean): readonly Cause[] {
  if (!flagAt(spec, 'hostNetwork')) return []
  return objectsAt(spec, 'containers').flatMap((container, index) =>
    objectsAt(container, 'ports').flatMap((port, position) => {
      const hostPort = numberAt(port, 'hostPort') ?? 0
      if ((hostPort === 0 && !inPod) || hostPort === numberAt(port, 'containerPort')) return []
      const where = `${at}.containers[${index}].ports[${position}].hostPort`
      return [invalidValue(where, hostPort, 'must match `containerPort` when `hostNetwork` is true')]
    }),
  )
}

const nameserversMax = 3
const searchesMax = 32
const searchCharactersMax = 2048

function validateDns(spec: ObjectValue, at: string): readonly Cause[] {
  const where = `${at}.dnsConfig`
  const config = objectAt(spec, 'dnsConfig')
  const servers = textsAt(config, 'nameservers')
  if (textAt(spec, 'dnsPolicy') === 'None') {
    if (config === undefined) return [required(where, 'must provide `dnsConfig` when `dnsPolicy` is None')]
    if (servers.length === 0) {
      const text = 'must provide at least one DNS nameserver when `dnsPolicy` is None'
      return [required(`${where}.nameservers`, text)]
    }
  }
  const causes: Cause[] = []
  if (servers.length > nameserversMax) {
    causes.push(invalidValue(`${where}.nameservers`, servers, `must not have more than ${nameserversMax} nameservers`))
  }
  for (const [index, server] of servers.entries())
    appendAll(causes, validateIp(server, `${where}.nameservers[${index}]`))
  const searches = textsAt(config, 'searches')
  if (searches.length > searchesMax) {
    causes.push(invalidValue(`${where}.searches`, searches, `must not have more than ${searchesMax} search paths`))
  }
  if (searches.join(' ').length > searchCharactersMax) {
    const text = `must not have more than ${searchCharactersMax} characters (including spaces) in the search list`
    causes.push(invalidValue(`${where}.searches`, searches, text))
  }
  for (const [index, domain] of searches.entries()) {
    const name = domain === '.' ? '' : domain.replace(/\.$/, '')
    if (domain === '.') continue
    appendAll(
      causes,
      searchDomainProblems(name).map((problem) => invalidValue(`${where}.searches[${index}]`, name, problem)),
    )
  }
  for (const [index, option] of objectsAt(config, 'options').entries()) {
    if (textAt(option, 'name') === '') causes.push(required(`${where}.options[${index}]`, 'must not be empty'))
  }
  return causes
}

function validateGates(spec: ObjectValue, at: string): readonly Cause[] {
  const causes: Cause[] = []
  for (const [index, gate] of objectsAt(spec, 'readinessGates').entries()) {
    const type = textAt(gate, 'conditionType')
    const where = `${at}.readinessGates[${index}].conditionType`
    appendAll(
      causes,
      qualifiedNameProblems(type).map((problem) => invalidValue(where, type, problem)),
    )
  }
  const seen = new Set<string>()
  for (const [index, gate] of objectsAt(spec, 'schedulingGates').entries()) {
    const name = textAt(gate, 'name')
    const where = `${at}.schedulingGates[${index}]`
    appendAll(
      causes,
      qualifiedNameProblems(name).map((problem) => invalidValue(where, name, problem)),
    )
    if (seen.has(name)) causes.push(duplicate(where, name))
    seen.add(name)
  }
  return causes
}

const hostnameOverrideMax = 64

function validateHostNames(spec: ObjectValue, at: string): readonly Cause[] {
  const causes: Cause[] = []
  for (const [index, alias] of objectsAt(spec, 'hostAliases').entries()) {
    const where = `${at}.hostAliases[${index}]`
    appendAll(causes, validateIp(textAt(alias, 'ip'), `${where}.ip`))
    for (const [position, name] of textsAt(alias, 'hostnames').entries()) {
      const problems = dnsSubdomainProblems(name)
      appendAll(
        causes,
        problems.map((problem) => invalidValue(`${where}.hostnames[${position}]`, name, problem)),
      )
    }
  }
  const override = valueAt(spec, 'hostnameOverride')
  if (typeof override !== 'string') return causes
  const where = `${at}.hostnameOverride`
  for (const [field, called] of [
    ['setHostnameAsFQDN', 'setHostnameAsFQDN'],
    ['hostNetwork', 'hostNetwork'],
  ] as const) {
    if (flagAt(spec, field)) causes.push(forbiddenField(where, `may not be specified when ${called} is true`))
  }
  if (override.length > hostnameOverrideMax) {
    causes.push({ reason: 'FieldValueTooLong', message: 'Too long: may not be more than 64 bytes', field: where })
  }
  appendAll(
    causes,
    dnsSubdomainProblems(override).map((problem) => invalidValue(where, override, problem)),
  )
  return causes
}

/** What holds for a pod but not for a template of pods. */
export function validatePodOnly(spec: ObjectValue | undefined, at: string): readonly Cause[] {
  if (spec === undefined || textAt(spec, 'serviceAccountName') !== '') return []
  return objectsAt(spec, 'volumes').flatMap((volume, index) =>
    objectsAt(volume, 'projected', 'sources').flatMap((source, position) => {
      if (objectAt(source, 'serviceAccountToken') === undefined) return []
      const where = `${at}.volumes[${index}].projected.sources[${position}].serviceAccountToken`
      return [forbiddenField(where, 'must not be specified when serviceAccountName is not set')]
    }),
  )
}

/** metadata.labels and metadata.annotations of a template, and its spec. */
export function validatePodTemplate(template: unknown, at: string): readonly Cause[] {
  const value = isObject(template) ? template : {}
  const metadata = objectAt(value, 'metadata') ?? {}
  const causes: Cause[] = [
    ...validateLabels(metadata, 'labels', `${at}.labels`),
    ...validateAnnotations(metadata, `${at}.annotations`),
    ...validatePodSpec(objectAt(value, 'spec'), `${at}.spec`, false),
  ]
  if (objectsAt(value, 'spec', 'ephemeralContainers').length > 0) {
    causes.push(forbiddenField(`${at}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'))
  }
  return causes
}
