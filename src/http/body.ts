/** Reading bodies: JSON only, and strictly; members declared as free JSON are kept as text. Each route has a limit, known from its schema. */
import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError, notJson } from '../errors.ts'
import { type Free, JsonError, MAX_LEVELS, type Split, unite } from '../json/canonical-json.ts'
import { createLargeJson, type LargeJson } from '../json/large-json.ts'
import type { Schema } from './schema.ts'

/** Maximum bytes of a body without free JSON, unless its route sets another. */
export const MAX_BODY = 16 * 1024
/** Maximum bytes of a body with free JSON. */
export const MAX_FREE_BODY = 2 * 1024 * 1024
/** Maximum bytes, in canonical form, of the rest of such a body, which is parsed. */
const MAX_REST = 64 * 1024

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The free JSON members of the body, if its schema does not mark them. */
    free?: Free
  }
  interface FastifyRequest {
    /** SHA-256 of the body as sent, on requests with an Idempotency-Key. */
    bodyHash: Buffer | null
  }
  interface FastifyInstance {
    largeJson: LargeJson
  }
}

export default fp(
  async (app: FastifyInstance) => {
    app.decorateRequest('bodyHash', null)
    const json = createLargeJson()
    app.decorate('largeJson', json)
    app.addHook('onClose', json.close)

    app.addHook('onRoute', route => {
      if (freeOf(route).names.length > 0) route.bodyLimit ??= MAX_FREE_BODY
    })
    app.addHook('onRequest', (request, reply, done) => {
      if (request.is404) app.refuseUnknown(request, reply)
      else done()
    })

    app.removeAllContentTypeParsers()
    const parse = parser(json)
    app.addContentTypeParser<Buffer>(/^application\/([\w.-]+\+)?json\s*(;|$)/, { parseAs: 'buffer' }, parse)
    // A body without Content-Type is read as JSON.
    app.addContentTypeParser<Buffer>('*', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
      if (body.length && request.headers['content-type']) throw notJson()
      return parse(request, body)
    })
  },
  { name: 'body' }
)

const parser =
  (json: LargeJson) =>
  async (request: FastifyRequest, body: Buffer): Promise<unknown> => {
    if (!body.length) return undefined
    if (request.headers['idempotency-key'] !== undefined) request.bodyHash = createHash('sha256').update(body).digest()
    const { 'content-encoding': encoding = 'identity' } = request.headers
    if (encoding !== 'identity') throw new ApiError('validation_error', 'Send the body uncompressed.', { status: 415 })
    const free = freeOf(request.routeOptions)
    try {
      // Deeper by the levels around a free member, so that its own are counted where it is read again.
      const parts = await json.split(body, free, MAX_LEVELS + (free.depth ?? 0))
      return uniteSmall(parts, free)
    } catch (error) {
      if (!(error instanceof JsonError)) throw error
      throw new ApiError('validation_error', `Invalid JSON in the request body: ${error.message}.`, { cause: error })
    }
  }

/** Parses a body without its free members, if that is small. @throws ApiError payload_too_large */
export const uniteSmall = (parts: Split, { names }: Free): unknown => {
  if (names.length > 0 && parts.rest.length > MAX_REST)
    throw new ApiError('payload_too_large', `Request body too large: the maximum is 64 KB, not counting ${names.join(', ')}.`)
  return unite(parts)
}

type Route = { schema?: FastifySchema; config?: { free?: Free } }

const freeOfSchema = new WeakMap<Schema, Free>()
const none: Free = { names: [] }

/** The free members of a route's body. */
const freeOf = ({ schema, config }: Route): Free => {
  if (config?.free) return config.free
  const body = schema?.body as Schema | undefined
  if (!body) return none
  let free = freeOfSchema.get(body)
  if (!free) {
    free = { names: Object.entries(body.properties ?? {}).flatMap(([name, member]) => (member['x-json'] ? [name] : [])) }
    freeOfSchema.set(body, free)
  }
  return free
}
