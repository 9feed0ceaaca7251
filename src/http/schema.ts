import type { ErrorCode } from '../errors.ts'

/** The parts of JSON Schema that validation and serialization use. */
export type Schema = {
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  enum?: unknown[]
  additionalProperties?: boolean | Schema
  format?: string
  pattern?: string
  patternProperties?: Record<string, Schema>
  default?: unknown
  description?: string
  examples?: unknown[]
  'x-json'?: 'any' | 'object' | 'array'
  'x-nullable'?: boolean
  'x-error'?: { code: ErrorCode; message: string }
}

type Publishing = {
  /** Members with a default are optional. */
  isRequest?: boolean
  /** Leaves out descriptions and examples. */
  isBrief?: boolean
  /** Describes free JSON of any kind. */
  anyJson?: Schema
  /** Collects the codes of `orElse`. */
  codes?: Set<ErrorCode>
}

/** Replaces our own keywords by standard ones, and adds the types of enums. */
export const published = (schema: Schema, options: Publishing = {}): Schema => {
  const { isRequest = false, isBrief = false, anyJson = {}, codes } = options
  const { 'x-json': json, 'x-nullable': nullable, 'x-error': refusal, patternProperties, ...node } = schema
  // A record with any names.
  if (patternProperties) node.additionalProperties = Object.values(patternProperties)[0]!
  if (isBrief) for (const name of ['description', 'examples'] as const) delete node[name]
  if (refusal) codes?.add(refusal.code)
  if (json === 'any') Object.assign(node, anyJson)
  if (json === 'object') Object.assign(node, { type: nullable ? ['object', 'null'] : 'object', additionalProperties: true })
  if (json === 'array') Object.assign(node, { type: nullable ? ['array', 'null'] : 'array', items: node.items ?? anyJson })
  if (node.format) delete node.pattern // says the same again
  if (node.enum) node.type ??= typesOf(node.enum)
  if (node.properties) {
    node.properties = Object.fromEntries(Object.entries(node.properties).map(([name, member]) => [name, published(member, options)]))
    if (isRequest) node.required = node.required?.filter(name => node.properties![name]?.default === undefined)
  }
  if (typeof node.additionalProperties === 'object') node.additionalProperties = published(node.additionalProperties, options)
  if (node.items) node.items = published(node.items, options)
  if (node.anyOf) node.anyOf = node.anyOf.map(branch => published(branch, options))
  return node
}

const typesOf = (values: unknown[]): string | string[] => {
  const types = [...new Set(values.map(value => (value === null ? 'null' : typeof value)))]
  return types.length === 1 ? types[0]! : types
}
