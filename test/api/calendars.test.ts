// Calendars: exclusions that cues share. A change moves the next run of every cue that uses it.
import t from 'tap'
import { createPauseSweep } from '../../src/firing/ended-pauses.ts'
import { exactly } from '../support/exactly.ts'
import { fire, look } from '../support/firing-stage.ts'
import { serviceAt } from '../support/service.ts'
import { error } from '../support/setup.ts'

const start = '2030-01-07T08:30:00Z'
const service = serviceAt(start)
type Service = Awaited<ReturnType<typeof service>>
const holidays = '/v1/calendars/holidays'
const daily = (calendars: string[] = ['holidays'], others: object = {}) => ({
  cron: undefined,
  schedule: { cron: '0 9 * * *', exclude_calendars: calendars, ...others }
})
const at = (day: number) => `2030-01-${String(day).padStart(2, '0')}T09:00:00.000Z`
const next = async (s: Service, id: string) => (await s.get(`/v1/cues/${id}`)).next_run

t.test('a calendar is created, read, listed, replaced and deleted', async t => {
  const s = await service()
  const given = {
    description: 'no work',
    dates: ['12-25', '2030-01-07'],
    ranges: [{ from: '2030-02-01T00:00', to: '2030-02-02T01:00:00+01:00' }]
  }
  const shown = {
    name: 'holidays',
    description: 'no work',
    dates: given.dates,
    ranges: [{ from: '2030-02-01T00:00', to: '2030-02-02T00:00:00.000Z' }],
    created_at: '2030-01-07T08:30:00.000Z',
    updated_at: '2030-01-07T08:30:00.000Z'
  }
  t.strictSame(await s.call('PUT', holidays, given).then(({ status, body }) => [status, body]), [201, shown])
  t.strictSame(await s.get(holidays), shown)
  s.clock.advance('1 minute')
  t.strictSame(await s.call('PUT', holidays, given).then(({ status, body }) => [status, body]), [200, shown], 'nothing is written')
  const replaced = { ...shown, description: null, dates: [], ranges: [], updated_at: '2030-01-07T08:31:00.000Z' }
  t.strictSame(await s.call('PUT', holidays, {}).then(({ status, body }) => [status, body]), [200, replaced])
  await s.call('PUT', '/v1/calendars/a%2Fb', { dates: ['01-01'] })
  exactly(t, await s.get('/v1/calendars'), { calendars: [{ name: 'a/b' }, { name: 'holidays' }], total: 2, limit: 20, offset: 0 })
  exactly(t, await s.get('/v1/calendars?limit=1&offset=1'), { calendars: [{ name: 'holidays' }], total: 2 })
  t.equal((await s.call('DELETE', holidays)).status, 204)
  exactly(t, await s.call('GET', holidays), error('calendar_not_found', 404))
  exactly(t, await s.call('DELETE', holidays), error('calendar_not_found', 404))
  exactly(t, await s.call('GET', '/v1/calendars/%20'), error('calendar_not_found', 404))
})

t.test('a change moves the next run of active cues that use it, and nothing else', async t => {
  const s = await service()
  await s.call('PUT', holidays, { dates: [] })
  await s.call('PUT', '/v1/calendars/other', { dates: ['2030-01-09'] })
  const [one, both, without, paused] = [
    await s.cue(daily()),
    await s.cue(daily(['other', 'holidays'])),
    await s.cue({ cron: '0 9 * * *' }),
    await s.cue(daily())
  ]
  const windowed = await s.cue(daily(['holidays'], { window: '30m' }))
  await s.patch(`/v1/cues/${paused}`, { status: 'paused' })
  const before = await s.get(`/v1/cues/${one}`)
  t.equal((await s.call('PUT', holidays, { dates: ['2030-01-07', '01-08'] })).status, 200)
  t.strictSame(await Promise.all([one, both, without, paused].map(id => next(s, id))), [at(9), at(10), at(7), null])
  exactly(t, await s.get(`/v1/cues/${windowed}`), { next_slot: at(9), next_run: /^2030-01-09T09:/ })
  t.strictSame(await s.get(`/v1/cues/${one}`), { ...before, next_run: at(9), next_slot: at(9) }, 'the version stays')
  exactly(t, await s.patch(`/v1/cues/${paused}`, { status: 'active' }), { next_run: at(9) })
  await s.call('PUT', holidays, { ranges: [{ from: '2030-01-10T00:00', to: '2030-01-11T00:00' }] })
  t.strictSame(await Promise.all([one, both].map(id => next(s, id))), [at(7), at(7)])
  exactly(t, await s.call('PATCH', `/v1/cues/${one}`, { name: 'renamed' }, { 'if-match': '"1"' }), { status: 200, body: { version: 2 } })
  exactly(t, await s.call('DELETE', `/v1/cues/${one}`, undefined, { 'if-match': '"1"' }), { status: 412 })
  t.equal((await s.call('DELETE', `/v1/cues/${one}`, undefined, { 'if-match': '"2"' })).status, 204)
})

