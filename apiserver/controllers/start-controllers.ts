import type { WriteServices } from '../object-store/write-services.ts'
import type { ControllerName } from './controller-names.ts'
import { type Controller, startNamespaceDeletion } from './namespace-deletion.ts'

const starts: Readonly<Record<ControllerName, (services: WriteServices) => Controller>> = {
  'namespace-controller': startNamespaceDeletion,
}

/** Starts the controllers named; stop() ends all of them. */
export function startControllers(names: ReadonlySet<ControllerName>, services: WriteServices): Controller {
  const running = [...names].map((name) => starts[name](services))
  return {
    async stop() {
      await Promise.all(running.map((controller) => controller.stop()))
    },
  }
}
