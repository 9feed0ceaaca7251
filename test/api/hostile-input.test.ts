/** Random input to every route: responses use our error format, and none is a 500. */
import fc from 'fast-check'
import t from 'tap'
import type { Schema } from '../../src/http/schema.ts'
import { description } from '../support/openapi.ts'
import { always } from '../support/seed.ts'
import { build } from '../support/setup.ts'
import { standIn } from '../support/stripe.ts'

type Operation = {
  parameters?: { name: string; in: 'path' | 'query' | 'header'; schema: Schema }[]
  requestBody?: { content: { 'application/json': { schema: Schema } } }
}

const { env } = await standIn(t)
const PLANS = '{"free":{"cues":10000,"executions_per_month":1000000}}'
const { app, as, register } = await build(t, undefined, { env: { ...env, PLANS } })
await app.ready()
const paths = description.paths as Record<string, Record<string, Operation>>

/** A separate account, since some routes revoke its key, with a cue and an execution to refer to. */
const prepare = async () => {
  const account = await register()
  const { call, post } = as(account)
  const cue = await post('/v1/cues', { name: 'a cue', cron: '0 9 * * *', worker: true, payload: { task: 'x' } })
  const { id } = await post(`/v1/cues/${cue.id}/fire`)
  return { call, cue_id: cue.id as string, id: id as string }
}

const texts = `%00|../..|__proto__|null|NaN|0|-1|1e400|99999999999999999999|'; drop table cue.cues; --|💥|2030-01-01T00:00:00Z
2030-02-30T25:00:00+99:00|0001-01-01T00:00:00Z|9999-12-31T23:59:59.999Z|+275760-09-13T00:00:00Z|* * * * *|0 0 31 2 *|UTC|Mars/Olympus|@daily|45m|1e9d
http://127.0.0.1:9/|http://[::1]:22/|https://x|a@b.c|cue_000000000000|00000000-0000-0000-0000-000000000000`.split(/[|\n]/)
const others = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'x'.repeat(300),
  'x'.repeat(20_000),
  true,
  false,
  null,
  [],
  {},
  [[]],
  [null],
  [''],
  ['x', 1]
]
const numbers = [0, -0, -1, 1, 5, 1.5, 1e21, -1e308, 2 ** 31, 2 ** 53, 5e-324]
const deep = [
  { a: { b: { c: [] } } },
  JSON.parse(`${'['.repeat(60)}${']'.repeat(60)}`),
  { constructor: 1, toString: 'x' },
  Array(200).fill('x')
]
const nasty = fc.constantFrom<unknown>(...texts, ...others, ...numbers, ...deep)

/** Values that match the schema, nearly match it, or don't. */
const near = (schema: Schema & { minimum?: number; maximum?: number } = {}, name = ''): fc.Arbitrary<unknown> => {
  if (name === 'wait') return fc.constant(0) // would really wait otherwise
  const fitting: fc.Arbitrary<unknown>[] = [nasty]
  const types = schema.enum ? [] : [schema.type].flat()
  if (schema.enum) fitting.push(fc.constantFrom(...schema.enum), fc.constantFrom(...schema.enum))
  if (types.includes('integer') || types.includes('number'))
    fitting.push(fc.integer({ min: schema.minimum ?? -5, max: schema.maximum ?? 500 }))
  if (types.includes('boolean')) fitting.push(fc.boolean())
  if (types.includes('string')) fitting.push(fc.string({ unit: 'binary', maxLength: 30 }), fc.string({ minLength: 1, maxLength: 20 }))
  if (types.includes('array')) fitting.push(fc.array(near(schema.items), { maxLength: 4 }))
  if (schema.properties) {
    const members = Object.fromEntries(Object.entries(schema.properties).map(([name, member]) => [name, near(member, name)]))
    fitting.push(
      fc.record(members, { requiredKeys: [] }),
      fc.record(members),
      fc.record(members, { requiredKeys: (schema.required ?? []) as never[] })
    )
  }
  for (const branch of schema.anyOf ?? []) fitting.push(near(branch))
  return fc.oneof(...fitting)
}

const text = (value: unknown) => (typeof value === 'object' ? JSON.stringify(value) : String(value)).toWellFormed()

for (const [path, operations] of Object.entries(paths)) {
  for (const [method, { parameters = [], requestBody }] of Object.entries(operations)) {
    const schema = requestBody?.content['application/json'].schema
    const parts = Object.fromEntries(parameters.map(({ name, schema }) => [name, near(schema, name)]))
    const request = fc.record({ values: fc.record(parts, { requiredKeys: [] }), body: schema ? near(schema) : nasty })
    const count = method === 'get' && parameters.length === 0 ? 1 : 30 // without input, all are the same

    t.test(`${method} ${path}`, async t => {
      const { call, cue_id, id } = await prepare()
      const given = (values: object, name: string): string | undefined =>
        name in values ? text((values as Record<string, unknown>)[name]) : undefined
      await always(
        fc.asyncProperty(request, async ({ values, body }) => {
          const url = path.replace(/{(\w+)}/g, (_, name) => encodeURIComponent(given(values, name) ?? (name === 'cue_id' ? cue_id : id)))
          const of = (place: string) =>
            parameters
              .filter(parameter => parameter.in === place && parameter.name in values)
              .map(({ name }): [string, string] => [name, given(values, name)!])
          const headers: Record<string, string> = { accept: 'application/json' } // otherwise errors of pages would be pages
          for (const [name, value] of of('header')) headers[name] = encodeURIComponent(value)
          const payload = method === 'get' ? undefined : JSON.stringify(body)
          const { status, body: answer } = await call(method.toUpperCase(), `${url}?${new URLSearchParams(of('query'))}`, payload, headers)
          if (path === '/status') return
          if (status >= 500) throw new Error(`${status} ${JSON.stringify(answer)}`)
          // JSON-RPC has its own error format.
          if (status >= 400 && path !== '/mcp' && answer.error?.status !== status) throw new Error(`${status} without error`)
        }),
        count
      )
      t.pass()
    })
  }
}
