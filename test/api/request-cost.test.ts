/**
 * No accepted request blocks the event loop for 50 ms: each route gets the most expensive bodies that it reads completely. Writing the response
 * counts; reading it, which is the client's work, doesn't.
 */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { paths } from '../support/openapi.ts'
import { build } from '../support/setup.ts'
import { hostileJson, longestStall, someHostileJson } from '../support/stalls.ts'

/** Beside any one request, `/status` of an otherwise idle replica answers within this time. */
const MOST_MS = 150
const KB = 1024
const MB = 1024 * KB
const PLANS = '{"free":{"cues":100000,"executions_per_month":1000000}}'
const { app, account, post, register, as } = await build(t, undefined, { env: { PLANS } })
await app.ready()

const accept = { accept: 'application/json, text/event-stream' }
const confirmed = { 'x-confirm-destructive': 'true' }
const start = '"name":"a","cron":"@daily","worker":true'
type Sent = { status: number; body: string }
/** One request. Its response stays text, because parsing a large one would block this thread longer than the measured work. */
const call = async (method: 'POST' | 'PUT' | 'PATCH', url: string, payload: string, headers = {}): Promise<Sent> => {
  const own = { authorization: `Bearer ${account.api_key}`, 'content-type': 'application/json' }
  const answer = await app.inject({ method, url, payload, headers: { ...own, ...headers } })
  return { status: answer.statusCode, body: answer.body }
}
const newCue = async (payload = '1') => {
  const { body } = await call('POST', '/v1/cues', `{${start},"payload":${payload}}`)
  return /^\{"id":"(\w+)"/.exec(body)![1]!
}
const message = (name: string, args: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":{${args}}}}`
const claimed = async () => {
  const { id } = await post(`/v1/cues/${await newCue()}/fire`)
  await post(`/v1/executions/${id}/claim`)
  return id as string
}

/** Many elements of a list. */
const apart = (count: number, element: (n: number) => string) => Array.from({ length: count }, (_, n) => element(n)).join()

/** Routes with free JSON: the request to each with a hostile text of a given size, and whether it is accepted. */
const free: Record<string, { bytes: number; send: (text: string) => Promise<Sent>; status: number }[]> = {
  'POST /v1/cues': [
    { bytes: MB, send: text => call('POST', '/v1/cues', `{${start},"payload":${text}}`), status: 201 },
    { bytes: 2 * MB - 200, send: text => call('POST', '/v1/cues', `{${start},"x":${text}}`), status: 413 }
  ],
  'PUT /v1/cues/by-key/{key}': [
    { bytes: MB, send: text => call('PUT', `/v1/cues/by-key/${randomUUID()}`, `{${start},"payload":${text}}`), status: 201 },
    {
      bytes: MB,
      send: async text => {
        await call('PUT', '/v1/cues/by-key/k', `{${start}}`)
        return call('PUT', '/v1/cues/by-key/k', `{${start},"payload":${text}}`)
      },
      status: 200
    }
  ],
  'POST /v1/cues/apply': [
    { bytes: MB, send: text => call('POST', '/v1/cues/apply', `{"set":"s","cues":[{${start},"key":"k","payload":${text}}]}`), status: 200 },
    {
      bytes: 4 * KB,
      send: text => call('POST', '/v1/cues/apply', `{"set":"s","cues":[${apart(300, n => `{${start},"key":"k${n}","payload":${text}}`)}]}`),
      status: 200
    },
    {
      bytes: 3 * KB,
      send: text => call('POST', '/v1/cues/apply', `{"set":"s","cues":[${apart(500, n => `{${start},"key":"k${n}","x":${text}}`)}]}`),
      status: 422
    },
    { bytes: 2 * MB - 200, send: text => call('POST', '/v1/cues/apply', `{"set":"s","cues":[${text}]}`), status: 413 }
  ],
  'PATCH /v1/cues/{cue_id}': [
    { bytes: MB, send: async text => call('PATCH', `/v1/cues/${await newCue()}`, `{"payload":${text}}`), status: 200 }
  ],
  'POST /v1/cues/{cue_id}/fire': [
    {
      bytes: 300 * KB, // numbers of canonical form are longer
      send: async text => {
        const body = `{"payload_override":${text},"idempotency_key":"x"}`
        return call('POST', `/v1/cues/${await newCue(text.replace('{', '{"0":1,'))}/fire`, body)
      },
      status: 200
    }
  ],
  'POST /v1/executions/{execution_id}/outcome': [
    {
      bytes: 4 * KB, // PostgreSQL writes 1e308 with all its digits
      send: async text => call('POST', `/v1/executions/${await claimed()}/outcome`, `{"success":true,"artifacts":[${text}]}`),
      status: 200
    },
    {
      bytes: 10 * KB - 20,
      send: async text => call('POST', `/v1/executions/${await claimed()}/outcome`, `{"success":true,"metadata":{"x":${text}}}`),
      status: 200
    },
    {
      bytes: 2 * MB - 200,
      send: async text => call('POST', `/v1/executions/${await claimed()}/outcome`, `{"success":true,"artifacts":[${text}]}`),
      status: 400
    }
  ],
  'PATCH /v1/executions/{execution_id}/evidence': [
    {
      bytes: 4 * KB, // PostgreSQL writes 1e308 with all its digits
      send: async text => {
        const id = await claimed()
        await post(`/v1/executions/${id}/outcome`, { success: true })
        return call('PATCH', `/v1/executions/${id}/evidence`, `{"artifacts":[${text}]}`)
      },
      status: 200
    }
  ],
  'POST /mcp': [
    {
      bytes: MB,
      send: text => call('POST', '/mcp', message('create_cue', `"name":"a","cron":"@daily","payload":${text}`), accept),
      status: 200
    },
    { bytes: 2 * MB - 200, send: text => call('POST', '/mcp', message('create_cue', `"name":${text}`), accept), status: 413 },
    {
      bytes: MB,
      send: text => call('POST', '/mcp', message('create_cue', `"name":"a","cron":"@daily","payload":${JSON.stringify(text)}`)),
      status: 200
    },
    { bytes: 2 * MB - 200, send: text => call('POST', '/mcp', `{"params":${text}}`, { accept: 'application/json' }), status: 406 }
  ],
  'POST /v1/echo/{token}': [{ bytes: MB, send: text => call('POST', `/v1/echo/${'x'.repeat(16)}`, text), status: 200 }]
}

/** One route gets all kinds; what is refused, only the most expensive one. */
const textsFor = (operation: string, bytes: number, status: number) => {
  if (status >= 400) return hostileJson(bytes, ['keys out of order'])
  return operation === 'POST /v1/cues' ? hostileJson(bytes) : someHostileJson(bytes)
}

for (const [operation, ways] of Object.entries(free)) {
  for (const { bytes, send, status } of ways) {
    t.test(`${operation}, ${bytes} bytes of JSON, ${status}`, async t => {
      for (const [name, text] of Object.entries(textsFor(operation, bytes, status))) {
        let answer: Sent = { status: 0, body: '' }
        const stall = await longestStall(async () => {
          answer = await send(text)
        }, MOST_MS)
        if (answer.status !== status) t.equal(answer.status, status, `${name}: ${answer.body.slice(0, 300)}`)
        t.ok(stall < MOST_MS, `${name}: ${stall.toFixed(1)} ms`)
      }
    })
  }
}

type Schema = { properties?: Record<string, Schema>; type?: string | string[]; anyOf?: Schema[] }
const others = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods as Record<string, { requestBody?: { content: Record<string, { schema: Schema }> } }>).flatMap(
    ([method, { requestBody }]) =>
      method === 'get' || `${method.toUpperCase()} ${path}` in free
        ? []
        : [{ method: method.toUpperCase(), path, schema: requestBody?.content['application/json']?.schema ?? {} }]
  )
)
const limits: Record<string, number> = { '/v1/support': 32 * KB, '/v1/billing/webhook': 256 * KB }

