import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { forbiddenField, invalidValue, notFoundField, required } from './field-error.ts'
import { flagAt, objectsAt, textAt } from './object-fields.ts'
import { validateDescendingPath, validateNoBacksteps } from './paths.ts'
import type { VolumeNames } from './volumes.ts'
import { appendAll } from '../append.ts'

/** What a container sees of the pod's volumes: as directories, and as block devices. */

export function validateMounts(container: ObjectValue, at: string, volumes: VolumeNames): readonly Cause[] {
  const causes: Cause[] = []
  const devices = objectsAt(container, 'volumeDevices')
  const deviceNames = new Set(devices.map((device) => textAt(device, 'name')))
  const devicePaths = new Set(devices.map((device) => textAt(device, 'devicePath')))
  const paths = new Set<string>()
  const privileged = flagAt(container, 'securityContext', 'privileged')
  for (const [index, mount] of objectsAt(container, 'volumeMounts').entries()) {
    const where = `${at}[${index}]`
    const name = textAt(mount, 'name')
    const path = textAt(mount, 'mountPath')
    if (name === '') causes.push(required(`${where}.name`))
    if (!volumes.has(name)) causes.push(notFoundField(`${where}.name`, name))
    if (path === '') causes.push(required(`${where}.mountPath`))
    if (paths.has(path)) causes.push(invalidValue(`${where}.mountPath`, path, 'must be unique'))
    paths.add(path)
    if (deviceNames.has(name)) {
      causes.push(invalidValue(`${where}.name`, name, 'must not already exist in volumeDevices'))
    }
    if (devicePaths.has(path)) {
      causes.push(invalidValue(`${where}.mountPath`, path, 'must not already exist as a path in volumeDevices'))
    }
    appendAll(causes, validateMount(mount, where, at, privileged))
  }
  return causes
}

/** The real server names the list, not the entry, in the paths of these. */
function validateMount(mount: ObjectValue, where: string, at: string, privileged: boolean): readonly Cause[] {
  const causes: Cause[] = []
  const subPath = textAt(mount, 'subPath')
  const expression = textAt(mount, 'subPathExpr')
  if (subPath !== '') appendAll(causes, validateDescendingPath(subPath, `${at}.subPath`))
  if (expression !== '') {
    if (subPath !== '') {
      const text = 'subPathExpr and subPath are mutually exclusive'
      causes.push(invalidValue(`${where}.subPathExpr`, expression, text))
    }
    appendAll(causes, validateDescendingPath(expression, `${at}.subPathExpr`))
  }
  if (textAt(mount, 'mountPropagation') === 'Bidirectional' && !privileged) {
    const text = 'Bidirectional mount propagation is available only to privileged containers'
    causes.push(forbiddenField(`${at}.mountPropagation`, text))
  }
  return causes
}

export function validateDevices(container: ObjectValue, at: string, volumes: VolumeNames): readonly Cause[] {
  const causes: Cause[] = []
  const mounts = objectsAt(container, 'volumeMounts')
  const mountNames = new Set(mounts.map((mount) => textAt(mount, 'name')))
  const mountPaths = new Set(mounts.map((mount) => textAt(mount, 'mountPath')))
  const names = new Set<string>()
  const paths = new Set<string>()
  for (const [index, device] of objectsAt(container, 'volumeDevices').entries()) {
    const where = `${at}[${index}]`
    const name = textAt(device, 'name')
    const path = textAt(device, 'devicePath')
    const source = volumes.get(name)
    if (name === '') causes.push(required(`${where}.name`))
    if (names.has(name)) causes.push(invalidValue(`${where}.name`, name, 'must be unique'))
    if (source === undefined) causes.push(notFoundField(`${where}.name`, name))
    else if (source !== 'persistentVolumeClaim' && source !== 'ephemeral') {
      const text = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'
      causes.push(invalidValue(`${where}.name`, name, text))
    }
    if (path === '') causes.push(required(`${where}.devicePath`))
    if (paths.has(path)) causes.push(invalidValue(`${where}.devicePath`, path, 'must be unique'))
    if (validateNoBacksteps(path, where).length > 0) {
      causes.push(invalidValue(`${where}.devicePath`, path, "can not contain backsteps ('..')"))
    }
    paths.add(path)
    if (mountNames.has(name)) {
      causes.push(invalidValue(`${where}.name`, name, 'must not already exist in volumeMounts'))
    }
    if (mountPaths.has(path)) {
      causes.push(invalidValue(`${where}.devicePath`, path, 'must not already exist as a path in volumeMounts'))
    }
    if (name !== '') names.add(name)
  }
  return causes
}
