/** Validation of requests, and its errors. */
import type { InjectOptions } from 'fastify'
import t, { type Test } from 'tap'
import { type TSchema, Type } from 'typebox'
import { ApiError, invalid } from '../../src/errors.ts'
import { Json } from '../../src/json/canonical-json.ts'
import { AnyJson, JsonArray, JsonObject, Nullable, orElse, Page, Strict, Uuid } from '../../src/schemas.ts'
import { exactly } from '../support/exactly.ts'
import { build } from '../support/setup.ts'

type Schema = { body?: TSchema; querystring?: TSchema; params?: TSchema; headers?: TSchema }

/** Free JSON is text that only the schema of a response serialises. */
const parsed = (value: unknown): unknown => {
  if (value instanceof Json) return JSON.parse(value.text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, parsed(member)]))
}

/** A route with these schemas that returns what its handler received. */
const route = async (t: Test, schema: Schema, handler?: () => never) => {
  const { app } = await build(t, undefined, { isNew: true })
  app.post('/test/:id', { config: { exempt: true }, schema }, async request => {
    handler?.()
    const { body, query, params } = request
    return { body: parsed(body), query, params }
  })
  return async (payload?: unknown, { query = '', id = 'x', headers = {} } = {}) => {
    const answer = await app.inject({
      method: 'POST',
      url: `/test/${id}${query}`,
      headers: { ...(payload !== undefined && { 'content-type': 'application/json' }), ...headers },
      payload: (typeof payload === 'string' ? payload : JSON.stringify(payload)) as InjectOptions['payload']
    })
    const body = answer.json()
    return { status: answer.statusCode, ...body, ...(body.detail && { wrong: body.detail.map(short) }) }
  }
}

/** An entry of `detail` in one line. */
const short = ({ type, loc, msg, input }: { type: string; loc: string[]; msg: string; input: unknown }) =>
  `${loc.join('.')} ${type}: ${msg} (${JSON.stringify(input)})`

const unknown =
  'Unknown field. Allowed: name, count, ratio, on, kind, also, one, maybe, maybeKind, mixed, at, code, list, inner, some, with/slash~'

