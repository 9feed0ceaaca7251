/** Rules of all lists: their pages, and what their parameters accept. */
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { paths } from '../support/openapi.ts'
import { serviceAt } from '../support/service.ts'
import { build, eventually } from '../support/setup.ts'

const service = serviceAt()

t.test('pages of every list neither overlap nor skip, newest first', async t => {
  const { call, get, post, account, fn, clock, pool } = await build(t, '2030-01-15T09:00:00Z', {
    env: { PLANS: '{"free": {"cues": 100}}' }
  })
  const cue = async () => (await post('/v1/cues', { name: 'a', cron: '@yearly', worker: true })).id as string
  const first = await cue()
  const fire = async () => (await post(`/v1/cues/${first}/fire`)).id as string
  const text = { subject: 'The report is late', message: 'Since Monday the report has come an hour late.' }
  const heartbeat = async (n: number) => {
    await fn.heartbeatWorker({ account_id: account.id, worker_id: `w${n}`, handlers: [] })
    return `w${n}`
  }
  const operation = async (n: number) => {
    const body = { type: ['cancel', 'dismiss', 'replay', 'fire', 'pause'][n], ids: ['x'] }
    return (await post('/v1/operations', body)).id as string
  }
  const alert = async () => {
    const id = await cue()
    await pool.query("select cue.raise_alert(c, 'missed_window', 'high', 'late', '{}', null, $2) from cue.cues c where id = $1", [
      id,
      clock.now()
    ])
    return id
  }
  // Each list, the member by which its items are known, and what adds one.
  const lists: [path: string, id: string, add: (n: number) => Promise<string>][] = [
    ['cues', 'id', cue],
    ['executions', 'id', fire],
    ['operations', 'id', operation],
    ['alerts', 'cue_id', alert],
    ['workers', 'worker_id', heartbeat],
    ['calendars', 'name', async n => (await call('PUT', `/v1/calendars/c${9 - n}`, {})).body.name],
    ['support', 'ticket_id', async () => (await post('/v1/support', text)).ticket_id],
    [
      'auth/sessions',
      'created_at',
      async () => (await post('/v1/auth/browser-session', { api_key: account.api_key })) && clock.now().toISOString()
    ],
    ['auth/audit', 'created_at', async n => (await post('/v1/auth/keys', { label: `${n}` })).created_at]
  ]
  clock.advance('2 hours')
  for (const [list, id, add] of lists) {
    const path = `/v1/${list}`
    const earlier = (await get(`${path}?limit=100`)).total
    const added: unknown[] = []
    for (let n = 0; n < 5; n++) {
      clock.advance('1 second')
      added.unshift(await add(n))
    }
    const total = earlier + 5
    for (const [limit, offset] of [
      [5, 0],
      [2, 0],
      [2, 1],
      [2, 3],
      [3, 2],
      [1, 4],
      [2, total],
      [2, total + 4]
    ] as const) {
      const page = await get(`${path}?limit=${limit}&offset=${offset}`)
      const [items] = Object.values(page) as [Record<string, unknown>[]]
      const expected = added.slice(offset, offset + limit)
      t.same(
        items.map(item => item[id]),
        expected,
        `${path}: ${limit} from ${offset}`
      )
      exactly(t, page, { total, ...('limit' in page && { limit, offset }) })
      if ('has_more' in page) t.equal(page.has_more, offset + limit < total, `${path}: more after ${limit} from ${offset}`)
    }
  }
})

t.test('cues are listed by next run, name and failures, and executions by duration, page by page', async t => {
  const { call, get, pool, account } = await build(t, '2030-01-15T09:00:00Z')
  await pool.query(
    `with c as (
       insert into cue.cues (id, account_id, name, transport, schedule_type, cron, payload, created_at)
       select 'cue_' || lpad(n::text, 12, '0'), $1, name, 'worker', 'recurring', '0 * * * *', '{}', '2030-01-01'::timestamptz + n * interval '1 second'
         from (values (1, 'beta'), (2, 'Alpha'), (3, 'gamma'), (4, 'alpha')) x (n, name) returning id, account_id, substr(id, 16)::int as n)
     insert into cue.cue_runs (cue_id, account_id, transport, next_run, failed_deliveries, failed_outcomes)
     select id, account_id, 'worker', case when n < 4 then '2030-02-01'::timestamptz - n * interval '1 hour' end, case n when 2 then 3 else 0 end,
            case n when 1 then 5 else 0 end from c`,
    [account.id]
  )
  // The third one was missed; of the first, only the last attempt counts.
  await pool.query(
    `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, last_attempt_at,
            delivered_at, ended_at, created_at, updated_at)
     select cue.uuid_v7(at), $1, 'cue_000000000001', 'webhook', case when ms is null then 'missed' else 'success' end::cue.execution_status, 'schedule',
            at, '{}', 1, at - interval '1 minute', at, delivered_at, at + interval '1 second', at, at + interval '1 second'
       from (values (1, 20), (2, 400), (3, null), (4, 90)) x (n, ms)
      cross join lateral (select '2030-01-15 08:00Z'::timestamptz + n * interval '1 minute' as at) a
      cross join lateral (select at + ms * interval '1 millisecond' as delivered_at) b`,
    [account.id]
  )
  const last = ({ id, created_at }: { id: string; created_at: string }) =>
    Number(id.startsWith('cue_') ? id.slice(-1) : created_at.slice(15, 16))
  type Item = Parameters<typeof last>[0]
  const order = async (path: string) => {
    const found: number[] = []
    for (let cursor = ''; ; ) {
      const page = await get(`${path}&limit=3${cursor && `&cursor=${cursor}`}`)
      found.push(...((page.cues ?? page.executions) as Item[]).map(last))
      t.same([page.total, page.has_more], [4, page.next_cursor !== null])
      if (page.next_cursor === null) return found
      cursor = page.next_cursor
    }
  }
  for (const more of ['', '&search_to=100&count_to=10', '&search_to=100&status=active']) {
    t.same(await order(`/v1/cues?sort=next_run${more}`), [3, 2, 1, 4])
    t.same(await order(`/v1/cues?sort=name${more}`), [4, 2, 1, 3])
    t.same(await order(`/v1/cues?sort=failures${more}`), [1, 2, 4, 3])
  }
  for (const more of ['', '&search_to=100&count_to=10', '&search_to=100&triggered_by=schedule', '&cue_id=cue_000000000001'])
    t.same(await order(`/v1/executions?sort=duration${more}`), [2, 4, 1, 3])
  exactly(t, await get('/v1/cues?sort=name&offset=2&limit=1'), { cues: [{ name: 'beta' }], next_cursor: '3' })
  for (const path of ['/v1/cues?cursor=3', '/v1/cues?sort=name&cursor=1.cue_000000000001', '/v1/executions?cursor=3'])
    t.same((await call('GET', path)).body.detail[0].loc, ['query', 'cursor'], path)
})

