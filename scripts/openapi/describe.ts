/** Makes the API description from the routes' schemas, with the names of components.ts and real examples. */
import { STATUS_CODES } from 'node:http'
import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { Type } from 'typebox'
import { mayHaveChanged, statuses } from '../../src/errors.ts'
import { published, type Schema } from '../../src/http/schema.ts'
import { withComponents } from './components.ts'
import examples from './examples.json' with { type: 'json' }
import { describedWebhooks } from './webhooks.ts'

/** Description of each tag, and the paths that have it: of several that match, the last. */
const tags: Record<string, [description: string, paths: RegExp]> = {
  cues: ['Scheduled tasks: what runs, when, and where it is delivered.', /^\/v1\/cues/],
  schedules: ['Preview when a cue would run.', /^\/v1\/(schedules|calendars)/],
  executions: ['Single runs and their results.', /^\/v1\/(executions|overview|errors|destinations)/],
  operations: ['Work on many executions or cues, in the background.', /^\/v1\/operations/],
  outcomes: ['Reported outcomes, evidence and verification.', /^\/v1\/(costs|executions\/:execution_id\/(outcome|evidence|verif))/],
  workers: [
    'Workers that claim executions instead of receiving webhooks.',
    /^\/v1\/(workers?\b|executions\/(claim|:execution_id\/(claim|heartbeat|release)))/
  ],
  gates: ['Limits that cues share: how many executions run at once, and how many start in an interval.', /^\/v1\/gates/],
  alerts: ['Repeated failures, missed runs, missing outcomes, and cues paused after failures.', /^\/v1\/(alerts|channels)/],
  events: ['What happened in the account, as a feed that skips nothing.', /^\/v1\/event/],
  auth: ['Accounts, keys, secrets and sessions.', /^(\/v1)?\/auth/],
  billing: ['Plans, payment and usage.', /^\/v1\/(usage|billing)/],
  support: ['Tickets.', /^\/v1\/support/],
  content: ['The blog and the memory block.', /^\/v1\/(blog|memory-block)/],
  mcp: ['The API for agents, over the Model Context Protocol.', /^\/mcp/],
  service: ['Health checks, the echo buffer and this description.', /^\/(v1\/)?(echo|operator|openapi|health|status|metrics)/]
}

const tagsOf = (url: string) =>
  Object.keys(tags)
    .filter(name => tags[name]![1].test(url))
    .slice(-1)

const description = `A cue is a task with a schedule. When it is due, pgcue sends a signed webhook, or a worker claims the work.

\`\`\`sh
curl $SERVICE/v1/cues -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"name": "report", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin", "callback_url": "https://example.com/hook"}'
\`\`\`

The [guide](docs/guide) explains the words and has examples that run.

**Authentication.** Send \`Authorization: Bearer …\` with an API key, which \`POST /v1/auth/register\` returns and \`POST /v1/auth/keys\` creates,
or with a session. Each operation names the scope that it needs.

**Errors** all have one form: \`{"error": {"code", "message", "status"}}\`, and \`detail\` where several fields are wrong. Match on \`code\`; \`message\`
is for people and may change. The guide lists [every code](docs/guide/errors). Send the response's \`X-Request-Id\` when you ask for help.

**Idempotency.** Creating, firing, replaying, applying and bulk operations take the header \`Idempotency-Key\`: repeated within 24 hours with the
same body, they return the first response and do nothing. A 503 that says nothing was changed is safe to repeat anyway.

**Lists** have \`limit\` and \`offset\`, or \`cursor\`: the \`next_cursor\` of the page before. A page of 4 MiB ends early.

**Rate limits.** \`X-RateLimit-Limit\`, \`-Remaining\` and \`-Reset\` (epoch seconds) are on every response. 429 and 503 have \`Retry-After\`, in
seconds.

**Webhooks** are signed; see [Webhooks](#webhooks) for their headers, and the guide for [code that checks them](docs/guide/delivery).
Delivery is at least once: deduplicate by \`X-Service-Execution-Id\`.`

