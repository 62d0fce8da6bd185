import { Simulation } from './simulation.ts'

export { SeededRandom } from './random.ts'
export { isInjected, SimDisk } from './sim-disk.ts'
export type { DiskFault } from './sim-disk.ts'
export { SimNetwork } from './sim-network.ts'
export type { NetworkWeather } from './sim-network.ts'
export { SimNode } from './sim-node.ts'
export { Simulation } from './simulation.ts'

/** `new SimNode(simulation, name)` per machine and one `new SimNetwork(simulation)` complete a world. */
export function createSimulation(seed: number): Simulation {
  return new Simulation(seed)
}
