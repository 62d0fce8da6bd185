import type { ObjectValue } from '../../schemas/index.ts'
import type { Cause } from '../types.ts'
import { invalidValue, required } from './field-error.ts'
import { flagAt, integerAt, objectAt, textAt, textsAt, valueAt } from './object-fields.ts'
import { validateDescendingPath } from './paths.ts'
import { validateId } from './ranges.ts'
import { appendAll } from '../append.ts'

/** Who a pod and its containers run as. */

export function validatePodSecurityContext(spec: ObjectValue, at: string): readonly Cause[] {
  const context = objectAt(spec, 'securityContext')
  if (context === undefined) return []
  const causes: Cause[] = ['fsGroup', 'runAsUser', 'runAsGroup'].flatMap((field) =>
    validateId(integerAt(context, field), `${at}.${field}`),
  )
  const groups = valueAt(context, 'supplementalGroups')
  for (const [index, group] of (Array.isArray(groups) ? groups : []).entries()) {
    appendAll(causes, validateId(integerAt({ group }, 'group'), `${at}.supplementalGroups[${index}]`))
  }
  if (flagAt(spec, 'shareProcessNamespace') && flagAt(spec, 'hostPID')) {
    const text = 'ShareProcessNamespace and HostPID cannot both be enabled'
    causes.push(invalidValue(`${at}.shareProcessNamespace`, true, text))
  }
  return [...causes, ...validateProfiles(context, at)]
}

export function validateSecurityContext(context: ObjectValue | undefined, at: string): readonly Cause[] {
  if (context === undefined) return []
  const causes: Cause[] = ['runAsUser', 'runAsGroup'].flatMap((field) =>
    validateId(integerAt(context, field), `${at}.${field}`),
  )
  appendAll(causes, validateProfiles(context, at))
  if (valueAt(context, 'allowPrivilegeEscalation') === false) {
    if (flagAt(context, 'privileged')) {
      const text = 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'
      causes.push(invalidValue(at, context, text))
    }
    if (textsAt(context, 'capabilities', 'add').includes('CAP_SYS_ADMIN')) {
      const text = 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN'
      causes.push(invalidValue(at, context, text))
    }
  }
  return causes
}

const localhost = 'Localhost'

function validateProfiles(context: ObjectValue, at: string): readonly Cause[] {
  const seccomp = objectAt(context, 'seccompProfile')
  const appArmor = objectAt(context, 'appArmorProfile')
  const causes: Cause[] = []
  if (seccomp !== undefined) {
    const where = `${at}.seccompProfile.localhostProfile`
    const path = textAt(seccomp, 'localhostProfile')
    if (textAt(seccomp, 'type') === '') {
      causes.push(required(`${at}.seccompProfile.type`, 'type is required when seccompProfile is set'))
    }
    if (textAt(seccomp, 'type') !== localhost) {
      if (path !== '') causes.push(invalidValue(where, seccomp, 'can only be set when seccomp type is Localhost'))
    } else if (valueAt(seccomp, 'localhostProfile') === undefined) {
      causes.push(required(where, 'must be set when seccomp type is Localhost'))
    } else appendAll(causes, validateDescendingPath(path, where))
  }
  if (appArmor !== undefined) {
    const where = `${at}.appArmorProfile.localhostProfile`
    const path = textAt(appArmor, 'localhostProfile')
    if (textAt(appArmor, 'type') === '') {
      causes.push(required(`${at}.appArmorProfile.type`, 'type is required when appArmorProfile is set'))
    }
    if (textAt(appArmor, 'type') === localhost) {
      if (path === '') causes.push(required(where, 'must be set when AppArmor type is Localhost'))
    } else if (path !== '') {
      causes.push(invalidValue(where, path, 'can only be set when AppArmor type is Localhost'))
    }
  }
  return causes
}