t.test('reports every kind of error in a body with type, location, message and input', async t => {
  const body = Strict({
    name: Type.String({ minLength: 2, maxLength: 5 }),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 })),
    ratio: Type.Optional(Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 })),
    on: Type.Optional(Type.Boolean()),
    kind: Type.Optional(Type.Enum(['a', 'b'])),
    also: Type.Optional(Type.Union([Type.Literal('c'), Type.Literal('d')])),
    one: Type.Optional(Type.Literal('only')),
    maybe: Type.Optional(Nullable(Type.Integer({ minimum: 1 }))),
    maybeKind: Type.Optional(Nullable(Type.Enum(['a', 'b']))),
    mixed: Type.Optional(Type.Union([Type.Integer({ minimum: 5 }), Type.String({ minLength: 5 })])),
    at: Type.Optional(Type.String({ format: 'date-time' })),
    code: Type.Optional(Type.String({ pattern: '^x+$' })),
    list: Type.Optional(Type.Array(Type.Integer(), { minItems: 1, maxItems: 3 })),
    inner: Type.Optional(Strict({ deep: Type.Integer() })),
    some: Type.Optional(Strict({ a: Type.Optional(Type.Integer()) }, { minProperties: 1 })),
    'with/slash~': Type.Optional(Type.Integer())
  })
  const call = await route(t, { body })
  for (const [given, ...wrong] of [
    [{}, 'body.name missing: Field required ({})'],
    [{ name: null }, 'body.name string_type: Input should be a valid string (null)'],
    [{ name: 'x' }, 'body.name string_too_short: String should have at least 2 characters ("x")'],
    [{ name: 'xxxxxx' }, 'body.name string_too_long: String should have at most 5 characters ("xxxxxx")'],
    [{ count: '1' }, 'body.count int_type: Input should be a valid integer ("1")'],
    [{ count: 1.5 }, 'body.count int_from_float: Input should be a valid integer, got a number with a fractional part (1.5)'],
    [{ count: 0 }, 'body.count greater_than_equal: Input should be greater than or equal to 1 (0)'],
    [{ count: 11 }, 'body.count less_than_equal: Input should be less than or equal to 10 (11)'],
    [{ ratio: '0.5' }, 'body.ratio float_type: Input should be a valid number ("0.5")'],
    [{ ratio: 0 }, 'body.ratio greater_than: Input should be greater than 0 (0)'],
    [{ ratio: 1 }, 'body.ratio less_than: Input should be less than 1 (1)'],
    [{ on: 'true' }, 'body.on bool_type: Input should be a valid boolean ("true")'],
    [{ on: 1 }, 'body.on bool_type: Input should be a valid boolean (1)'],
    [{ kind: 'c' }, `body.kind enum: Input should be 'a' or 'b' ("c")`],
    [{ kind: 1 }, `body.kind enum: Input should be 'a' or 'b' (1)`],
    [{ also: 'a' }, `body.also enum: Input should be 'c' or 'd' ("a")`],
    [{ one: 'other' }, `body.one literal_error: Input should be 'only' ("other")`],
    [{ maybe: 'x' }, 'body.maybe int_type: Input should be a valid integer ("x")'],
    [{ maybe: 0 }, 'body.maybe greater_than_equal: Input should be greater than or equal to 1 (0)'],
    [{ maybeKind: 'c' }, `body.maybeKind enum: Input should be 'a' or 'b' or null ("c")`],
    [{ mixed: 1 }, 'body.mixed greater_than_equal: Input should be greater than or equal to 5 (1)'],
    [{ mixed: 'x' }, 'body.mixed string_too_short: String should have at least 5 characters ("x")'],
    [{ mixed: true }, 'body.mixed union_type: Input should be a valid integer or string (true)'],
    [{ at: 'today' }, 'body.at datetime_from_date_parsing: Input should be a valid ISO 8601 datetime with Z or an offset ("today")'],
    [{ code: 'y' }, `body.code string_pattern_mismatch: String should match pattern '^x+$' ("y")`],
    [{ list: 'x' }, 'body.list list_type: Input should be a valid list ("x")'],
    [{ list: [] }, 'body.list too_short: Input should not be empty ([])'],
    [{ list: [1, 2, 3, 4] }, 'body.list too_long: List should have at most 3 items ([1,2,3,4])'],
    [{ list: [1, 'x'] }, 'body.list.1 int_type: Input should be a valid integer ("x")'],
    [{ inner: [] }, 'body.inner dict_type: Input should be a valid object ([])'],
    [{ inner: {} }, 'body.inner.deep missing: Field required ({})'],
    [{ inner: { deep: 1, more: 2 } }, 'body.inner.more extra_forbidden: Unknown field. Allowed: deep (2)'],
    [{ some: {} }, 'body.some too_short: At least one field must be sent ({})'],
    [{ 'with/slash~': 'x' }, 'body.with/slash~ int_type: Input should be a valid integer ("x")'],
    [{ extra: 1 }, `body.extra extra_forbidden: ${unknown} (1)`],
    [{ deep: 1 }, 'body.deep extra_forbidden: Unknown field here: put it into `inner` (1)'],
    ['{"name": "abc", "__proto__": {"on": true}}', `body.__proto__ extra_forbidden: ${unknown} ({"on":true})`],
    [{ name: 1, count: 0, extra: 1 }, 'body.extra extra_forbidden', 'body.name string_type', 'body.count greater_than_equal']
  ] as [unknown, ...string[]][]) {
    const named = typeof given === 'object' && !wrong[0]!.startsWith('body.name') ? { name: 'abc', ...given } : given
    const answer = await call(named)
    exactly(t, answer, { status: 422, error: { code: 'validation_error', status: 422 } }, JSON.stringify(given))
    if (wrong.length === 1) t.strictSame(answer.wrong, wrong)
    else
      exactly(
        t,
        answer.wrong,
        wrong.map(start => new RegExp(`^${start}`))
      )
  }
  for (const given of [[], 'null', '1', '"text"', undefined]) {
    exactly(t, await call(given), { status: 422, detail: [{ loc: ['body'] }] }, String(given))
  }
  exactly(t, await call({ name: 'abc', maybe: null, maybeKind: null, mixed: 5, list: [1] }), { status: 200, body: { maybe: null } })
})

