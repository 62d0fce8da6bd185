/** One clause of an Accept header: `application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;q=0.9`. */
export interface MediaClause {
  /** Lower case, "*" for wildcards. */
  readonly type: string
  readonly parameters: Readonly<Record<string, string>>
}

const clausesMax = 64

/** In order of preference: higher q first, then as written. Clauses with q=0 are left out. */
export function acceptClauses(header: string | undefined): readonly MediaClause[] {
  if (header === undefined || header.trim() === '') return [{ type: '*/*', parameters: {} }]
  return header
    .split(',')
    .slice(0, clausesMax)
    .map((text, order) => {
      const [type = '', ...rest] = text.split(';').map((part) => part.trim())
      const parameters: Record<string, string> = Object.create(null)
      for (const part of rest) {
        const mark = part.indexOf('=')
        if (mark > 0) parameters[part.slice(0, mark).trim().toLowerCase()] = part.slice(mark + 1).replaceAll('"', '')
      }
      const quality = parameters['q'] === undefined ? 1 : Number(parameters['q'])
      return { type: type.toLowerCase(), parameters, quality: Number.isFinite(quality) ? quality : 0, order }
    })
    .filter(({ type, quality }) => type !== '' && quality > 0)
    .sort((a, b) => b.quality - a.quality || a.order - b.order)
}

export function acceptsJson({ type }: MediaClause): boolean {
  return type === 'application/json' || type === 'application/*' || type === '*/*'
}

/** The formats of plain discovery and of objects alike. */
export const plainMediaTypes = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'] as const
export type PlainMediaType = (typeof plainMediaTypes)[number]

/** The format a clause asks for; undefined when it is none of ours. */
export function plainMediaType(clause: MediaClause): PlainMediaType | undefined {
  return acceptsJson(clause) ? 'application/json' : plainMediaTypes.find((type) => type === clause.type)
}
