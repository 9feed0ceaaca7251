/** Serves the API description, which `npm run generate` makes from the routes' schemas. */
import { readFileSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { Type } from 'typebox'
import { type ErrorCode, mayHaveChanged, statuses } from '../errors.ts'
import { type Fixed, fixed, sendFixed } from '../http/fixed.ts'
import { published, type Schema } from '../http/schema.ts'
import { ErrorBody } from '../schemas.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Error codes specific to this route. Those that follow from its scope, limits and schemas are added automatically. */
    errors?: ErrorCode[]
  }
}

const tags = {
  cues: 'Scheduled tasks: what runs, when, and where it is delivered.',
  schedules: 'Preview when a cue would run.',
  executions: 'Single runs and their results.',
  operations: 'Work on many executions or cues, in the background.',
  outcomes: 'Reported outcomes, evidence and verification.',
  workers: 'Workers that claim executions instead of receiving webhooks.',
  alerts: 'Repeated failures, missed runs, missing outcomes, and cues paused after failures.',
  auth: 'Accounts, keys, secrets and sessions.',
  billing: 'Plans, payment and usage.',
  support: 'Tickets.',
  content: 'The blog and the memory block.',
  mcp: 'The API for agents, over the Model Context Protocol.',
  service: 'Health checks, the echo buffer and this description.'
}

const description = `A scheduling service for automated agents: a cue is a task with a schedule, delivered as a webhook or claimed by a worker.

\`\`\`sh
curl $SERVICE/v1/cues -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"name": "daily report", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin", "callback_url": "https://example.com/hook"}'
\`\`\`

\`POST /v1/auth/register\` returns a key. Delivery is at least once: deduplicate by X-Service-Execution-Id.

Every response has an X-Request-Id (yours, if it has 8 to 64 characters of A-Z, a-z, 0-9, _ . : -). Responses to rate-limited requests have
X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset (epoch seconds). All errors have the same shape: match on \`code\`, not on
\`message\`. 429 and 503 have Retry-After.

Pages of other sites can't change anything (403 \`cross_origin_refused\`), unless CORS_ORIGINS includes their origin. A service that listens on
loopback answers only to \`localhost\`, loopback addresses and the host of BASE_URL (421 \`misdirected_request\`).

A list page ends early at 4 MiB, but has at least one item; \`has_more\` or \`total\` shows this, and the next page starts at \`offset\` plus the number of
items returned. Unread responses may take up 16 MiB per account (without a key: per address) and 64 MiB in total; beyond that, large responses are
refused with 503. A connection that accepts no data for 90 seconds is closed, and so is one with more than 100 pipelined requests.`

const file = new URL('../openapi.json', import.meta.url)
const error = { $ref: 'Error#' }
const anyObject = Type.Object({}, { additionalProperties: true })
const others: Record<string, string> = {
  '4xx': 'Any other error.',
  '5xx': `Temporarily unavailable. If \`message\` says that nothing was changed, retry after the time in Retry-After. ${mayHaveChanged.replace('It', 'Otherwise, it')}`
}

export default fp(
  async (app: FastifyInstance) => {
    app.addSchema(ErrorBody)
    app.addHook('onRoute', ({ schema }) => {
      if (schema && !schema.hide) schema.response = { ...(schema.response as object), '4xx': error, '5xx': error }
    })
    await app.register(swagger, {
      openapi: {
        openapi: '3.1.0',
        info: {
          title: 'pgcue',
          version: '1.0.0',
          description
        },
        servers: [{ url: '/' }],
        tags: Object.entries(tags).map(([name, description]) => ({ name, description, 'x-displayName': name.toUpperCase() })),
        components: {
          securitySchemes: {
            bearer: {
              type: 'http',
              scheme: 'bearer',
              description: 'An API key (`svc_sk_…`) or a session JWT; from browsers, the cookie set by `POST /v1/auth/browser-session`.'
            },
            operator: {
              type: 'http',
              scheme: 'bearer',
              description: 'OPERATOR_TOKEN of the service; from browsers, the cookie set by `POST /v1/operator/session`.'
            }
          }
        }
      },
      refResolver: { buildLocalReference: ({ $id }, _uri, _fragment, i) => (typeof $id === 'string' ? $id : `def-${i}`) },
      transform: ({ schema, url, route }) => ({ url, schema: describe(schema, route) as never })
    })
    let document: Fixed | undefined
    app.get(
      '/openapi.json',
      {
        config: { public: true },
        schema: { tags: ['service'], summary: 'This description as OpenAPI 3.1', response: { 200: anyObject } }
      },
      async (request, reply) => {
        // Not from `app.swagger()`, which takes a third of a second.
        document ??= fixed(JSON.stringify(JSON.parse(readFileSync(file, 'utf8'))))
        return sendFixed(request, reply.type('application/json; charset=utf-8').header('cache-control', 'public, max-age=60'), document)
      }
    )
  },
  { name: 'description' }
)

const describe = (schema: FastifySchema | undefined, { config = {} }: Pick<RouteOptions, 'config'>): FastifySchema => {
  if (!schema || schema.hide) return { ...schema, hide: true }
  const described: Record<string, unknown> = { ...schema }
  const codes = new Set(config.errors)
  for (const part of ['params', 'querystring', 'headers', 'body'] as const) {
    if (!schema[part]) continue
    described[part] = published(schema[part] as Schema, { isRequest: true, codes })
    if (part !== 'params') codes.add('validation_error')
  }
  if (config.scope) codes.add('not_authenticated').add('invalid_api_key')
  if (config.scope && config.scope !== 'any') codes.add('insufficient_scope')
  if (!config.exempt) codes.add('rate_limit_exceeded').add('unavailable')
  if (schema.body) codes.add('payload_too_large')
  const refusals = [...codes].map(code => [code === 'validation_error' ? 422 : statuses[code], code] as const)
  if (schema.body) refusals.unshift([400, 'validation_error'])

  const response: Record<string, { description?: string }> = {}
  for (const [status, body] of Object.entries(schema.response as Record<string, Schema>)) {
    const description = others[status] ?? STATUS_CODES[status]
    response[status] = { description, ...published(body) }
  }
  for (const [status, code] of refusals) {
    const there = response[status]?.description
    if (!there) response[status] = { ...error, description: `\`${code}\`` }
    else if (there.startsWith('`')) response[status] = { ...error, description: `${there}, \`${code}\`` }
  }
  // OpenAPI before 3.1 allowed no scopes for bearer schemes; since 3.1 they name required roles.
  const security = config.scope ? [config.scope].flat().map(scope => ({ bearer: scope === 'any' ? [] : [scope] })) : []
  return { ...described, response, security: config.operator ? [{ operator: [] }, ...security] : security }
}