t.test('the message contains the first error and the number of others', async t => {
  const call = await route(t, { body: Strict({ a: Type.Integer(), b: Strict({ c: Type.Integer() }) }) })
  exactly(t, await call({ a: 'x', b: { c: 1 } }), { error: { message: 'a: Input should be a valid integer' } })
  exactly(t, await call({ a: 1, b: {} }), { error: { message: 'b.c: Field required' } })
  exactly(t, await call({ a: 'x', b: { c: 'y' } }), { error: { message: 'a: Input should be a valid integer (and 1 more, see detail)' } })
})

t.test('truncates inputs to 200 characters and details to 20 entries', async t => {
  const call = await route(t, { body: Strict({ list: Type.Array(Type.Integer()), text: Type.String() }) })
  const item = { nested: ['x'.repeat(300)] }
  const answer = await call({ list: Array.from({ length: 20 }, () => item), text: Array.from({ length: 25 }, () => item) })
  t.equal(answer.status, 422)
  t.ok(answer.detail.length <= 20)
  for (const { input } of answer.detail) t.equal(input.length, 200)
  exactly(t, (await call({ list: [], text: ['ü'.repeat(300)] })).detail[0].input.length, 200)
})

t.test('does not repeat secrets', async t => {
  const member = Type.Optional(Type.Integer())
  const names = 'api_key token session_token password webhook_secret authorization device_code url text callback'.split(' ')
  const call = await route(t, { body: Strict(Object.fromEntries(names.map(name => [name, member]))) })
  const secret = 'hunter2hunter2'
  const answer = await call({
    ...Object.fromEntries(names.map(name => [name, secret])),
    url: `https://me:${secret}@example.com/`,
    text: `svc_sk_${secret}`,
    callback: { headers: { 'X-Custom': secret }, list: [{ api_key: secret }], url: `whsec_${secret}` },
    extra_token: secret,
    extra: { password: secret, text: 'shown' }
  })
  t.equal(answer.detail.length, 12)
  t.notMatch(JSON.stringify(answer), /hunter2/)
  exactly(
    t,
    answer.detail.find(({ loc }: { loc: string[] }) => loc[1] === 'extra'),
    { input: { password: '********', text: 'shown' } }
  )
})

t.test('parses query parameters and adds defaults', async t => {
  const querystring = Type.Object({
    ...Page(50),
    on: Type.Optional(Type.Boolean()),
    text: Type.Optional(Type.String()),
    ratio: Type.Optional(Type.Number()),
    nothing: Type.Optional(Nullable(Type.Integer()))
  })
  const call = await route(t, { querystring })
  for (const [query, seen] of [
    ['', { limit: 50, offset: 0 }],
    ['?limit=100&offset=5&on=true&text=5&ratio=-1.5', { limit: 100, offset: 5, on: true, text: '5', ratio: -1.5 }],
    ['?on=False', { limit: 50, offset: 0, on: false }],
    ['?nothing=7', { limit: 50, offset: 0, nothing: 7 }]
  ] as const) {
    t.strictSame((await call(undefined, { query })).query, seen, query)
  }
  for (const [query, wrong] of [
    ['?limit=abc', 'query.limit int_parsing: Input should be a valid integer ("abc")'],
    ['?limit=', 'query.limit int_parsing: Input should be a valid integer ("")'],
    ['?limit=5.5', 'query.limit int_parsing: Input should be a valid integer ("5.5")'],
    ['?limit=1e1', 'query.limit int_parsing: Input should be a valid integer ("1e1")'],
    ['?limit=0', 'query.limit greater_than_equal: Input should be greater than or equal to 1 (0)'],
    ['?limit=101', 'query.limit less_than_equal: Input should be less than or equal to 100 (101)'],
    ['?limit=5&limit=6', 'query.limit int_parsing: Input should be a valid integer (["5","6"])'],
    ['?offset=-1', 'query.offset greater_than_equal: Input should be greater than or equal to 0 (-1)'],
    ['?offset=99999999999', 'query.offset less_than_equal: Input should be less than or equal to 2147483647 (99999999999)'],
    ['?offset=99999999999999999999', 'query.offset int_parsing: Input should be a valid integer ("99999999999999999999")'],
    ['?on=yes', 'query.on bool_parsing: Input should be a valid boolean ("yes")'],
    ['?text=a&text=b', 'query.text string_type: Input should be a valid string (["a","b"])']
  ] as const) {
    exactly(t, await call(undefined, { query }), { status: 422, wrong: [wrong] }, query)
  }
})

