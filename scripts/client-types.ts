/**
 * Generates the client's type declarations for the npm package: src/client/types.ts with every schema written out, so that they need
 * neither the schemas nor the package that derives types from them.
 */
import { readFileSync } from 'node:fs'
import type { Schema } from '../src/http/schema.ts'

export const clientTypes = async (): Promise<string> => {
  const url = new URL('../src/client/types.ts', import.meta.url)
  const source = readFileSync(url, 'utf8')
  const modules = new Map<string, Record<string, Schema>>()
  for (const [, name, path] of source.matchAll(/^import type \* as (\w+) from '(.+)'$/gm))
    modules.set(name!, await import(new URL(path!, url).href))
  const types = source.slice(source.indexOf('\nexport type PageQuery')).trim()
  const schemaOf = (module: string, name: string): Schema => {
    const schema = modules.get(module)?.[name]
    if (!schema) throw new Error(`schema ${module}.${name} not found`)
    return schema
  }
  const names = new Map<string, string>()
  for (const [, type, module, name] of types.matchAll(/^export interface (\w+)(?:<.*>)? extends (?:Omit<)?Answer<typeof (\w+)\.(\w+)>/gm))
    names.set(JSON.stringify(schemaOf(module!, name!)), type!)
  const written = types.replace(
    /(extends )?\b(Answer|Given|Filter)<typeof (\w+)\.(\w+)>( {})?/g,
    (_, isBase: string | undefined, kind: string, module: string, name: string, isEmpty: string | undefined) => {
      const body = objectOrType(schemaOf(module, name), names)
      if (kind === 'Filter') return `${isBase ?? ''}Partial<${body}>${isEmpty ?? ''}`
      return isEmpty ? body : `${isBase ?? ''}${body}`
    }
  )
  return `/** Made from the schemas of the service. */\n${written}\n`
}

/** A type itself is written out; those below it are named. */
const objectOrType = (schema: Schema, names: Names) => (schema.properties ? objectOf(schema, '', names) : typeOf(schema, '', names))

/** Names of types by their schema. */
type Names = ReadonlyMap<string, string>

const typeOf = (schema: Schema, indent: string, names: Names): string => {
  const named = schema.properties && names.get(JSON.stringify(schema))
  if (named) return named
  const { type, enum: values, anyOf, items, properties, additionalProperties, patternProperties } = schema
  if (schema['x-json']) return 'unknown'
  if (values) return values.map(literal).join(' | ')
  if (anyOf) return anyOf.map(member => typeOf(member, indent, names)).join(' | ')
  if (Array.isArray(type)) return type.map(name => (name === 'null' ? name : typeOf({ ...schema, type: name }, indent, names))).join(' | ')
  if (type === 'array') return listOf(typeOf(items ?? {}, indent, names))
  if (properties) return objectOf(schema, indent, names)
  if (typeof additionalProperties === 'object') return `Record<string, ${typeOf(additionalProperties, indent, names)}>`
  if (patternProperties)
    return `Record<string, ${Object.values(patternProperties)
      .map(member => typeOf(member, indent, names))
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

const objectOf = ({ properties = {}, required = [] }: Schema, indent: string, names: Names): string => {
  const inner = `${indent}  `
  const members = Object.entries(properties).map(([name, member]) => {
    const comment = member.description ? `${inner}/** ${member.description} */\n` : ''
    return `${comment}${inner}${name}${required.includes(name) ? '' : '?'}: ${typeOf(member, inner, names)}`
  })
  return `{\n${members.join('\n')}\n${indent}}`
}

const literal = (value: unknown) => (typeof value === 'string' ? `'${value}'` : String(value))
