import type { Cause } from '../types.ts'
import { invalidValue } from './field-error.ts'

/** IP addresses and CIDRs as text (apimachinery pkg/util/validation/ip.go), without a resolver or a socket. */

/** Groups of an IPv4 or IPv6 address as bytes; undefined for what is none. No zone, no leading zeros. */
export function addressBytes(text: string): readonly number[] | undefined {
  return text.includes(':') ? bytesOf6(text) : bytesOf4(text)
}

export const isIpv6 = (text: string): boolean => text.includes(':') && addressBytes(text) !== undefined

function bytesOf4(text: string): readonly number[] | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || parts.some((part) => !/^(?:0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255)) {
    return undefined
  }
  return parts.map(Number)
}

function bytesOf6(text: string): readonly number[] | undefined {
  const lastColon = text.lastIndexOf(':')
  const tail = text.slice(lastColon + 1)
  let head = text
  let four: readonly number[] | undefined
  if (tail.includes('.')) {
    four = bytesOf4(tail)
    if (four === undefined) return undefined
    head = `${text.slice(0, lastColon + 1)}0:0`
  }
  const halves = head.split('::')
  if (halves.length > 2) return undefined
  const groups = halves.map((half) => (half === '' ? [] : half.split(':')))
  const [left = [], right = []] = groups
  const count = left.length + right.length
  if (halves.length === 1 ? count !== 8 : count > 7) return undefined
  const filled = [...left, ...Array<string>(8 - count).fill('0'), ...right]
  if (filled.some((group) => !/^[0-9a-fA-F]{1,4}$/.test(group))) return undefined
  const bytes = filled.flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 0xff])
  return four === undefined ? bytes : [...bytes.slice(0, 12), ...four]
}

const ipText = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
const cidrText = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'

export function validateIp(text: string, at: string): readonly Cause[] {
  const bytes = addressBytes(text)
  if (bytes === undefined) {
    const decimal = text.replaceAll(/(^|\.)0+(?=\d)/g, '$1')
    return [invalidValue(at, text, addressBytes(decimal) === undefined ? ipText : 'must not have leading 0s')]
  }
  return isMapped(bytes) ? [invalidValue(at, text, 'must not be an IPv4-mapped IPv6 address')] : []
}

const isMapped = (bytes: readonly number[]): boolean =>
  bytes.length === 16 && bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff

export function validateCidr(text: string, at: string): readonly Cause[] {
  const [address = '', length = '', ...more] = text.split('/')
  const bytes = addressBytes(address)
  const bits = /^(?:0|[1-9]\d{0,2})$/.test(length) ? Number(length) : Infinity
  if (bytes === undefined || more.length > 0 || bits > bytes.length * 8) return [invalidValue(at, text, cidrText)]
  const beyond = bytes.some((byte, index) => (byte & (0xff >> Math.min(8, Math.max(0, bits - index * 8)))) !== 0)
  if (!beyond) return []
  return [invalidValue(at, text, 'must not have bits set beyond the prefix length')]
}

/** Addresses that can be the target of traffic. */
export function validateEndpointIp(text: string, at: string): readonly Cause[] {
  const bytes = addressBytes(text)
  if (bytes === undefined) return [invalidValue(at, text, 'must be a valid IP address')]
  const six = bytes.length === 16
  const [first = 0, second = 0, third = 0] = bytes
  const causes: Cause[] = []
  if (bytes.every((byte) => byte === 0)) causes.push(invalidValue(at, text, `may not be unspecified (${text})`))
  const loopback = six ? bytes.every((byte, index) => byte === (index === 15 ? 1 : 0)) : first === 127
  if (loopback) causes.push(invalidValue(at, text, 'may not be in the loopback range (127.0.0.0/8, ::1/128)'))
  if (six ? first === 0xfe && (second & 0xc0) === 0x80 : first === 169 && second === 254) {
    causes.push(invalidValue(at, text, 'may not be in the link-local range (169.254.0.0/16, fe80::/10)'))
  }
  if (six ? first === 0xff && (second & 0x0f) === 2 : first === 224 && second === 0 && third === 0) {
    causes.push(invalidValue(at, text, 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)'))
  }
  return causes
}
