// Gates as the API shows and refuses them, and cues that name them.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { serviceAt } from '../support/service.ts'
import { build, error, invalid } from '../support/setup.ts'

const service = serviceAt('2030-01-15T09:00:00Z')
const openai = '/v1/gates/openai'
const none = { paused_at: null, paused_by: null, pause_reason: null, paused_until: null }
const empty = {
  ...{ key: 'openai', parallel: null, rate: null, per: null, order: false, on_failure: 'continue', breaker: null, budget: null },
  ...{ max_wait: '24h', description: null, ...none, created_at: '2030-01-15T09:00:00.000Z', updated_at: '2030-01-15T09:00:00.000Z' }
}
const full = {
  parallel: 1,
  rate: 60,
  per: '10s',
  order: true,
  on_failure: 'pause',
  breaker: { failures: 3, open_seconds: 5, max_open_seconds: 60 },
  budget: { limit: '25.00', unit: 'usd', per: 'day', timezone: 'Europe/Berlin', reserve: '0.5' },
  max_wait: '90m',
  description: 'the model'
}

t.test('a gate is created, read, listed, replaced and deleted', async t => {
  const { call, get, clock } = await service()
  const put = async (body: object, path = openai) => call('PUT', path, body).then(({ status, body }) => [status, body])
  t.strictSame(await put({}), [201, empty])
  clock.advance('1 minute')
  t.strictSame(await put({ order: null, max_wait: null }), [200, empty], 'nothing is written')
  const changed = { ...empty, ...full, updated_at: '2030-01-15T09:01:00.000Z' }
  t.strictSame(await put({ ...full, budget: { ...full.budget, timezone: 'europe/berlin', reserve: 0.5 } }), [200, changed])
  const idle = { running: 0, waiting: 0, oldest_waiting_seconds: null, next_start_at: '2030-01-15T09:01:00.000Z', parts: [] }
  const budget = { spent: '0', reserved: '0', period_ends_at: '2030-01-15T23:00:00.000Z' }
  const closed = { breaker_state: { state: 'closed', failures: 0, open_until: null } }
  t.strictSame(await get(openai), { ...changed, ...idle, ...closed, ...budget })
  t.strictSame(await get(`${openai}%23tenant-42`), { ...changed, key: 'openai#tenant-42', ...idle, ...closed, ...budget })
  const [, { breaker, budget: weekly }] = await put({ breaker: {}, budget: { limit: 0, unit: 'usd', per: 'week' } }, '/v1/gates/a%2Fb')
  t.strictSame(breaker, { failures: 10, open_seconds: 30, max_open_seconds: 600 })
  t.strictSame(weekly, { limit: '0', unit: 'usd', per: 'week', timezone: 'UTC', reserve: null })
  exactly(t, await get('/v1/gates'), { gates: [{ key: 'a/b' }, { key: 'openai' }], total: 2, limit: 20, offset: 0 })
  t.strictSame((await put({}))[1], { ...empty, updated_at: '2030-01-15T09:01:00.000Z' }, 'what is left out returns to its default')
  t.equal((await call('DELETE', openai)).status, 204)
  for (const [method, path, body] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/pause', {}],
    ['POST', '/resume', {}]
  ] as const)
    exactly(t, await call(method, openai + path, body), error('gate_not_found', 404))
  exactly(t, await call('GET', '/v1/gates/c%23b'), error('gate_not_found', 404))
  exactly(t, await call('GET', '/v1/gates/a%23'), error('gate_not_found', 404))
  exactly(t, await get('/v1/auth/audit'), {
    events: [
      { event: 'gate.deleted', actor: /^key:/, detail: { key: 'openai' } },
      ...[{ detail: { key: 'openai' } }, { detail: { key: 'a/b' } }, {}, { event: 'gate.set' }, {}]
    ]
  })
})

