const standard = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Why a text is not base64. Internal to decoding, where it becomes ERR_TYPE. */
export class Base64Error extends Error {}

/**
 * The canonical text of padded standard base64: line breaks gone, unused bits zero.
 * @throws Base64Error with the text of Go's error
 */
export function canonicalBase64(text: string): string {
  const joined = text.includes('\n') || text.includes('\r') ? text.replaceAll(/[\r\n]/g, '') : text
  if (!standard.test(joined)) throw new Base64Error(`illegal base64 data at input byte ${badByte(text)}`)
  if (!joined.endsWith('=')) return joined
  return Buffer.from(joined, 'base64').toString('base64')
}

/** Index of the byte that Go's decoder complains about. */
function badByte(text: string): number {
  let quantum = 0
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '\n' || char === '\r') continue
    if (char === '=') {
      if (quantum < 2) return at
      if (quantum === 2) {
        let next = at + 1
        while (text.charAt(next) === '\n' || text.charAt(next) === '\r') next++
        if (text.charAt(next) !== '=') return next
        at = next
      }
      let after = at + 1
      while (text.charAt(after) === '\n' || text.charAt(after) === '\r') after++
      return after
    }
    if (!/[A-Za-z0-9+/]/.test(char)) return at
    quantum = (quantum + 1) % 4
  }
  return text.length - quantum
}