t.test('a calendar that cues use is not deleted, and the error names them', async t => {
  const s = await service()
  await s.call('PUT', holidays, { dates: ['12-25'] })
  const ids = [await s.cue(daily()), await s.cue(daily())].sort()
  exactly(t, await s.call('DELETE', holidays), {
    status: 409,
    body: {
      error: {
        code: 'calendar_in_use',
        message: `Calendar holidays is used by ${ids.join(', ')}. Remove it from their schedule.exclude_calendars first.`,
        status: 409,
        cue_ids: ids
      }
    }
  })
  await s.call('DELETE', `/v1/cues/${ids[0]}`)
  await s.patch(`/v1/cues/${ids[1]}`, { schedule: { exclude_calendars: [] } })
  t.equal((await s.call('DELETE', holidays)).status, 204)
  exactly(t, (await s.get(`/v1/cues/${ids[1]}`)).schedule, { cron: '0 9 * * *' })
})

t.test('refuses unknown calendars, also those of other accounts, with the name', async t => {
  const s = await service()
  const { calls } = await s.other()
  await calls.call('PUT', holidays, { dates: ['12-25'] })
  const id = await s.cue()
  const detail = [
    {
      type: 'value_error',
      loc: ['body', 'schedule', 'exclude_calendars', 0],
      msg: 'Value error, calendar holidays not found; create it with PUT /v1/calendars/{name}',
      input: null
    }
  ]
  const { schedule } = daily()
  for (const [method, path, body] of [
    ['POST', '/v1/cues', { name: 'n', worker: true, schedule }],
    ['PATCH', `/v1/cues/${id}`, { schedule }],
    ['PUT', '/v1/cues/by-key/k', { name: 'n', worker: true, schedule }],
    ['POST', '/v1/schedules/preview', { schedule }]
  ] as const) {
    const answer = await s.call(method, path, body)
    t.strictSame([answer.status, answer.body.detail], [422, detail], path)
  }
  const applied = await s.call('POST', '/v1/cues/apply', { set: 's', cues: [{ key: 'k', name: 'n', worker: true, schedule }] })
  t.strictSame([applied.status, applied.body.detail[0].loc], [422, ['body', 'cues', 'k', 'schedule', 'exclude_calendars', 0]])
})

t.test('calendars work with keys, apply, preview and a change of the schedule', async t => {
  const s = await service()
  await s.call('PUT', holidays, { dates: ['2030-01-07'] })
  const { schedule } = daily()
  const body = { name: 'n', worker: true, schedule }
  exactly(t, await s.call('PUT', '/v1/cues/by-key/k', body), { status: 201, body: { next_run: at(8), changed: true } })
  exactly(t, await s.call('PUT', '/v1/cues/by-key/k', body), { status: 200, body: { next_run: at(8), changed: false } })
  exactly(
    t,
    await s.call('POST', '/v1/cues/apply', {
      set: 's',
      cues: [
        { ...body, key: 'a' },
        { ...body, key: 'k' }
      ]
    }),
    {
      status: 200,
      body: { created: ['a'], updated: [{ key: 'k' }] }
    }
  )
  exactly(t, await s.get('/v1/cues?key=a'), { cues: [{ next_run: at(8), schedule }] })
  exactly(t, await s.post('/v1/schedules/preview', { schedule, count: 1 }), {
    next: [{ at: at(8) }],
    description: 'Every day at 09:00, except the calendar holidays, UTC'
  })
  const { id } = (await s.get('/v1/cues?key=a')).cues[0]
  exactly(t, await s.patch(`/v1/cues/${id}`, { schedule: { cron: '0 10 * * *' } }), {
    next_run: '2030-01-08T10:00:00.000Z',
    schedule: { exclude_calendars: ['holidays'] }
  })
})

t.test('an engine that has computed the following slot before a change computes it again', async t => {
  const s = await service()
  await s.call('PUT', holidays, { dates: [] })
  const id = await s.cue({ ...daily(), callback: { url: 'http://127.0.0.1:5555/' } })
  s.clock.set(at(7))
  await s.fn.beatEngine({ engine_id: '00000000-0000-4000-8000-000000000001', version: '1.0.0', missed_after: '100 years' })
  const seen = await look(s)
  t.strictSame(
    seen.map(cue => cue.slot.next?.due.toISOString()),
    [at(8)]
  )
  await s.call('PUT', holidays, { dates: ['2030-01-08'] })
  t.strictSame(await fire(seen, s.fn), [], 'what it has computed is out of date')
  t.equal((await fire(await look(s), s.fn)).length, 1)
  t.equal(await next(s, id), at(9))
})

