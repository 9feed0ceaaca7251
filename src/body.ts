/** Reading bodies: JSON only, and strictly; members declared as free JSON are kept as text, and so is a whole body that is. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { canonicalJson, Json, JsonError, MAX_LEVELS, readJson } from './deliveries/canonical-json.ts'
import { ApiError, notJson } from './errors.ts'
import type { Schema } from './validation.ts'

export default fp(
  async (app: FastifyInstance) => {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser<Buffer>(
      /^application\/([\w.-]+\+)?json\s*(;|$)/,
      { parseAs: 'buffer' },
      async (request: FastifyRequest, body: Buffer) => parse(request, body)
    )
    // Also for bodies of no type at all, which are taken for JSON.
    app.addContentTypeParser<Buffer>('*', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
      if (body.length && request.headers['content-type'] && !request.is404) {
        throw notJson()
      }
      return parse(request, body)
    })
  },
  { name: 'body' }
)

const parse = (request: FastifyRequest, body: Buffer): unknown => {
  if (!body.length || request.is404) return undefined
  const { 'content-encoding': encoding = 'identity' } = request.headers
  if (encoding !== 'identity') throw new ApiError('validation_error', 'Send the body uncompressed.', { status: 415 })
  const schema = request.routeOptions.schema?.body as Schema | undefined
  try {
    // A payload within a list of MCP's messages nests as deep as one elsewhere.
    if (schema?.['x-json']) return new Json(canonicalJson(body, MAX_LEVELS + 4), body.length)
    return readJson(body, schema ? freeMembers(schema) : [])
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw new ApiError('validation_error', `The body is not acceptable JSON: ${error.message}.`, { cause: error })
  }
}

const known = new WeakMap<Schema, string[]>()

const freeMembers = (schema: Schema): string[] => {
  const names = known.get(schema) ?? Object.entries(schema.properties ?? {}).flatMap(([name, member]) => (member['x-json'] ? [name] : []))
  known.set(schema, names)
  return names
}