t.test('refuses settings that contradict each other, and names what to write instead', async t => {
  const { call } = await service()
  const budget = { limit: '1', unit: 'usd', per: 'day' }
  const refusals: [body: object, member: string, message?: RegExp][] = [
    [{ rate: 60 }, 'per', /such as 10s/],
    [{ per: '10s' }, 'rate', /how many attempts/],
    [{ rate: 0, per: '10s' }, 'rate'],
    [{ parallel: 0 }, 'parallel'],
    [{ parallel: 1001 }, 'parallel'],
    [{ rate: 1, per: '10 s' }, 'per', /a whole number and a unit/],
    [{ rate: 1, per: '10w' }, 'per', /a whole number and a unit/],
    [{ rate: 1, per: '0s' }, 'per', /from 1s to 31d/],
    [{ rate: 1, per: '32d' }, 'per', /from 1s to 31d/],
    [{ order: true, parallel: 3 }, 'parallel', /must be 1 with order/],
    [{ on_failure: 'pause' }, 'on_failure', /order: true/],
    [{ breaker: { failures: 0 } }, 'breaker.failures'],
    [{ breaker: { open_seconds: 700, max_open_seconds: 600 } }, 'breaker.open_seconds', /must not exceed max_open_seconds/],
    [{ budget: { ...budget, limit: '1.0000000001' } }, 'budget.limit'],
    [{ budget: { ...budget, limit: 1e-10 } }, 'budget.limit', /nine decimal places/],
    [{ budget: { ...budget, limit: '-1' } }, 'budget.limit'],
    [{ budget: { ...budget, unit: '' } }, 'budget.unit'],
    [{ budget: { ...budget, per: 'year' } }, 'budget.per'],
    [{ budget: { ...budget, timezone: 'Mars' } }, 'budget.timezone', /IANA/],
    [{ max_wait: '1' }, 'max_wait'],
    [{ unknown: 1 }, 'unknown']
  ]
  for (const [body, member, message = /./] of refusals) {
    const expected = { status: 422, body: { error: { message }, detail: [{ loc: ['body', ...member.split('.')] }] } }
    exactly(t, await call('PUT', openai, body), expected, JSON.stringify(body))
  }
  t.equal((await call('PUT', '/v1/gates/a%23b', {})).status, 422)
})

t.test('a cue names a gate that exists, or one of its parts; a gate in use stays', async t => {
  const { call, get, cue, patch, other } = await service()
  const unknown = {
    status: 422,
    body: { error: { code: 'validation_error', message: /^gate: .*gate openai not found/ }, detail: [{ loc: ['body', 'gate'] }] }
  }
  const create = (gate: string) => call('POST', '/v1/cues', { name: 'n', cron: '0 9 * * *', worker: true, gate })
  exactly(t, await create('openai'), unknown)
  await call('PUT', openai, {})
  const id = await cue({ gate: 'openai#tenant-42' })
  t.equal((await get(`/v1/cues/${id}`)).gate, 'openai#tenant-42')
  for (const malformed of ['openai#', '#a', 'open ai', 'a#b#c', '..']) exactly(t, await create(malformed), invalid('body', 'gate'))
  exactly(t, await call('DELETE', openai), { status: 409, body: { error: { code: 'gate_in_use', cue_ids: [id] } } })
  exactly(t, await call('PATCH', `/v1/cues/${id}`, { gate: 'other' }), {
    status: 422,
    body: { error: { message: /gate other not found/ }, detail: [{ loc: ['body', 'gate'] }] }
  })
  t.equal((await patch(`/v1/cues/${id}`, { gate: null })).gate, null)
  t.equal((await call('DELETE', openai)).status, 204)
  exactly(t, await call('PATCH', `/v1/cues/${id}`, { gate: 'openai' }), unknown)
  const mine = await cue({})
  await (await other()).calls.call('PUT', openai, {})
  exactly(t, await call('PATCH', `/v1/cues/${mine}`, { gate: 'openai' }), unknown, 'nor one of another account')
})

t.test('cues name at most so many parts of a gate', async t => {
  const { call, pool } = await build(t, '2030-01-15T09:00:00Z', { isNew: true })
  await pool.query('create or replace function cue.part_limit() returns int language sql immutable as $$ select 2 $$')
  await call('PUT', openai, {})
  const create = (gate: string) => call('POST', '/v1/cues', { name: gate, cron: '@daily', worker: true, gate })
  const first = await create('openai#a')
  const second = await create('openai#b')
  const message = /^gate: .*gate openai has 2 parts in use; name one of them, or another gate$/
  const refused = { status: 422, body: { error: { code: 'validation_error', message }, detail: [{ loc: ['body', 'gate'] }] } }
  exactly(t, await create('openai#c'), refused)
  exactly(t, await call('PATCH', `/v1/cues/${second.body.id}`, { gate: 'openai#c' }), refused)
  t.equal((await create('openai#b')).status, 201)
  await call('DELETE', `/v1/cues/${first.body.id}`)
  t.equal((await create('openai#c')).status, 201)
})