t.test('a slot that is due when it becomes excluded does not fire', async t => {
  const s = await service()
  await s.call('PUT', holidays, { dates: [] })
  const id = await s.cue({ ...daily(), callback: { url: 'http://127.0.0.1:5555/' } })
  s.clock.set(at(7))
  await s.fn.beatEngine({ engine_id: '00000000-0000-4000-8000-000000000001', version: '1.0.0', missed_after: '100 years' })
  await s.call('PUT', holidays, { dates: ['2030-01-07'] })
  t.strictSame(await fire(await look(s), s.fn), [])
  exactly(t, await s.get(`/v1/cues/${id}`), { next_run: at(8), execution_total: 0 })
})

t.test('a cue that resumes at the time of a change resumes by the new calendar', async t => {
  const s = await service()
  await s.call('PUT', holidays, { dates: [] })
  const id = await s.cue(daily())
  await s.post(`/v1/cues/${id}/pause`, { until: '2030-01-07T08:31:00Z' })
  s.clock.set('2030-01-07T08:31:00Z')
  const ended = await s.fn.endedPauses({})
  await s.call('PUT', holidays, { dates: ['2030-01-07'] })
  t.equal(await s.fn.resumeCues({ cue_ids: [id], versions: [ended[0]!.version], next_runs: [new Date(at(7))] }), 0)
  t.equal(await createPauseSweep({ fn: s.fn })(), 1)
  t.equal(await next(s, id), at(8))
})

t.test('cues that are created and changed while a calendar changes follow the new one', async t => {
  const s = await service()
  await s.call('PUT', holidays, { dates: [] })
  const ids = [await s.cue(daily()), await s.cue(), await s.cue(daily())]
  for (const date of ['2030-01-07', '2030-01-08', '2030-01-07', '2030-01-08']) {
    const answers = await Promise.all([
      s.call('PUT', holidays, { dates: [date] }),
      s.call('POST', '/v1/cues', { name: 'n', worker: true, ...daily() }),
      s.call('PATCH', `/v1/cues/${ids[1]}`, daily()),
      s.call('PATCH', `/v1/cues/${ids[2]}`, { schedule: { cron: '0 9 * * *', exclude: [{ dates: [`12-${date.slice(-2)}`] }] } }),
      s.call('PUT', '/v1/cues/by-key/k', { name: 'n', worker: true, ...daily(), description: date }),
      s.call('POST', `/v1/cues/${ids[0]}/pause`, {}).then(() => s.call('POST', `/v1/cues/${ids[0]}/resume`, {}))
    ])
    t.strictSame(
      answers.map(({ status }) => status).filter(status => status >= 300),
      []
    )
    const { cues } = await s.get('/v1/cues?limit=100')
    const expected = date === '2030-01-07' ? at(8) : at(7)
    t.strictSame([...new Set(cues.map(({ next_run }: { next_run: string }) => next_run))], [expected])
    exactly(t, await s.get(`/v1/cues/${ids[1]}`), { schedule: { exclude_calendars: ['holidays'] } })
  }
})

t.test('a change waits for rows that others hold, and changes nothing if it fails', async t => {
  const s = await service()
  await s.call('PUT', holidays, { dates: [] })
  const id = await s.cue(daily())
  const client = await s.pool.connect()
  await client.query('begin')
  await client.query('select from cue.cue_runs where cue_id = $1 for update', [id])
  const change = s.call('PUT', holidays, { dates: ['2030-01-07'] })
  await new Promise(resolve => setTimeout(resolve, 200))
  t.equal((await s.get(holidays)).dates.length, 0)
  await client.query('rollback')
  t.equal((await change).status, 200)
  t.equal(await next(s, id), at(8))
  await client.query('begin')
  await client.query('select from cue.cue_runs where cue_id = $1 for update', [id])
  exactly(t, await s.call('PUT', holidays, { dates: [] }), error('unavailable', 503))
  await client.query('rollback')
  client.release()
  exactly(t, await s.get(holidays), { dates: ['2030-01-07'] })
  t.equal(await next(s, id), at(8))
})