t.test('an object schema drops unknown members at every depth', async t => {
  const inner = { deep: Type.Optional(Type.Integer()) }
  const call = await route(t, {
    body: Type.Object({ a: Type.Optional(Type.Integer()), inner: Type.Optional(Type.Object(inner)), free: Type.Optional(AnyJson()) })
  })
  t.strictSame((await call({ a: 1, b: 2, now: 'x', inner: { deep: 1, more: 2 }, free: { any: 1 } })).body, {
    a: 1,
    inner: { deep: 1 },
    free: { any: 1 }
  })
  t.strictSame((await call('{"__proto__": {"a": 5}, "constructor": 1}')).body, {})
})

t.test('fills defaults into bodies, and a body without required members is optional', async t => {
  const inner = Type.Optional(Strict({ n: Type.Integer({ default: 3 }) }))
  const call = await route(t, { body: Strict({ id: Type.String({ default: 'anonymous' }), text: Type.Optional(Type.String()), inner }) })
  for (const body of [undefined, '', 'null', {}]) t.strictSame((await call(body)).body, { id: 'anonymous' }, JSON.stringify(body))
  t.strictSame((await call({ id: 'w1', inner: {} })).body, { id: 'w1', inner: { n: 3 } })
})

t.test('free JSON keeps all digits, and can be restricted to objects or lists', async t => {
  const body = Strict({
    any: Type.Optional(AnyJson()),
    object: Type.Optional(JsonObject()),
    list: Type.Optional(JsonArray()),
    maybe: Type.Optional(Nullable(JsonObject()))
  })
  const call = await route(t, { body })
  const { app } = await build(t, undefined, { isNew: true })
  app.post('/text', { config: { exempt: true }, schema: { body: Strict({ any: AnyJson() }) } }, async ({ body }) => ({
    text: body.any.text
  }))
  const answer = await app.inject({
    method: 'POST',
    url: '/text',
    payload: '{"any": {"b": 1.0, "a": 12345678901234567890}}',
    headers: { 'content-type': 'application/json' }
  })
  t.strictSame(answer.json(), { text: '{"a": 12345678901234567890, "b": 1.0}' })
  t.strictSame((await call({ any: null, object: { a: [1] }, list: [{}], maybe: null })).body, {
    any: null,
    object: { a: [1] },
    list: [{}],
    maybe: null
  })
  for (const [given, wrong] of [
    [{ object: [] }, 'body.object dict_type: Input should be an object ([])'],
    [{ object: null }, 'body.object dict_type: Input should be an object (null)'],
    [{ object: 'x' }, 'body.object dict_type: Input should be an object ("x")'],
    [{ list: {} }, 'body.list list_type: Input should be a list ({})'],
    [{ maybe: 5 }, 'body.maybe dict_type: Input should be an object (5)']
  ] as const) {
    exactly(t, await call(given), { status: 422, wrong: [wrong] }, JSON.stringify(given))
  }
})

t.test('responds with 400 to JSON that cannot be parsed or stored', async t => {
  const call = await route(t, { body: Strict({ any: Type.Optional(AnyJson()) }) })
  for (const body of [
    '{',
    '{"any": 1,}',
    "{'any': 1}",
    '{"any": NaN}',
    '{"any": "\\u0000"}',
    '{"any": "\\ud800"}',
    `{"any": ${'['.repeat(65)}${']'.repeat(65)}}`,
    '{"any": 1e999}',
    'text',
    '{} {}'
  ]) {
    exactly(t, await call(body), { status: 400, error: { code: 'validation_error', status: 400 }, detail: undefined }, body.slice(0, 40))
  }
  exactly(t, await call(`{"any": ${'['.repeat(64)}${']'.repeat(64)}}`), { status: 200 })
})

