/** An IPv4 or IPv6 address in its usual text form, without brackets, port or zone. */
export function isIpAddress(text: string): boolean {
  return isIpv4(text) || isIpv6(text)
}

function isIpv4(text: string): boolean {
  const parts = text.split('.')
  return parts.length === 4 && parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)
}

function isIpv6(text: string): boolean {
  return text.includes(':') && /^[0-9a-fA-F:.]+$/.test(text) && URL.canParse(`http://[${text}]/`)
}

/** As it stands in a URL: IPv6 in brackets. */
export function hostInUrl(address: string): string {
  return address.includes(':') ? `[${address}]` : address
}
