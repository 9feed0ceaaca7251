/** The description of the interface: `/openapi.json` made from the routes' schemas, and `/docs`, a page that shows it without any other server. */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import swagger from '@fastify/swagger'
import Fastify, { type FastifyInstance, type FastifySchema } from 'fastify'
import fp from 'fastify-plugin'
import { version } from './config.ts'
import { ErrorBody } from './schemas.ts'
import type { Schema } from './validation.ts'

const tags = [
  ['cues', 'Scheduled tasks: what runs when, and where it is delivered.'],
  ['executions', 'Single runs, their outcomes and the evidence for them.'],
  ['workers', 'Taking runs instead of being called.'],
  ['alerts', 'What went wrong more than once.'],
  ['auth', 'Accounts, keys, secrets and sessions.'],
  ['billing', 'Plans, payment and usage.'],
  ['support', 'Tickets.'],
  ['content', 'The blog and the memory block.'],
  ['service', 'Health, the echo buffer and this description.']
]

export default fp(
  async (app: FastifyInstance) => {
    app.addHook('onRoute', ({ schema }) => {
      if (schema && !schema.hide) schema.response = { '4xx': ErrorBody, '5xx': ErrorBody, ...(schema.response as object) }
    })
    await app.register(swagger, {
      openapi: {
        openapi: '3.1.0',
        info: {
          title: 'pgcue',
          version: '1.0.0',
          description: 'A scheduling service for automated agents. Delivery is at least once: deduplicate by X-Service-Execution-Id.'
        },
        servers: [{ url: '/' }],
        tags: tags.map(([name, description]) => ({ name: name!, description })),
        components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'An API key, svc_sk_…' } } }
      },
      transform: ({ schema, url, route }) => {
        const { scope } = route.config ?? {}
        const described = transformed(schema as FastifySchema)
        return { url, schema: { ...described, security: scope ? [{ bearer: scope === 'any' ? [] : [scope] }] : [] } as never }
      }
    })

    const open = { config: { exempt: true }, schema: { hide: true } }
    app.get(
      '/openapi.json',
      { config: { exempt: true }, schema: { tags: ['service'], summary: 'This description, as OpenAPI 3.1' } },
      async (_, reply) => reply.type('application/json').header('cache-control', 'public, max-age=60').send(JSON.stringify(app.swagger()))
    )
    app.get('/docs', open, async (_, reply) =>
      reply.type('text/html; charset=utf-8').headers({ 'content-security-policy': policy, 'referrer-policy': 'no-referrer' }).send(page)
    )
    app.get('/docs/start.js', open, async (_, reply) => reply.type('text/javascript; charset=utf-8').send(start))
    app.get('/docs/scalar.js', open, async (_, reply) =>
      reply
        .type('text/javascript; charset=utf-8')
        .headers({ 'content-encoding': 'gzip', 'cache-control': 'public, max-age=86400' })
        .send(await loadBundle())
    )
  },
  { name: 'docs' }
)

/** Our own keywords become what others understand; what has a default is not required. */
const transformed = (schema: FastifySchema): FastifySchema =>
  Object.fromEntries(
    Object.entries(schema).map(([part, value]) => [
      part,
      ['body', 'querystring', 'params', 'headers'].includes(part)
        ? plain(value as Schema, true)
        : part === 'response'
          ? Object.fromEntries(Object.entries(value as object).map(([status, body]) => [status, plain(body, false)]))
          : value
    ])
  )

const plain = (schema: Schema, request: boolean): Schema => {
  const { 'x-json': json, 'x-nullable': nullable, 'x-error': _, ...rest } = schema
  const node: Schema = { ...rest }
  if (json === 'object') Object.assign(node, { type: nullable ? ['object', 'null'] : 'object', additionalProperties: true })
  if (json === 'array') Object.assign(node, { type: nullable ? ['array', 'null'] : 'array', items: {} })
  if (node.properties) {
    node.properties = Object.fromEntries(Object.entries(node.properties).map(([name, member]) => [name, plain(member, request)]))
    if (request) node.required = node.required?.filter(name => node.properties![name]?.default === undefined)
  }
  if (node.items) node.items = plain(node.items, request)
  if (node.anyOf) node.anyOf = node.anyOf.map(branch => plain(branch, request))
  return node
}

// Nothing of it may come from elsewhere, whatever the bundle would like; styles it makes itself.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join('; ')

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>pgcue ${version}: API reference</title>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. The same as JSON: <a href="/openapi.json">/openapi.json</a></noscript>
<script src="/docs/scalar.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

const start = `Scalar.createApiReference('#app', ${JSON.stringify({
  url: '/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true }
})})
`

const once = <T>(make: () => Promise<T>) => {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** The page's script, compressed. Its package takes 25 MB of memory and a fifth of a second to load, so that waits until somebody looks. */
const loadBundle = once(async (): Promise<Buffer> => {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const app = Fastify()
  await app.register(reference, { routePrefix: '/docs', configuration: { url: '/openapi.json' } })
  const { rawPayload } = await app.inject('/docs/js/scalar.js')
  await app.close()
  return promisify(gzip)(rawPayload)
})