type Schema = {
  type: string
  enum?: string[]
  format?: string
  pattern?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
  items?: Schema
}

/** Texts that a schema of a query parameter doesn't accept. */
const wrongFor = ({ type, enum: values, format, pattern, minimum, maximum, minLength, maxLength, maxItems, items }: Schema): string[] => {
  if (type === 'array')
    return [...wrongFor(items!), ...(maxItems ? [Array.from({ length: maxItems + 1 }, (_, n) => `a${n}`).join('&NAME=')] : [])]
  if (type === 'boolean') return ['maybe', 'yes', '']
  if (type === 'number') return ['x', '', String(minimum! - 1), String(maximum! + 1)]
  if (type === 'integer') return ['x', '', '1.5', String(minimum! - 1), String(maximum! + 1), '99999999999999999999']
  if (values) return ['nonsense', '', `${values[0]}&NAME=${values[1]}`]
  if (format === 'date-time') return ['yesterday', '2030-01-15T09:00:00', '2030-13-01T00:00:00Z', '1e9', '0']
  if (format === 'date') return ['x', '2030-02-30', '1999-12-31', '9999-12-31']
  if (pattern) return ['', 'x', "1.cue_'"]
  return [...(minLength ? [''] : []), ...(maxLength ? ['x'.repeat(maxLength + 1)] : [])]
}

t.test('every query parameter refuses what its schema does not allow, and is named', async t => {
  const { app, call } = await build(t, undefined, { env: { OPERATOR_TOKEN: 'o'.repeat(32) } })
  await app.ready()
  let tried = 0
  for (const [path, { get }] of Object.entries(paths as unknown as Record<string, { get?: { parameters?: Parameter[] } }>))
    for (const { name, in: where, schema } of get?.parameters ?? []) {
      if (where !== 'query' || !path.startsWith('/v1/') || /verify$|history$/.test(path)) continue
      const headers = { ...(path.startsWith('/v1/operator') && { authorization: `Bearer ${'o'.repeat(32)}` }) }
      for (const wrong of wrongFor(schema)) {
        const url = `${path.replace(/{\w+}/, 'why_late')}?${name}=${wrong.replaceAll('NAME', name)}`
        const { status, body } = await call('GET', url, undefined, headers)
        t.same([status, body.error?.code, body.detail?.[0].loc.slice(0, 2)], [422, 'validation_error', ['query', name]], url.slice(0, 120))
        tried++
      }
    }
  t.ok(tried > 150, `${tried}`)
})
type Parameter = { name: string; in: string; schema: Schema }

t.test("an account's lists are read one after another; other accounts and its other requests don't wait for them", async t => {
  const { get, other, cue, row, pool } = await service()
  const { calls } = await other()
  const cue_id = await cue()
  const blocker = await pool.connect()
  await blocker.query('begin; lock table cue.alerts, cue.tickets in access exclusive mode')
  const lists = ['/v1/alerts', '/v1/alerts?limit=2', '/v1/support'].map(path => get(path))
  const others = calls.get('/v1/alerts')
  const blocked = async () =>
    (await row("select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")).n
  await eventually(async () => (await blocked()) === 4) // each list has two statements: its rows and their number
  exactly(t, await get(`/v1/cues/${cue_id}`), { id: cue_id })
  t.equal(await blocked(), 4)
  await blocker.query('commit')
  blocker.release()
  for (const list of await Promise.all([...lists, others])) exactly(t, list, { total: 0 })
})
