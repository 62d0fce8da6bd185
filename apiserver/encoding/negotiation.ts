import { acceptClauses, type MediaClause } from '../discovery/media-clause.ts'
import { ApiError } from '../errors.ts'
import type { ApiRequest } from '../types.ts'

const mediaOf = {
  'application/json': 'json',
  'application/yaml': 'yaml',
  'application/vnd.kubernetes.protobuf': 'protobuf',
} as const
type MediaType = keyof typeof mediaOf

/** How an answer is to be written. */
export interface AnswerFormat {
  readonly media: 'json' | 'yaml' | 'protobuf'
  readonly pretty: boolean
  readonly as: 'Object' | 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList'
  /** Of meta.k8s.io, for what is not an Object. */
  readonly metaVersion: 'v1' | 'v1beta1'
  /** What Table rows carry beside their cells. */
  readonly rowObject: 'None' | 'Metadata' | 'Object'
  readonly contentType: MediaType
}

const accepted = Object.keys(mediaOf)
const acceptedOfWatch = ['application/json;stream=watch', 'application/vnd.kubernetes.protobuf;stream=watch']

export function notAcceptable(media: readonly string[] = accepted): ApiError {
  return new ApiError(406, 'NotAcceptable', `only the following media types are accepted: ${media.join(', ')}`)
}

/**
 * Chooses the first Accept clause that can be served, preferring higher q (kubernetes/apiserver
 * endpoints/handlers/negotiation). A Table has no protobuf form.
 *
 * @param use - 'value': things without metadata, which have no Table; 'watch': streams, which are never YAML.
 * @throws ApiError 406; 400 for an unknown includeObject.
 */
export function negotiate(request: ApiRequest, use: 'object' | 'value' | 'watch'): AnswerFormat {
  const pretty = use !== 'watch' && wantsPretty(request)
  for (const clause of acceptClauses(request.headers['accept'])) {
    const contentType = mediaType(clause, use)
    const as = transformation(clause, use)
    if (contentType === undefined || as === undefined) continue
    const media = mediaOf[contentType]
    if (media === 'protobuf' && as === 'Table') continue
    return {
      media,
      pretty: pretty && media === 'json',
      as,
      metaVersion: clause.parameters['v'] === 'v1beta1' ? 'v1beta1' : 'v1',
      rowObject: as === 'Table' ? rowObject(request) : 'Metadata',
      contentType,
    }
  }
  throw notAcceptable(use === 'watch' ? acceptedOfWatch : accepted)
}

function mediaType(clause: MediaClause, use: 'object' | 'value' | 'watch'): MediaType | undefined {
  switch (clause.type) {
    case '*/*':
    case 'application/*':
    case 'application/json':
      return 'application/json'
    case 'application/yaml':
      return use === 'watch' ? undefined : clause.type
    case 'application/vnd.kubernetes.protobuf':
      return clause.type
    default:
      return undefined
  }
}

/** Of the stream itself: protobuf says that it comes in frames. */
export function watchContentType(format: AnswerFormat): string {
  return format.media === 'protobuf' ? `${format.contentType};stream=watch` : format.contentType
}

/** In what a Status, which answers any request, is wanted: by the first clause that names a known format; else JSON. */
export function statusMedia(accept: string | undefined): AnswerFormat['media'] {
  for (const clause of acceptClauses(accept)) {
    const type = mediaType(clause, 'object')
    if (type !== undefined) return mediaOf[type]
  }
  return 'json'
}

function transformation(clause: MediaClause, use: 'object' | 'value' | 'watch'): AnswerFormat['as'] | undefined {
  const { as, g, v, stream } = clause.parameters
  if (stream !== undefined && (use !== 'watch' || stream !== 'watch')) return undefined
  if (as === undefined) return 'Object'
  if (use === 'value' || g !== 'meta.k8s.io' || (v !== 'v1' && v !== 'v1beta1')) return undefined
  return as === 'Table' || as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList' ? as : undefined
}

function rowObject(request: ApiRequest): AnswerFormat['rowObject'] {
  const asked = request.query.get('includeObject') ?? ''
  if (asked === '') return 'Metadata'
  if (asked === 'None' || asked === 'Metadata' || asked === 'Object') return asked
  throw new ApiError(400, 'BadRequest', `unrecognized includeObject value: ${JSON.stringify(asked)}`)
}

/** `?pretty=`, else people's tools get indented JSON. */
function wantsPretty(request: ApiRequest): boolean {
  const asked = request.query.get('pretty')
  if (asked !== null && asked !== '') return /^(1|t|true)$/i.test(asked)
  return /^(curl|Wget|Mozilla\/5\.0)/.test(request.headers['user-agent'] ?? '')
}
