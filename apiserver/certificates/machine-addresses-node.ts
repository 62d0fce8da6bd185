import { networkInterfaces } from 'node:os'

/** Addresses under which others may reach this machine, as they stand in a certificate: no loopback, none of one link. */
export function machineAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !/^fe[89ab]/i.test(address))
    .map(({ address }) => address)
    .sort()
}
