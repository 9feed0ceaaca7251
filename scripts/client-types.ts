/**
 * Generates the client's type declarations for the npm package: src/client/types.ts with every schema written out, so that they need
 * neither the schemas nor the package that derives types from them.
 */
import { readFileSync } from 'node:fs'

type Schema = {
  type?: string | string[]
  enum?: unknown[]
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  patternProperties?: Record<string, Schema>
  required?: string[]
  description?: string
  'x-json'?: string
}

export const clientTypes = async (): Promise<string> => {
  const url = new URL('../src/client/types.ts', import.meta.url)
  const source = readFileSync(url, 'utf8')
  const modules = new Map<string, Record<string, Schema>>()
  for (const [, name, path] of source.matchAll(/^import type \* as (\w+) from '(.+)'$/gm))
    modules.set(name!, await import(new URL(path!, url).href))
  const types = source.slice(source.indexOf('\nexport type ')).trim()
  const written = types.replace(/\b(Answer|Given|Filter)<typeof (\w+)\.(\w+)>/g, (_, kind: string, module: string, name: string) => {
    const schema = modules.get(module)?.[name]
    if (!schema) throw new Error(`schema ${module}.${name} not found`)
    return kind === 'Filter' ? `Partial<${typeOf(schema)}>` : typeOf(schema)
  })
  return `/** Made from the schemas of the service. */\n${written}\n`
}

const typeOf = (schema: Schema, indent = ''): string => {
  const { type, enum: values, anyOf, items, properties, additionalProperties, patternProperties } = schema
  if (schema['x-json']) return 'unknown'
  if (values) return values.map(literal).join(' | ')
  if (anyOf) return anyOf.map(one => typeOf(one, indent)).join(' | ')
  if (Array.isArray(type)) return type.map(one => (one === 'null' ? one : typeOf({ ...schema, type: one }, indent))).join(' | ')
  if (type === 'array') return listOf(typeOf(items ?? {}, indent))
  if (properties) return objectOf(schema, indent)
  if (typeof additionalProperties === 'object') return `Record<string, ${typeOf(additionalProperties, indent)}>`
  if (patternProperties)
    return `Record<string, ${Object.values(patternProperties)
      .map(one => typeOf(one, indent))
      .join(' | ')}>`
  const plain: Record<string, string> = {
    string: 'string',
    integer: 'number',
    number: 'number',
    boolean: 'boolean',
    null: 'null',
    object: 'object'
  }
  if (type === undefined) return 'unknown'
  if (!plain[type]) throw new Error(`no TypeScript type for schema type ${type}`)
  return plain[type]
}

const listOf = (item: string) => (/[|\n]/.test(item) ? `Array<${item}>` : `${item}[]`)

const objectOf = ({ properties = {}, required = [] }: Schema, indent: string): string => {
  const inner = `${indent}  `
  const members = Object.entries(properties).map(([name, member]) => {
    const comment = member.description ? `${inner}/** ${member.description} */\n` : ''
    return `${comment}${inner}${name}${required.includes(name) ? '' : '?'}: ${typeOf(member, inner)}`
  })
  return `{\n${members.join('\n')}\n${indent}}`
}

const literal = (value: unknown) => (typeof value === 'string' ? `'${value}'` : String(value))