t.test('accepts JSON content types and a missing one, and rejects others with 415', async t => {
  const call = await route(t, { body: Strict({ a: Type.Optional(Type.Integer()) }) })
  const { app } = await build(t, undefined, { isNew: true })
  app.post('/none', { config: { exempt: true } }, async () => ({ fine: true }))
  for (const type of ['application/json', 'application/json; charset=utf-8', 'APPLICATION/JSON', 'application/vnd.api+json']) {
    exactly(t, await call('{"a": 1}', { headers: { 'content-type': type } }), { status: 200, body: { a: 1 } }, type)
  }
  app.post('/any', { config: { exempt: true }, schema: { body: Strict({ a: Type.Integer() }) } }, async ({ body }) => body)
  t.strictSame((await app.inject({ method: 'POST', url: '/any', payload: '{"a": 1}' })).json(), { a: 1 })
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'nonsense',
    ';;',
    ','
  ]) {
    exactly(
      t,
      await call('{"a": 1}', { headers: { 'content-type': type } }),
      { status: 415, error: { code: 'validation_error', message: /application\/json/ } },
      type
    )
  }
  exactly(t, await call('{"a": 1}', { headers: { 'content-encoding': 'gzip' } }), { status: 415, error: { message: /uncompressed/ } })
  for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
    const answer = await app.inject({ method: 'POST', url: '/none', headers: { 'content-type': type } })
    t.equal(answer.statusCode, 200, `${type}, but no body`)
  }
})

t.test('validates headers without changing them', async t => {
  const call = await route(t, { headers: Type.Object({ 'x-worker-id': Type.String({ minLength: 1 }) }) })
  exactly(t, await call(), { status: 422, detail: [{ type: 'missing', loc: ['header', 'x-worker-id'] }] })
  exactly(t, await call(undefined, { headers: { 'x-worker-id': 'w1' } }), { status: 200 })
})

t.test('a schema can set another code than validation_error', async t => {
  const body = Strict({
    plan: orElse('invalid_plan', 'The plan is pro or scale.', Type.Enum(['pro', 'scale'])),
    n: Type.Optional(Type.Integer())
  })
  const call = await route(t, { body, params: Type.Object({ id: Uuid('execution_not_found') }) })
  const id = '01890a5d-ac96-774b-bcce-b302099a8057'
  exactly(t, await call({ plan: 'gold' }, { id }), {
    status: 400,
    error: { code: 'invalid_plan', message: 'The plan is pro or scale.', status: 400 }
  })
  exactly(t, await call({}, { id }), { status: 422, detail: [{ type: 'missing', loc: ['body', 'plan'] }] })
  exactly(t, await call({ plan: 'pro' }, { id }), { status: 200 })
  exactly(t, await call({ plan: 'pro' }, { id: id.toUpperCase() }), { status: 200 })
  for (const bad of ['1', `urn:uuid:${id}`, `{${id}}`, `${id}0`, id.replaceAll('-', '')]) {
    exactly(t, await call({ plan: 'gold' }, { id: bad }), { status: 404, error: { code: 'execution_not_found', status: 404 } }, bad)
  }
})

t.test('a handler can report an invalid field in the same format', async t => {
  const call = await route(t, {}, () => {
    throw invalid([{ type: 'value_error', loc: ['body', 'at'], msg: 'needs a zone', input: '2030' }])
  })
  exactly(t, await call(), {
    status: 422,
    error: { code: 'validation_error', message: 'at: needs a zone' },
    wrong: ['body.at value_error: needs a zone ("2030")']
  })
  const other = await route(t, {}, () => {
    throw new ApiError('invalid_timezone', 'There is no such zone.')
  })
  t.strictSame(await other(), { status: 422, error: { code: 'invalid_timezone', message: 'There is no such zone.', status: 422 } })
})
