import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { validateFieldRef, validateResourceFieldRef, volumeFields } from './container-env.ts'
import { duplicate, forbiddenField, invalidValue, required } from './field-error.ts'
import { dnsLabelProblems } from './names.ts'
import { isObject, numberAt, objectAt, objectsAt, textAt } from './object-fields.ts'
import { validateLocalPath, validateNoBacksteps } from './paths.ts'
import { validateFileMode } from './ranges.ts'
import { appendAll } from '../append.ts'

/** Volumes that passed, each with the kind of its source. A mount of another is "not found", as in the real server. */
export type VolumeNames = ReadonlyMap<string, string>

export function validateVolumes(
  volumes: readonly ObjectValue[],
  at: string,
): { readonly causes: readonly Cause[]; readonly names: VolumeNames } {
  const causes: Cause[] = []
  const names = new Map<string, string>()
  for (const [index, volume] of volumes.entries()) {
    const where = `${at}[${index}]`
    const name = textAt(volume, 'name')
    const [source, ...more] = Object.keys(volume).filter((field) => field !== 'name' && isObject(volume[field]))
    const found: Cause[] =
      source === undefined
        ? [required(where, 'must specify a volume type')]
        : [...validateSource(source, objectAt(volume, source) ?? {}, `${where}.${source}`)]
    for (const extra of more) found.push(forbiddenField(`${where}.${extra}`, 'may not specify more than 1 volume type'))
    if (name === '') found.push(required(`${where}.name`))
    else
      appendAll(
        found,
        dnsLabelProblems(name).map((problem) => invalidValue(`${where}.name`, name, problem)),
      )
    if (names.has(name)) found.push(duplicate(`${where}.name`, name))
    appendAll(causes, found)
    if (found.length === 0 && source !== undefined) names.set(name, source)
  }
  return { causes, names }
}

const requiredFields: Readonly<Record<string, readonly string[]>> = {
  awsElasticBlockStore: ['volumeID'],
  azureDisk: ['diskName', 'diskURI'],
  azureFile: ['secretName', 'shareName'],
  cinder: ['volumeID'],
  configMap: ['name'],
  csi: ['driver'],
  flexVolume: ['driver'],
  gcePersistentDisk: ['pdName'],
  gitRepo: ['repository'],
  glusterfs: ['endpoints', 'path'],
  hostPath: ['path'],
  image: ['reference'],
  iscsi: ['targetPortal', 'iqn'],
  nfs: ['server', 'path'],
  persistentVolumeClaim: ['claimName'],
  portworxVolume: ['volumeID'],
  quobyte: ['registry', 'volume'],
  rbd: ['image'],
  secret: ['secretName'],
  vsphereVolume: ['volumePath'],
}

