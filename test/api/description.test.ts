/** The API's description: `/openapi.json` and `/docs`. */
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { Type } from 'typebox'
import describe from '../../scripts/openapi/describe.ts'
import { openapi } from '../../scripts/openapi/main.ts'
import { AnyJson, JsonObject, orElse, Page, Strict } from '../../src/schemas.ts'
import { exactly } from '../support/exactly.ts'
import { build } from '../support/setup.ts'

t.test('the API describes itself', async t => {
  const { as } = await build(t)
  const { status, headers, body } = await as(null).call('GET', '/openapi.json')
  exactly(
    t,
    { status, headers, body },
    {
      status: 200,
      headers: { 'content-type': /^application\/json/ },
      body: {
        openapi: '3.1.0',
        info: { title: 'pgcue', version: '1.0.0' },
        components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }
      }
    }
  )
  t.strictSame(body, JSON.parse(JSON.stringify(await openapi())), 'the same without a database')
  const ids = Object.values<Record<string, Operation>>(body.paths).flatMap(methods =>
    Object.values(methods).map(({ operationId }) => operationId)
  )
  t.ok(ids.every(Boolean) && new Set(ids).size === ids.length, 'operation ids are unique')
  const text = JSON.stringify(body)
  t.ok(text.length <= 385 * 1024)
  const named = Object.keys(body.components.schemas)
  t.strictSame(
    named.filter(name => !text.includes(`#/components/schemas/${name}"`)),
    [],
    'every component is used'
  )
  const tags = new Set(body.tags.map(({ name }: { name: string }) => name))
  t.notMatch(JSON.stringify(body), /"x-(json|error|nullable)"/)
  for (const [path, methods] of Object.entries<Record<string, Operation>>(body.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const name = `${method} ${path}`
      const responses = Object.keys(operation.responses)
      t.ok(operation.summary && operation.description, `${name} says what it does`)
      t.ok(operation.tags?.length === 1 && tags.has(operation.tags[0]!), `${name} has a known tag`)
      t.ok(
        responses.some(code => /^2/.test(code)) && ['4XX', '5XX'].every(code => responses.includes(code)),
        `${name} describes its responses`
      )
      if (operation.security?.length)
        t.ok(
          ['401', '429', '503'].every(code => responses.includes(code)),
          `${name} lists its errors`
        )
      const named = (operation.parameters ?? []).filter(({ in: where }) => where === 'path').map(parameter => `{${parameter.name}}`)
      t.strictSame(named.sort(), (path.match(/{\w+}/g) ?? []).sort(), `${name} describes its path`)
    }
  }
})

type Operation = {
  operationId?: string
  summary?: string
  description?: string
  tags?: string[]
  security?: object[]
  responses: Record<string, object>
  parameters?: { name: string; in: string }[]
}

t.test('members with defaults are optional, and free JSON allows all its types', async t => {
  const { app } = await build(t, undefined, { watchRoutes: describe })
  const body = Strict({
    any: AnyJson(),
    object: JsonObject(),
    plan: orElse('invalid_plan', 'x', Type.Enum(['a'])),
    n: Type.Integer({ default: 1 })
  })
  const config = { scope: 'read', errors: ['cue_limit_exceeded', 'invalid_schedule'] } as const
  app.post(
    '/x',
    {
      config: { ...config, errors: [...config.errors] },
      schema: { tags: ['cues'], summary: 'x', querystring: Type.Object(Page(7)), body }
    },
    async () => ({})
  )
  await app.ready()
  type Described = { paths: Record<string, { post: { responses: object } }>; components: { responses: Record<string, object> } }
  const { paths, components } = app.swagger() as unknown as Described
  const operation = paths['/x']!.post
  const responses = Object.entries(operation.responses).map(([status, { $ref }]) => [
    status,
    components.responses[$ref?.split('/').at(-1)] ?? {}
  ])
  exactly(
    t,
    { ...operation, responses: Object.fromEntries(responses) },
    {
      security: [{ bearer: ['read'] }],
      parameters: [
        { name: 'limit', in: 'query', required: false, schema: { type: 'integer', default: 7 } },
        { name: 'offset', required: false }
      ],
      requestBody: {
        content: {
          'application/json': {
            schema: {
              required: ['any', 'object', 'plan'],
              additionalProperties: false,
              properties: { any: {}, object: { type: 'object' }, plan: { enum: ['a'] } }
            }
          }
        }
      },
      responses: {
        400: { description: '`validation_error`, `invalid_schedule`, `invalid_plan`' },
        401: { description: /`invalid_api_key`/ },
        403: { description: '`cue_limit_exceeded`, `insufficient_scope`' },
        413: {},
        422: {},
        429: {},
        503: {}
      }
    }
  )
})

t.test('the reference page loads nothing from other servers', async t => {
  const { app, call } = await build(t)
  const page = await call('GET', '/docs')
  exactly(t, page, {
    status: 200,
    headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': /default-src 'none'; script-src 'self';/ }
  })
  const scripts = [...page.body.matchAll(/<script(?: type="module")? src="([^"]+)"><\/script>/g)].map(([, src]) => src as string)
  t.strictSame(scripts, ['/docs/scalar.js', '/docs/start.js'])
  t.equal(page.body.match(/<script/g)?.length, 2, 'no inline script, which the policy would stop')
  t.notMatch(page.body, /https?:/)
  exactly(t, await call('GET', '/docs/start.js'), { status: 200, headers: { 'content-type': /javascript/ }, body: /url":"\/openapi.json"/ })
  const { rawPayload, headers } = await app.inject('/docs/scalar.js')
  exactly(t, headers, { 'content-type': /javascript/, 'content-encoding': 'gzip' })
  t.match(gunzipSync(rawPayload).subarray(0, 5_000_000).toString(), /createApiReference/)
})