for (const { method, path, schema } of others) {
  t.test(`${method} ${path}, up to its limit`, async t => {
    const room = (limits[path] ?? 16 * KB) - 300
    const url = path.replace('{cue_id}', await newCue()).replace(/{\w+}/g, crypto.randomUUID())
    for (const [name, text] of Object.entries(someHostileJson(room))) {
      const { call } = as(await register()) // some routes revoke its key
      const bodies = [text, ...Object.keys(schema.properties ?? {}).map(member => `{"${member}":${text}}`)]
      const stall = await longestStall(async () => {
        for (const body of bodies) {
          const { status } = await call(method, url, body, { ...accept, ...confirmed })
          if (status === 413 || status === 500) t.fail(`${name}: ${status}`)
        }
      }, MOST_MS)
      t.ok(stall < MOST_MS, `${name}: ${stall.toFixed(1)} ms`)
    }
  })
}

/** Few runs remain of each hour, between exclusions that are short or rare. */
const exclusions = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ cron: n % 2 === 0 ? `${n >> 1}-58 * * * *` : `${n} 3 29 2 */7`, minutes: 1 }))
const hourly = { cron: '* * * * *', exclude: exclusions(10) }
/** Every minute is excluded until a Sunday that is the last day of a month. */
const endless = {
  cron: '* * * * *',
  exclude: [{ dates: ['12-25'] }, ...['0-58 * * * *', '59 * * * 1-6', '59 * 1-30 * 0'].map(cron => ({ cron, minutes: 1 }))]
}
const sundays = (minute: string, hour: number) => `${minute} ${hour} 29 2 */7`
const rare = {
  crons: Array.from({ length: 10 }, (_, n) => sundays(`*/${n + 2}`, n)),
  window: '50%',
  exclude: Array.from({ length: 10 }, (_, n) => ({ cron: sundays('*/2', n), minutes: 1 }))
}
const zones = Intl.supportedValuesOf('timeZone').slice(0, 100)
const dates = Array.from({ length: 1000 }, (_, n) => new Date(Date.UTC(2020, 0, 2 * n)).toISOString().slice(0, 10))
const ranges = Array.from({ length: 500 }, (_, n) => ({
  from: `${2020 + (n % 20)}-02-01T00:${10 + (n % 50)}`,
  to: `${2020 + (n % 20)}-02-01T09:00`
}))
const cues = (schedule: object) =>
  Array.from({ length: 500 }, (_, n) => ({
    key: `scheduled${n}`,
    name: 'a',
    worker: true,
    schedule: { timezone: zones[n % zones.length], ...schedule }
  }))
