/** The space that Services share: cluster addresses and node ports. */

export const serviceCidr = '10.96.0.0/16'
const base = (10 << 24) | (96 << 16)
/** First and last address that a Service may get; .0 is the network and the last one is broadcast. */
const offsetMin = 1
const offsetMax = 65_534
/** Below lies the band kept for addresses that people choose (KEP-3070): min(max(16, size / 16), 256). */
export const dynamicOffsetMin = 257
export const dynamicAddresses = offsetMax - dynamicOffsetMin + 1

export const nodePortMin = 30_000
export const nodePortMax = 32_767

export function serviceAddress(offset: number): string {
  const address = (base | offset) >>> 0
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.')
}

/** Position inside the range; undefined for what is not an address of it. */
export function addressOffset(text: string): number | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || parts.some((part) => !/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255)) {
    return undefined
  }
  const [a = 0, b = 0, c = 0, d = 0] = parts.map(Number)
  const offset = c * 256 + d
  return a === 10 && b === 96 && offset >= offsetMin && offset <= offsetMax ? offset : undefined
}

export const addressKey = (address: string): string => `/registry/ipaddresses/${address}`
export const nodePortKey = (port: number): string => `/registry/ranges/servicenodeports/${port}`
