import { ApiError } from '../errors.ts'

/** Type and subtype of a Content-Type header, parameters dropped, lower case; "" when the header is missing. */
export function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

export type BodyFormat = 'json' | 'yaml' | 'protobuf'

const bodyTypes = new Map<string, BodyFormat>([
  ['application/json', 'json'],
  ['application/yaml', 'yaml'],
  ['application/vnd.kubernetes.protobuf', 'protobuf'],
])

/** Of an object in a body. A missing header means JSON, as in kube-apiserver. */
export function bodyFormat(contentType: string | undefined): BodyFormat {
  const type = mediaTypeOf(contentType)
  if (type === '') return 'json'
  const format = bodyTypes.get(type)
  if (format === undefined) throw unsupportedMediaType([...bodyTypes.keys()])
  return format
}

export function unsupportedMediaType(accepted: readonly string[]): ApiError {
  return new ApiError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )
}