t.test('a change that would leave a cue without a slot is refused, and so is one of the wrong kind', async t => {
  const s = await service()
  await s.call('PUT', holidays, { dates: [] })
  const id = await s.cue(daily(['holidays'], { ends_at: '2030-01-08T10:00:00Z' }))
  const answer = await s.call('PUT', holidays, { dates: ['2030-01-07', '2030-01-08'] })
  exactly(t, answer, {
    status: 422,
    body: {
      detail: [{ loc: ['body'], msg: `Value error, leaves no slot for cue ${id}; pause or delete that cue first, or change its schedule` }]
    }
  })
  exactly(t, await s.get(holidays), { dates: [] })
  for (const [body, loc] of [
    [{ dates: ['2030-02-30'] }, ['body', 'dates', 0]],
    [{ dates: Array(1001).fill('12-25') }, ['body', 'dates']],
    [{ ranges: [{ from: '2030-01-02T00:00', to: '2030-01-01T00:00' }] }, ['body', 'ranges', 0, 'to']],
    [{ ranges: [{ from: '2030-01-02T00:00' }] }, ['body', 'ranges', 0, 'to']],
    [{ ranges: Array(501).fill({ from: '2030-01-02T00:00', to: '2030-01-03T00:00' }) }, ['body', 'ranges']],
    [{ description: 'x'.repeat(2001) }, ['body', 'description']],
    [{ cron: '@daily' }, ['body', 'cron']]
  ] as [object, (string | number)[]][]) {
    const refused = await s.call('PUT', holidays, body)
    t.strictSame([refused.status, refused.body.detail?.[0].loc], [422, loc])
  }
  t.equal((await s.call('PUT', '/v1/calendars/a%20b', {})).status, 422)
  t.equal((await s.call('PUT', `/v1/calendars/${'x'.repeat(65)}`, {})).status, 422)
})

t.test('the calendars of a cue have at most 2,000 dates and 1,000 ranges', async t => {
  const s = await service()
  const dates = Array.from({ length: 1000 }, (_, n) => new Date(Date.UTC(2031, 0, n)).toISOString().slice(0, 10))
  const ranges = dates.slice(0, 500).map(date => ({ from: `${date}T01:00`, to: `${date}T02:00` }))
  for (const name of ['a', 'b']) await s.call('PUT', `/v1/calendars/${name}`, { dates, ranges })
  await s.call('PUT', holidays, {})
  const names = ['a', 'holidays', 'b']
  const id = await s.cue(daily(names, { exclude: [{ dates: ['2031-01-01'] }] }))
  const pausing = '; pause or delete that cue first, or change its schedule'
  const over = [
    [{ dates: ['12-25'] }, '2001 dates in total, where at most 2000 are allowed'],
    [{ ranges: ranges.slice(0, 1) }, '1001 ranges in total, where at most 1000 are allowed']
  ] as const
  for (const [content, excess] of over) {
    exactly(t, await s.call('PUT', holidays, content), {
      status: 422,
      body: { detail: [{ loc: ['body'], msg: `Value error, makes ${excess}, over the calendars of cue ${id}${pausing}` }] }
    })
    exactly(t, await s.get(holidays), { dates: [], ranges: [] })
  }
  await s.patch(`/v1/cues/${id}`, { status: 'paused' })
  const other = await s.cue()
  for (const [content, excess] of over) {
    t.equal((await s.call('PUT', holidays, content)).status, 200)
    const detail = { msg: `Value error, must not have ${excess}; name fewer calendars, or shorten them` }
    const { schedule } = daily(names)
    const body = { name: 'n', worker: true, schedule }
    for (const [method, path, given] of [
      ['POST', '/v1/schedules/preview', { schedule }],
      ['POST', '/v1/cues', body],
      ['PATCH', `/v1/cues/${other}`, { schedule }],
      ['PUT', '/v1/cues/by-key/k', body],
      ['POST', '/v1/cues/apply', { set: 's', cues: [{ ...body, key: 'k' }], dry_run: true }],
      ['POST', `/v1/cues/${id}/resume`, {}]
    ] as const)
      exactly(t, await s.call(method, path, given), { status: 422, body: { detail: [detail] } })
  }
})

t.test('an account has at most 100 calendars', async t => {
  const s = await service()
  await s.pool.query(
    `insert into cue.calendars (account_id, name, revision, created_at, updated_at)
     select $1, 'c' || n, nextval('cue.calendar_revisions'), now(), now() from generate_series(1, 100) n`,
    [s.account.id]
  )
  exactly(t, await s.call('PUT', holidays, {}), error('calendar_limit_exceeded', 403))
  t.equal((await s.call('PUT', '/v1/calendars/c7', { dates: ['12-25'] })).status, 200)
})