const json = JSON.stringify
const apply = (schedule: object, dry_run = true) =>
  call('POST', '/v1/cues/apply', json({ set: 'schedules', cues: cues(schedule), dry_run }))
const preview = (schedule: object) => call('POST', '/v1/schedules/preview', json({ schedule, count: 50 }))
const mcp = (schedule: object) =>
  json(
    Array.from({ length: 10 }, (_, id) => ({ ...JSON.parse(message('preview_schedule', json({ schedule, count: 50 }).slice(1, -1))), id }))
  )
const backfill = async (schedule: object) => {
  const { id: cue_id } = await post('/v1/cues', { name: 'a', worker: true, schedule })
  return call(
    'POST',
    '/v1/operations',
    json({ type: 'backfill', cue_id, from: '2026-01-01T00:00:00Z', to: '2026-01-31T00:00:00Z', dry_run: true })
  )
}
const resume = async (schedule: object) => {
  const { id } = await post('/v1/cues', { name: 'a', worker: true, schedule })
  await post(`/v1/cues/${id}/pause`)
  return call('POST', `/v1/cues/${id}/resume`, '{}')
}
await call('PUT', '/v1/calendars/a', json({ dates, ranges }))
await call('PUT', '/v1/calendars/b', json({ dates, ranges }))
const withCalendars = { cron: '0 9 * * *', exclude_calendars: ['a', 'b'] }
t.equal((await apply(withCalendars, false)).status, 200)

const scheduled: Record<string, { send: () => Promise<Sent>; status: number; body?: RegExp }> = {
  'a preview with fifty exclusions': {
    send: () => preview({ ...hourly, exclude: exclusions(50) }),
    status: 422,
    body: /at most 10 entries with cron and minutes/
  },
  'a preview of one slot per hour': { send: () => preview(hourly), status: 200 },
  'a preview of rare slots': { send: () => preview(rare), status: 200 },
  'a preview of rare slots in the far future': {
    send: () =>
      call(
        'POST',
        '/v1/schedules/preview',
        json({ schedule: { ...rare, timezone: 'Europe/Paris' }, from: '7000-01-01T00:00:00Z', count: 50 })
      ),
    status: 200
  },
  'a preview with full calendars': {
    send: () => preview({ cron: '* * * * *', exclude_calendars: ['a', 'b'], timezone: 'Asia/Gaza' }),
    status: 200
  },
  'a preview without a slot': {
    send: () => preview(endless),
    status: 422,
    body: /schedule\.exclude\.1: .*0-58 \* \* \* \*.* too expensive to search/
  },
  'ten previews over MCP': { send: () => call('POST', '/mcp', mcp(hourly), accept), status: 200 },
  'creating a cue': { send: () => call('POST', '/v1/cues', json({ name: 'a', worker: true, schedule: rare })), status: 201 },
  'a cue that is refused': { send: () => call('POST', '/v1/cues', json({ name: 'a', worker: true, schedule: endless })), status: 422 },
  'applying 500 cues': { send: () => apply(hourly), status: 200 },
  'applying 500 cues that are refused': { send: () => apply(endless), status: 422 },
  'applying 500 cues with full calendars': { send: () => apply({ ...withCalendars, window: '50%' }), status: 200 },
  'moving 500 cues by a calendar': {
    send: () => call('PUT', '/v1/calendars/a', json({ dates: [...dates.slice(1), `2020-01-0${1 + (Date.now() % 9)}`], ranges })),
    status: 200
  },
  'a backfill of 720 slots': { send: () => backfill(hourly), status: 200 },
  'resuming a cue': { send: () => resume(rare), status: 200 },
  'a list of schedules in words': {
    send: async () => {
      const { statusCode, body } = await app.inject({
        url: '/v1/cues?summary=true&limit=100',
        headers: { authorization: `Bearer ${account.api_key}` }
      })
      return { status: statusCode, body }
    },
    status: 200
  }
}

for (const [name, { send, status, body }] of Object.entries(scheduled)) {
  t.test(name, async t => {
    let answer: Sent = { status: 0, body: '' }
    const stall = await longestStall(async () => {
      answer = await send()
    }, MOST_MS)
    t.equal(answer.status, status, answer.body.slice(0, 300))
    if (body) t.ok(body.test(answer.body), answer.body.slice(0, 300))
    t.ok(stall < MOST_MS, `${stall.toFixed(1)} ms`)
  })
}