t.test('a gate is paused with a reason until a time, and resumed', async t => {
  const { call, get } = await service()
  await call('PUT', openai, { parallel: 2 })
  const until = '2030-01-15T10:00:00.000Z'
  exactly(t, await call('POST', `${openai}/pause`, { until: '2030-01-15T09:00:00Z' }), invalid('body', 'until'))
  const paused = { paused_at: '2030-01-15T09:00:00.000Z', paused_by: /^key:/, pause_reason: 'maintenance', paused_until: until }
  exactly(t, await call('POST', `${openai}/pause`, { reason: 'maintenance', until }), { status: 200, body: paused })
  exactly(t, (await call('PUT', openai, { parallel: 3 })).body, { parallel: 3, ...paused }, 'other settings leave it paused')
  exactly(t, await call('POST', `${openai}/resume`, {}), { status: 200, body: none })
  exactly(t, await call('POST', `${openai}/resume`, {}), { status: 200, body: none })
  const { events } = await get('/v1/auth/audit')
  t.strictSame(events.map(({ event }: { event: string }) => event).slice(0, 3), ['gate.resumed', 'gate.set', 'gate.paused'])
})

t.test('executions that wait are listed by gate, the next first', async t => {
  const { call, get, post, clock } = await service()
  await call('PUT', openai, {})
  await call('POST', `${openai}/pause`, {})
  const cues: string[] = []
  for (const gate of ['openai', 'openai', 'openai#a'])
    cues.push((await post('/v1/cues', { name: `c${cues.length}`, cron: '@yearly', callback: { url: 'https://example.com' }, gate })).id)
  const ids: string[] = []
  for (const cue of [...cues, ...cues]) {
    clock.advance('1 second')
    ids.push((await post(`/v1/cues/${cue}/fire`, {})).id)
  }
  const list = async (query: string) => {
    const { executions, total, next_cursor } = await get(`/v1/executions?${query}`)
    return { ids: executions.map(({ id }: { id: string }) => ids.indexOf(id)), total, next_cursor }
  }
  t.strictSame(await list('held=gate'), { ids: [5, 4, 3, 2, 1, 0], total: 6, next_cursor: null })
  t.strictSame(await list('gate=openai&sort=due&limit=3'), { ids: [0, 1, 3], total: 4, next_cursor: '3' })
  t.strictSame(await list('gate=openai&sort=due&limit=3&cursor=3'), { ids: [4], total: 4, next_cursor: null })
  t.strictSame(await list('held=gate&gate=openai%23a&status=pending&search_to=100'), { ids: [5, 2], total: 2, next_cursor: null })
  for (const none of ['held=overlap', 'held=approval', 'held=overlap&gate=openai', 'gate=unknown', 'gate=openai&status=success'])
    t.same((await list(none)).ids, [], none)
  await call('POST', `/v1/executions/${ids[0]}/cancel`)
  t.same((await list('gate=openai&sort=due')).ids, [1, 3, 4])
  exactly(t, await call('GET', '/v1/executions?held=nothing'), invalid('query', 'held'))
})

t.test('an account has 100 gates', async t => {
  const { call, pool, account } = await service()
  await pool.query(
    `insert into cue.gates (account_id, key, created_at, updated_at) select $1, 'g' || n, now(), now() from generate_series(1, 100) n`,
    [account.id]
  )
  exactly(t, await call('PUT', openai, {}), error('gate_limit_exceeded', 403))
  t.equal((await call('PUT', '/v1/gates/g1', { parallel: 1 })).status, 200)
})

t.test('apply puts gates before the cues that name them, all or none', async t => {
  const { call, get } = await service()
  const cues = [{ key: 'a', name: 'a', cron: '0 9 * * *', worker: true, gate: 'openai' }]
  const apply = (body: object) => call('POST', '/v1/cues/apply', { set: 's', cues, ...body })
  exactly(t, await apply({}), { status: 422, body: { detail: [{ loc: ['body', 'cues', 'a', 'gate'] }] } })
  const gates = [{ key: 'openai', parallel: 2 }]
  const created = { created: ['openai'], updated: [], unchanged: [] }
  exactly(t, await apply({ gates, dry_run: true }), { status: 200, body: { created: ['a'], gates: created } })
  exactly(t, await call('GET', openai), error('gate_not_found', 404))
  exactly(t, await apply({ gates: [{ key: 'openai', rate: 1 }] }), {
    status: 422,
    body: { detail: [{ loc: ['body', 'gates', 'openai', 'per'] }] }
  })
  exactly(t, await apply({ gates: [...gates, ...gates] }), { status: 422, body: { detail: [{ loc: ['body', 'gates', 'openai', 'key'] }] } })
  exactly(t, await apply({ gates }), { status: 200, body: { created: ['a'], gates: created } })
  exactly(t, await apply({ gates }), {
    status: 200,
    body: { unchanged: ['a'], gates: { created: [], updated: [], unchanged: ['openai'] } }
  })
  exactly(t, await apply({ gates: [{ key: 'openai' }] }), {
    body: { unchanged: ['a'], gates: { created: [], updated: ['openai'], unchanged: [] } }
  })
  exactly(t, await get(openai), { parallel: null })
})
