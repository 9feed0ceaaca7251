/** Serializes responses: by the compiled schema, with stored JSON inserted as text. */
import fastJson from 'fast-json-stringify'
import type { FastifyServerOptions } from 'fastify'
import type { Json } from '../json/canonical-json.ts'
import type { Schema } from './schema.ts'

type Compilers = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>

/** Compiles response schemas. A schema is the allow-list: other members are not written. */
export const buildSerializer = ((shared: Shared) =>
  ({ schema }: { schema: Schema }) =>
    serializerOf(schema, shared)) as unknown as NonNullable<Compilers['buildSerializer']>

type Shared = Record<string, fastJson.Schema>
type Serializer = (value: unknown) => string

/** Compiling takes a millisecond or more, and most routes share the schema of errors. */
const compiled = new WeakMap<Schema, Serializer>()

const serializerOf = (schema: Schema, shared: Shared): Serializer => {
  const serialize = compiled.get(schema) ?? compile(schema, shared)
  compiled.set(schema, serialize)
  return serialize
}

const compile = (schema: Schema, shared: Shared): Serializer => {
  const spliced = withTexts(schema)
  if (spliced === schema) return fastJson(schema as fastJson.Schema, { schema: shared })
  // In debug mode, the code comes separately from the functions it calls, one of which is replaced by ours.
  const { code, validator, serializer } = fastJson(spliced as fastJson.Schema, { schema: shared, mode: 'debug' }) as unknown as Compiled
  return new Function('validator', 'serializer', code)(validator, Object.assign(serializer, { asUnsafeString: textOf }))
}

type Compiled = { code: string; validator: unknown; serializer: object }

const textOf = (json: Json | null): string => (json === null ? 'null' : json.text)

/** Replaces free JSON in a schema by a string that `asUnsafeString` writes; returns the schema itself if it has none. */
const withTexts = (schema: Schema): Schema => {
  if (schema['x-json']) return { type: 'string', format: 'unsafe' } as Schema
  let changed = schema
  if (schema.properties) {
    const members = Object.entries(schema.properties).map(([name, member]) => [name, withTexts(member), member] as const)
    if (members.some(([, now, before]) => now !== before)) {
      changed = { ...changed, properties: Object.fromEntries(members.map(([name, now]) => [name, now])) }
    }
  }
  if (typeof schema.additionalProperties === 'object') {
    const additional = withTexts(schema.additionalProperties)
    if (additional !== schema.additionalProperties) changed = { ...changed, additionalProperties: additional }
  }
  const items = schema.items && withTexts(schema.items)
  return items === schema.items ? changed : { ...changed, items }
}
