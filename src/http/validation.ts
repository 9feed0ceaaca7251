/** Request validation: TypeBox's compiler checks, and this module reports errors in the API's format. */
import type { FastifyRequest, FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { Settings } from 'typebox/system'
import { type Detail, invalid } from '../errors.ts'
import { isObject, Json } from '../json/canonical-json.ts'
import type { Schema } from './schema.ts'
import { explain, shown } from './validation-errors.ts'

// The default of 8 counts each branch of a union; much more would let one request make a long list.
Settings.Set({ maxErrors: 50 })

const places: Record<string, string> = { body: 'body', querystring: 'query', params: 'path', headers: 'header' }

/** Compiled once for the apps of all cells, which share the schemas. */
const compiled = new WeakMap<TSchema, Validator>()

/**
 * Validates one part of a request. Fills in defaults, drops members of bodies that the schema neither names nor forbids, and parses numbers
 * and booleans in queries and paths. Bodies are not coerced: `"5"` is not a number.
 */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const validator = compiled.get(schema) ?? Compile(schema)
  compiled.set(schema, validator)
  const root = schema as Schema
  const place = places[httpPart!] ?? 'body'
  const optional = httpPart === 'body' && (root.required ?? []).every(name => root.properties?.[name]?.default !== undefined)
  return (input: unknown) => {
    const value = optional && (input === undefined || input === null) ? {} : input
    if (httpPart === 'body' && value === null && !accepts(root, 'null')) {
      return { error: invalid([{ type: 'missing', loc: ['body'], msg: 'Field required: send a JSON body', input: null }]) }
    }
    // Headers belong to the request and are read elsewhere, so they stay unchanged.
    const unknown: string[] = []
    if (httpPart !== 'headers') prepare(root, value, httpPart !== 'body', unknown)
    if (unknown.length > 0) ignored.set(value as object, unknown)
    const wrong = httpPart === 'body' ? wrongJson(root, value) : []
    if (!wrong.length && validator.Check(value)) return { value }
    return { error: explain(root, validator.Errors(value), place, value, wrong) }
  }
}

/** The paths of members that were dropped, by the value they were dropped from. */
const ignored = new WeakMap<object, string[]>()

/** The members of a validated body that its schema does not name, such as `retry.max_attemps`. They were dropped. */
export const ignoredMembers = (body: object): readonly string[] => ignored.get(body) ?? []

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Accepts query parameters that its schema does not name: pages, whose links get tracking parameters, and receivers of webhooks. */
    anyQuery?: (request: FastifyRequest) => boolean
  }
}

/** Refuses query parameters that the route doesn't have: a misspelt filter would be ignored. @throws ApiError validation_error */
export const refuseUnknownQuery = (request: FastifyRequest): void => {
  const query = request.query as Record<string, unknown>
  if (Object.keys(query).length === 0) return
  const { schema, config } = request.routeOptions
  if (schema?.hide || config.anyQuery?.(request)) return
  const names = Object.keys((schema?.querystring as Schema | undefined)?.properties ?? {})
  const unknown = Object.keys(query).filter(name => !names.includes(name))
  const msg = `Unknown query parameter. This route has ${names.length > 0 ? names.join(', ') : 'none'}.`
  const detail = unknown.map(name => ({ type: 'extra_forbidden', loc: ['query', name], msg, input: shown(query[name], [name]) }))
  if (detail.length > 0) throw invalid(detail)
}

const accepts = ({ type, anyOf }: Schema, name: string): boolean =>
  type === name || (Array.isArray(type) && type.includes(name)) || (anyOf?.some(branch => accepts(branch, name)) ?? false)

/** Fills, drops and reads in place; see above. Adds the paths of dropped members to `unknown`. Does not look into unions. */
const prepare = (schema: Schema, value: unknown, textual: boolean, unknown: string[], path = ''): void => {
  if (Array.isArray(value) && schema.items) {
    for (const [i, item] of value.entries()) prepare(schema.items, item, textual, unknown, `${path}${i}.`)
  }
  if (!isObject(value) || value instanceof Json || !schema.properties) return
  if (schema.additionalProperties === undefined) {
    for (const name of Object.keys(value)) {
      if (Object.hasOwn(schema.properties, name)) continue
      unknown.push(path + name)
      delete value[name]
    }
  }
  for (const name of Object.keys(schema.properties)) {
    const member = schema.properties[name]!
    if (value[name] === undefined) {
      if (member.default !== undefined) value[name] = structuredClone(member.default)
    } else if (textual) value[name] = read(member, value[name])
    else prepare(member, value[name], false, unknown, `${path}${name}.`)
  }
}

const read = (schema: Schema, text: unknown): unknown => {
  if (typeof text !== 'string') return text
  // A list that was given once.
  if (schema.type === 'array') return [text]
  if (accepts(schema, 'integer') && /^-?\d{1,15}$/.test(text)) return Number(text)
  if (accepts(schema, 'number') && /^-?\d{1,15}(\.\d{1,15})?$/.test(text)) return Number(text)
  if (accepts(schema, 'boolean') && /^(true|false)$/i.test(text)) return text.toLowerCase() === 'true'
  return text
}

/** Members that are kept as JSON text, and must be objects or arrays. A null is passed on as null where the schema takes one. */
const wrongJson = (schema: Schema, value: unknown): Detail[] => {
  if (!isObject(value) || !schema.properties) return []
  const wrong: Detail[] = []
  for (const [name, member] of Object.entries(schema.properties)) {
    const json = value[name]
    const kind = member['x-json']
    if (!kind || kind === 'any' || !(json instanceof Json)) continue
    if (json.text === 'null' && member['x-nullable']) value[name] = null
    else if (json.text[0] !== (kind === 'object' ? '{' : '[')) {
      const [type, what] = kind === 'object' ? ['dict_type', 'an object'] : ['list_type', 'a list']
      wrong.push({ type, loc: ['body', name], msg: `Input should be ${what}`, input: shown(json, [name]) })
    }
  }
  return wrong
}
