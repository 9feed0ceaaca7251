/** Serves the API description, which `npm run generate` makes from the routes' schemas. */
import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { Type } from 'typebox'
import type { ErrorCode } from '../errors.ts'
import { type Fixed, fixed, sendFixed } from '../http/fixed.ts'
import { ErrorBody } from '../schemas.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Error codes specific to this route. Those that follow from its scope, limits and schemas are added automatically. */
    errors?: ErrorCode[]
    /** The route reads a body of any type itself. */
    rawBody?: boolean
  }
}

const file = new URL('../openapi.json', import.meta.url)
const error = { $ref: 'Error#' }

export default fp(
  async (app: FastifyInstance) => {
    app.addSchema(ErrorBody)
    app.addHook('onRoute', ({ schema }) => {
      if (schema && !schema.hide) schema.response = { ...(schema.response as object), '4xx': error, '5xx': error }
    })
    let document: Fixed | undefined
    app.get(
      '/openapi.json',
      {
        config: { public: true },
        schema: {
          operationId: 'getDescription',
          summary: 'This description as OpenAPI 3.1',
          description: 'Generated from what the service validates with.',
          response: { 200: Type.Object({}, { additionalProperties: true }) }
        }
      },
      async (request, reply) => {
        document ??= fixed(JSON.stringify(JSON.parse(readFileSync(file, 'utf8'))))
        return sendFixed(request, reply.type('application/json; charset=utf-8').header('cache-control', 'public, max-age=60'), document)
      }
    )
  },
  { name: 'description' }
)