const error = { $ref: 'Error#' }
const anyObject = Type.Object({}, { additionalProperties: true })
const general: Record<string, string> = {
  '4xx': 'Any other error.',
  '5xx': `Temporarily unavailable. If \`message\` says that nothing was changed, retry after the time in Retry-After. ${mayHaveChanged.replace('It', 'Otherwise, it')}`
}

/** Watches the routes that are registered after it; then `app.swagger()` returns the description. */
export default fp(async (app: FastifyInstance) => {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'pgcue',
        version: '1.0.0',
        license: { name: 'MIT', identifier: 'MIT' },
        description
      },
      servers: [{ url: '/' }],
      tags: Object.entries(tags).map(([name, [description]]) => ({ name, description, 'x-displayName': name.toUpperCase() })),
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
    transformObject: document =>
      withExamples(withComponents({ ...('openapiObject' in document && document.openapiObject), webhooks: describedWebhooks() })) as never,
    transform: ({ schema, url, route }) => ({ url, schema: describe(schema, url, route) as never })
  })
})

const describe = (schema: FastifySchema | undefined, url: string, { config = {} }: Pick<RouteOptions, 'config'>): FastifySchema => {
  if (!schema || schema.hide) return { ...schema, hide: true }
  const described: Record<string, unknown> = { ...schema, tags: tagsOf(url) }
  const codes = new Set(config.errors)
  for (const part of ['params', 'querystring', 'headers', 'body'] as const) {
    if (!schema[part]) continue
    described[part] = published(schema[part] as Schema, { isRequest: true, codes })
    if (part !== 'params') codes.add('validation_error')
  }
  if (config.rawBody) described.body = anyObject
  if (config.scope) codes.add('not_authenticated').add('invalid_api_key')
  if (config.scope && config.scope !== 'any') codes.add('insufficient_scope')
  if (!config.exempt) codes.add('rate_limit_exceeded').add('unavailable')
  if (schema.body) codes.add('payload_too_large')
  const refusals = [...codes].map(code => [code === 'validation_error' ? 422 : statuses[code], code] as const)
  if (schema.body) refusals.unshift([400, 'validation_error'])

  const response: Record<string, { description?: string }> = {}
  for (const [status, body] of Object.entries(schema.response as Record<string, Schema>)) {
    const description = body.description ?? general[status] ?? STATUS_CODES[status]!
    response[status] = '$ref' in body ? { ...body, description } : { ...published(body), ...{ 'x-response-description': description } }
  }
  for (const [status, code] of refusals) {
    const refusal = response[status]
    if (!refusal) response[status] = { ...error, description: `\`${code}\`` }
    else if (refusal.description?.startsWith('`')) response[status] = { ...error, description: `${refusal.description}, \`${code}\`` }
  }
  // OpenAPI before 3.1 allowed no scopes for bearer schemes; since 3.1 they name required roles.
  const security = config.scope ? [config.scope].flat().map(scope => ({ bearer: scope === 'any' ? [] : [scope] })) : []
  return { ...described, response, security: config.operator ? [{ operator: [] }, ...security] : security }
}

type Example = { request?: unknown; status: number; response?: unknown }
type Content = { content?: Record<string, { example?: unknown }> }
type Described = { operationId: string; requestBody?: Content; responses: Record<string, Content> }

/** Adds a real request and its response to each operation. test/api/examples.test.ts writes and checks them. */
const withExamples = <T extends object>(document: T): T => {
  const { paths } = document as unknown as { paths: Record<string, Record<string, Described>> }
  for (const { operationId, requestBody, responses } of Object.values(paths).flatMap(methods => Object.values(methods))) {
    const example = (examples as Record<string, Example>)[operationId]
    if (!example) continue
    const show = (described: Content | undefined, value: unknown) => {
      const content = described?.content?.['application/json']
      if (content && value !== undefined) content.example = value
    }
    show(requestBody, example.request)
    show(responses[example.status], example.response)
  }
  return document
}
