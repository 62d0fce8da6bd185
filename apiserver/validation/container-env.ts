import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { invalidValue, notSupported, required } from './field-error.ts'
import {
  configKeyProblems,
  dnsLabelProblems,
  dnsSubdomainProblems,
  envVarNameProblems,
  qualifiedNameProblems,
} from './names.ts'
import { isObject, objectAt, textAt } from './object-fields.ts'
import { validateNoBacksteps } from './paths.ts'
import { appendAll } from '../append.ts'

/** Environment variables and where their values come from. */

export function validateEnv(variables: readonly ObjectValue[], at: string): readonly Cause[] {
  return variables.flatMap((variable, index) => {
    const where = `${at}[${index}]`
    const name = textAt(variable, 'name')
    const causes: Cause[] = []
    if (name === '') causes.push(required(`${where}.name`))
    else
      appendAll(
        causes,
        envVarNameProblems(name).map((problem) => invalidValue(`${where}.name`, name, problem)),
      )
    return [...causes, ...validateValueFrom(variable, `${where}.valueFrom`)]
  })
}

function validateValueFrom(variable: ObjectValue, at: string): readonly Cause[] {
  const from = objectAt(variable, 'valueFrom')
  if (from === undefined) return []
  const sources = Object.keys(from).filter((field) => isObject(from[field]))
  const causes: Cause[] = sources.flatMap((source) =>
    validateSource(source, objectAt(from, source) ?? {}, `${at}.${source}`),
  )
  if (sources.length === 0) {
    const text =
      'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`'
    causes.push(invalidValue(at, '', text))
  } else if (textAt(variable, 'value') !== '') {
    causes.push(invalidValue(at, '', 'may not be specified when `value` is not empty'))
  } else if (sources.length > 1) {
    causes.push(invalidValue(at, '', 'may not have more than one field specified at a time'))
  }
  return causes
}

function validateSource(source: string, ref: ObjectValue, at: string): readonly Cause[] {
  switch (source) {
    case 'fieldRef':
      return validateFieldRef(ref, at, envFields)
    case 'resourceFieldRef':
      return validateResourceFieldRef(ref, at, false)
    case 'configMapKeyRef':
    case 'secretKeyRef': {
      const name = textAt(ref, 'name')
      const key = textAt(ref, 'key')
      return [
        ...dnsSubdomainProblems(name).map((problem) => invalidValue(`${at}.name`, name, problem)),
        ...(key === '' ? [required(`${at}.key`)] : []),
        ...(key === '' ? [] : configKeyProblems(key).map((problem) => invalidValue(`${at}.key`, key, problem))),
      ]
    }
    case 'fileKeyRef': {
      const volume = textAt(ref, 'volumeName')
      const causes = ['key', 'volumeName', 'path'].filter((field) => textAt(ref, field) === '')
      return [
        ...causes.map((field) => required(`${at}.${field}`)),
        ...(volume === ''
          ? []
          : dnsLabelProblems(volume).map((problem) => invalidValue(`${at}.volumeName`, volume, problem))),
        ...validateNoBacksteps(textAt(ref, 'path'), `${at}.path`),
      ]
    }
    default:
      return []
  }
}

const envFields = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]
export const volumeFields = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
]
/** Names that the downward API knows as fields at all; others cannot even be converted. */
const knownFields = new Set([...envFields, ...volumeFields, 'spec.restartPolicy', 'spec.schedulerName', 'status.phase'])

/** A field of the pod, or one label or annotation of it. */
export function validateFieldRef(ref: ObjectValue, at: string, allowed: readonly string[]): readonly Cause[] {
  const path = textAt(ref, 'fieldPath')
  if (path === '') return [required(`${at}.fieldPath`)]
  const subscript = /^(.*)\['(.*)'\]$/s.exec(path)
  if (subscript !== null) {
    const [, field = '', key = ''] = subscript
    if (field !== 'metadata.annotations' && field !== 'metadata.labels') {
      return [invalidValue(at, field, 'does not support subscript')]
    }
    const name = field === 'metadata.annotations' ? key.toLowerCase() : key
    return qualifiedNameProblems(name).map((problem) => invalidValue(at, name, problem))
  }
  if (allowed.includes(path)) return []
  if (!knownFields.has(path)) {
    const text = `error converting fieldPath: field label not supported: ${path}`
    return [invalidValue(`${at}.fieldPath`, path, text)]
  }
  return [notSupported(`${at}.fieldPath`, path, allowed)]
}

const resourceFields = ['cpu', 'ephemeral-storage', 'memory']
  .flatMap((name) => [`limits.${name}`, `requests.${name}`])
  .sort()
const hugePagesField = /^(?:limits|requests)\.hugepages-/

export function validateResourceFieldRef(ref: ObjectValue, at: string, inVolume: boolean): readonly Cause[] {
  const resource = textAt(ref, 'resource')
  if (inVolume && textAt(ref, 'containerName') === '') return [required(`${at}.containerName`)]
  if (resource === '') return [required(`${at}.resource`)]
  if (resourceFields.includes(resource) || hugePagesField.test(resource)) return []
  return [notSupported(`${at}.resource`, resource, resourceFields)]
}

export function validateEnvFrom(sources: readonly ObjectValue[], at: string): readonly Cause[] {
  const causes: Cause[] = []
  for (const [index, source] of sources.entries()) {
    const where = `${at}[${index}]`
    const prefix = textAt(source, 'prefix')
    if (prefix !== '') {
      appendAll(
        causes,
        envVarNameProblems(prefix).map((problem) => invalidValue(`${where}.prefix`, prefix, problem)),
      )
    }
    const refs = ['configMapRef', 'secretRef'].filter((field) => isObject(source[field]))
    for (const ref of refs) {
      const name = textAt(source, ref, 'name')
      if (name === '') causes.push(required(`${where}.${ref}.name`))
      else
        appendAll(
          causes,
          dnsSubdomainProblems(name).map((problem) => invalidValue(`${where}.${ref}.name`, name, problem)),
        )
    }
    if (refs.length === 0) causes.push(invalidValue(at, '', 'must specify one of: `configMapRef` or `secretRef`'))
    if (refs.length > 1) causes.push(invalidValue(at, '', 'may not have more than one field specified at a time'))
  }
  return causes
}