function validateSource(kind: string, source: ObjectValue, at: string): readonly Cause[] {
  const missing = (requiredFields[kind] ?? []).filter((field) => textAt(source, field) === '')
  const causes: Cause[] = missing.map((field) => required(`${at}.${field}`))
  switch (kind) {
    case 'emptyDir': {
      if (!textAt(source, 'sizeLimit').startsWith('-')) return causes
      return [...causes, forbiddenField(`${at}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')]
    }
    case 'hostPath':
      return [...causes, ...validateNoBacksteps(textAt(source, 'path'), `${at}.path`)]
    case 'nfs': {
      const path = textAt(source, 'path')
      return path.startsWith('/') ? causes : [...causes, invalidValue(`${at}.path`, path, 'must be an absolute path')]
    }
    case 'configMap':
    case 'secret':
      return [...causes, ...validateFiles(source, at)]
    case 'downwardAPI':
      return [
        ...causes,
        ...validateFileMode(numberAt(source, 'defaultMode'), `${at}.defaultMode`),
        ...validateItems(source, at),
      ]
    case 'projected':
      return [...causes, ...validateProjected(source, at)]
    case 'ephemeral':
      return objectAt(source, 'volumeClaimTemplate') === undefined ? [required(`${at}.volumeClaimTemplate`)] : causes
    default:
      return causes
  }
}

/** Keys of a ConfigMap or Secret as files. */
function validateFiles(source: ObjectValue, at: string): readonly Cause[] {
  const causes: Cause[] = [...validateFileMode(numberAt(source, 'defaultMode'), `${at}.defaultMode`)]
  for (const [index, item] of objectsAt(source, 'items').entries()) {
    const where = `${at}.items[${index}]`
    for (const field of ['key', 'path']) if (textAt(item, field) === '') causes.push(required(`${where}.${field}`))
    appendAll(causes, validateLocalPath(textAt(item, 'path'), `${where}.path`))
    appendAll(causes, validateFileMode(numberAt(item, 'mode'), `${where}.mode`))
  }
  return causes
}

/** Fields of the pod as files. */
function validateItems(source: ObjectValue, at: string): readonly Cause[] {
  const causes: Cause[] = []
  for (const item of objectsAt(source, 'items')) {
    const path = textAt(item, 'path')
    if (path === '') causes.push(required(`${at}.path`))
    appendAll(causes, validateLocalPath(path, `${at}.path`))
    const field = objectAt(item, 'fieldRef')
    const resource = objectAt(item, 'resourceFieldRef')
    if (field !== undefined) {
      appendAll(causes, validateFieldRef(field, `${at}.fieldRef`, volumeFields))
      if (resource !== undefined) {
        causes.push(invalidValue(at, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously'))
      }
    } else if (resource !== undefined) {
      appendAll(causes, validateResourceFieldRef(resource, `${at}.resourceFieldRef`, true))
    } else causes.push(required(at, 'one of fieldRef and resourceFieldRef is required'))
    appendAll(causes, validateFileMode(numberAt(item, 'mode'), `${at}.mode`))
  }
  return causes
}

const tokenSecondsMin = 600
const tokenSecondsMax = 2 ** 32

function validateProjected(projected: ObjectValue, at: string): readonly Cause[] {
  const causes: Cause[] = [...validateFileMode(numberAt(projected, 'defaultMode'), `${at}.defaultMode`)]
  const paths = new Set<string>()
  for (const [index, projection] of objectsAt(projected, 'sources').entries()) {
    const where = `${at}.sources[${index}]`
    const kinds = Object.keys(projection).filter((field) => isObject(projection[field]))
    for (const kind of kinds) {
      const source = objectAt(projection, kind) ?? {}
      appendAll(causes, validateProjection(kind, source, `${where}.${kind}`, at))
      for (const path of pathsOf(kind, source)) {
        if (paths.has(path)) {
          const named = kind === 'secret' || kind === 'configMap' ? textAt(source, 'name') : path
          causes.push(invalidValue(at, named, 'conflicting duplicate paths'))
        }
        if (path !== '') paths.add(path)
      }
    }
    if (kinds.length > 1) causes.push(forbiddenField(where, 'may not specify more than 1 volume type per source'))
  }
  return causes
}

const pathsOf = (kind: string, source: ObjectValue): readonly string[] =>
  kind === 'serviceAccountToken' || kind === 'clusterTrustBundle'
    ? [textAt(source, 'path')]
    : objectsAt(source, 'items').map((item) => textAt(item, 'path'))

function validateProjection(kind: string, source: ObjectValue, where: string, at: string): readonly Cause[] {
  switch (kind) {
    case 'secret':
    case 'configMap':
      return [...(textAt(source, 'name') === '' ? [required(`${where}.name`)] : []), ...validateFiles(source, where)]
    case 'downwardAPI':
      return validateItems(source, where)
    case 'serviceAccountToken': {
      const seconds = numberAt(source, 'expirationSeconds')
      const path = textAt(source, 'path')
      const causes: Cause[] = []
      if (seconds !== undefined && seconds < tokenSecondsMin) {
        const text = 'may not specify a duration less than 10 minutes'
        causes.push(invalidValue(`${where}.expirationSeconds`, seconds, text))
      }
      if (seconds !== undefined && seconds > tokenSecondsMax) {
        const text = 'may not specify a duration larger than 2^32 seconds'
        causes.push(invalidValue(`${where}.expirationSeconds`, seconds, text))
      }
      // The volume's path, not the source's: so the real server has it.
      if (path === '') return [...causes, required(`${at}.path`)]
      return [...causes, ...validateLocalPath(path, `${at}.path`)]
    }
    case 'clusterTrustBundle':
      return textAt(source, 'path') === ''
        ? [required(`${where}.path`)]
        : validateLocalPath(textAt(source, 'path'), `${where}.path`)
    default:
      return []
  }
}
