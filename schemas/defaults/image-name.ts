/**
 * The tag of an image reference, as far as defaulting needs it: `[domain[:port]/]path[:tag][@digest]`, the grammar of
 * the distribution project. A text that does not fit it has no tag; a name with neither tag nor digest means "latest".
 */
const component = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])'
const domain = `(?:${component}(?:\\.${component})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`
const path = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*'
const digest = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}'
const reference = new RegExp(`^(?:${domain}/)?${path}(?:/${path})*(?::(\\w[\\w.-]{0,127}))?(?:@(${digest}))?$`)

/** Digests that are one: an algorithm that is known, and as many digits as it gives. */
const digestPattern = /^(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$/
/** Looks like the identifier of an image and is refused as a name. */
const identifierPattern = /^[0-9a-f]{64}$/
/** Name (255), tag (128) and digest: more cannot be a reference, and is not worth a match. */
const referenceLengthMax = 600

export function imageTag(image: string): string {
  if (image.length > referenceLengthMax || identifierPattern.test(image)) return ''
  const match = reference.exec(image)
  if (match === null) return ''
  const [, tag, found] = match
  if (found !== undefined && !digestPattern.test(found)) return ''
  return tag ?? (found === undefined ? 'latest' : '')
}
