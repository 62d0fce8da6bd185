/** Every type of schemas/data against the .proto files that Kubernetes publishes: names, field numbers, wire types. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { testWith } from '../external.ts'
import { repositoryRoot } from '../repository.ts'
import { go, goDirectory, installGo, runGo } from './go-modules.ts'

const data = join(repositoryRoot(), 'schemas/data')
/** Where the sources of a module lie; undefined when they cannot be had. */
async function moduleFolder(module: string): Promise<string | undefined> {
  if (go === undefined) return undefined
  if ((await runGo(['mod', 'download', module])).failed) return undefined
  const found = await runGo(['list', '-m', '-f', '{{.Dir}}', module])
  return found.failed ? undefined : found.output.trim()
}

const api = await moduleFolder('k8s.io/api')
const machinery = await moduleFolder('k8s.io/apimachinery')

interface ProtoField {
  readonly number: number
  readonly type: string
  readonly repeated: boolean
}

/** The messages of a .proto file; field names in lower case, since JSON and Go disagree on capitals here and there. */
function messagesOf(text: string): Map<string, Map<string, ProtoField>> {
  const messages = new Map<string, Map<string, ProtoField>>()
  for (const [, message = '', body = ''] of text.matchAll(/^message (\w+) \{\n(.*?)^\}/gms)) {
    const fields = new Map<string, ProtoField>()
    for (const line of body.matchAll(/^\s+(?:(repeated|optional) )?(map<[^>]*>|[\w.]+) (\w+) = (\d+);/gm)) {
      const [, label, type = '', name = '', number] = line
      fields.set(name.toLowerCase(), { number: Number(number), type, repeated: label === 'repeated' })
    }
    messages.set(message, fields)
  }
  return messages
}

type FieldLine = readonly [
  name: string,
  number: number,
  type: string,
  presence: string,
  extras?: { readonly in?: string },
]

interface DataFile {
  readonly package: string
  readonly types: Readonly<Record<string, { readonly fields: readonly FieldLine[] }>>
}

function protoFile(packageName: string): string | undefined {
  if (api === undefined || machinery === undefined) return undefined
  const [, group, version] = /^io\.k8s\.api\.(\w+)\.(\w+)$/.exec(packageName) ?? []
  if (group !== undefined && version !== undefined) return join(api, group, version, 'generated.proto')
  return packageName.endsWith('.apis.meta.v1') ? join(machinery, 'pkg/apis/meta/v1/generated.proto') : undefined
}

const scalars = ['string', 'bool', 'int32', 'int64', 'double', 'bytes']

/** "" when the line of data says what the .proto says. Verbs is a list in a message of its own. */
function difference([name, number, type]: FieldLine, published: ProtoField | undefined): string {
  if (published === undefined) return `${name} is not published`
  if (published.number !== number) return `${name} is number ${published.number}, not ${number}`
  if (published.type === 'Verbs') return ''
  if (published.repeated !== type.startsWith('[]')) return `${name} is ${published.repeated ? '' : 'not '}a list`
  if (published.type.startsWith('map<') !== type.startsWith('{}')) return `${name}: ${type}, not ${published.type}`
  const own = type.replace(/^(?:\[\]|\{\})/, '')
  const wire = published.type.replace(/^map<string, ?(.*)>$/, '$1')
  const expected = own.startsWith('enum:') ? 'string' : own
  if ((scalars.includes(expected) || scalars.includes(wire)) && expected !== wire) return `${name}: ${own}, not ${wire}`
  return ''
}

const version = /k8s\.io\/api (\S+)/.exec(readFileSync(join(goDirectory, 'go.mod'), 'utf8'))?.[1] ?? ''
const program = {
  name: 'published types',
  path: go,
  version,
  install: installGo,
  ...(go !== undefined &&
    (api === undefined || machinery === undefined) && {
      unusable: 'the modules k8s.io/api and apimachinery cannot be had',
    }),
}

for (const name of readdirSync(data).filter((file) => file.endsWith('-v1.json') || file.endsWith('-v2.json'))) {
  const file = JSON.parse(readFileSync(join(data, name), 'utf8')) as DataFile
  if (!/^io\.k8s\.api\.|\.apis\.meta\.v1$/.test(file.package)) continue // of modules that client-go does not bring

  testWith(program, `${file.package} is what is published`, async () => {
    const path = protoFile(file.package)
    assert.ok(path !== undefined && existsSync(path), `${file.package} has no .proto`)
    const messages = messagesOf(readFileSync(path, 'utf8'))
    const differences: string[] = []
    for (const [typeName, { fields }] of Object.entries(file.types)) {
      if (typeName.startsWith('Table')) continue // JSON only
      const published = messages.get(typeName)
      if (published === undefined) differences.push(`${typeName} is not published`)
      const embedded = new Set(fields.flatMap(([, , , , extras]) => extras?.in?.split(':')[0]?.toLowerCase() ?? []))
      for (const line of fields) {
        if (line[4]?.in !== undefined || published === undefined) continue // below another message there
        const found = difference(line, published.get(line[0].toLowerCase()))
        if (found !== '') differences.push(`${typeName}.${found}`)
      }
      const known = new Set(fields.map(([field]) => field.toLowerCase()))
      for (const field of published?.keys() ?? []) {
        // an embedded struct is a field there and its own fields here: ProbeHandler is "handler"
        const flattened = embedded.has(field) || [...embedded].some((struct) => struct.endsWith(field))
        if (!known.has(field) && !flattened) differences.push(`${typeName}.${field} is missing`)
      }
    }
    assert.deepEqual(differences, [])
  })
}
