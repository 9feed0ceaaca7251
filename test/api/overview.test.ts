/** What dashboards show of an account: the overview, results in lists of cues, search, and pages by cursor. */
import t, { type Test } from 'tap'
import { exactly, pluck } from '../support/exactly.ts'
import { build } from '../support/setup.ts'

const noon = '2030-01-15T12:00:00.000Z'
const hourly = { cron: '0 * * * *', worker: true }

type Run = Record<string, unknown> & { ago: string }
/** The service, and a function that adds executions of a cue, oldest first. */
const setup = async (t: Test) => {
  const service = await build(t, noon)
  const { pool, account, post } = service
  const addRuns = async (cue_id: string, runs: Run[]): Promise<string[]> => {
    const ids: string[] = []
    for (const { ago, ...columns } of runs) {
      const at = new Date(Date.parse(noon) - Number(ago) * 1000)
      const row = {
        account_id: account.id,
        cue_id,
        transport: 'webhook',
        status: 'success',
        triggered_by: 'schedule',
        scheduled_for: at,
        payload: '{}',
        started_at: new Date(at.getTime() + 50),
        ended_at: at,
        created_at: at,
        updated_at: at,
        ...columns
      }
      const names = Object.keys(row)
      const { rows } = await pool.query(
        `insert into cue.executions (id, ${names}) values (cue.uuid_v7($6), ${names.map((_, n) => `$${n + 1}`)}) returning id`,
        Object.values(row)
      )
      ids.push(rows[0].id)
    }
    return ids
  }
  const create = async (name: string, body: object = {}): Promise<string> => {
    service.clock.advance('1 second')
    return (await post('/v1/cues', { ...hourly, name, ...body })).id
  }
  return { ...service, addRuns, create }
}

t.test('the overview of a new account is empty', async t => {
  const { get } = await build(t, noon)
  t.same(await get('/v1/overview'), {
    since: '2030-01-14T12:00:00.000Z',
    running: 0,
    succeeded: 0,
    failed: 0,
    lateness_p50_ms: null,
    lateness_p99_ms: null,
    by_status: {},
    volume: [],
    per_minute: [],
    failing: [],
    waiting: [],
    waiting_for_person: [],
    paused: [],
    alerts: [],
    upcoming: []
  })
})

t.test('the overview counts the last day, and names what fails', async t => {
  const { get, addRuns, create, register, as } = await setup(t)
  const id = await create('failing')
  const other = await create('fine')
  const [, , latest] = await addRuns(id, [
    { ago: '90000' },
    { ago: '7200', status: 'failed', error_message: 'first' },
    { ago: '90', status: 'failed', error_message: 'second' }
  ])
  await addRuns(other, [
    { ago: '300', status: 'failed' },
    { ago: '95', started_at: new Date(Date.parse(noon) - 94_000) }
  ])
  const overview = await get('/v1/overview')
  exactly(t, overview, { succeeded: 1, failed: 3, running: 0, lateness_p50_ms: 50, lateness_p99_ms: 1000 })
  t.same(overview.failing, [
    { cue_id: id, cue_name: 'failing', failures: 2, since: '2030-01-15T10:00:00.000Z', execution_id: latest, error: 'second' }
  ])
  t.same(overview.by_status, { success: 1, failed: 3 })
  t.same(overview.volume, [
    { at: '2030-01-15T10:00:00.000Z', succeeded: 0, failed: 1, running: 0 },
    { at: '2030-01-15T11:30:00.000Z', succeeded: 1, failed: 2, running: 0 }
  ])
  t.same(overview.per_minute, [
    { at: '2030-01-15T11:55:00.000Z', succeeded: 0, failed: 1 },
    { at: '2030-01-15T11:58:00.000Z', succeeded: 1, failed: 1 }
  ])
  const recent = await get('/v1/overview?from=2030-01-15T11:57:00Z')
  t.same(recent.volume, [{ at: '2030-01-15T11:58:00.000Z', succeeded: 1, failed: 1, running: 0 }])
  t.same((await as(await register()).get('/v1/overview')).failing, [], 'of the own account only')
})

t.test('the overview shows waiting tasks, outcomes to decide, paused cues, alerts and the next hour', async t => {
  const { get, post, create, pool, account, clock } = await setup(t)
  const id = await create('publish', { payload: { task: 'publish' }, verification: { mode: 'manual' }, cron: '30 * * * *' })
  await create('later', { cron: '0 18 * * *' })
  await post(`/v1/cues/${id}/fire`)
  const { execution_id } = await post('/v1/executions/claim', { worker_id: 'w1' })
  await post(`/v1/executions/${execution_id}/outcome`, { success: true }, { 'x-worker-id': 'w1' })
  const { id: waiting_id } = await post(`/v1/cues/${id}/fire`)
  clock.advance('1 minute')
  const paused_id = await create('paused')
  const by_user = await create('by user')
  await post(`/v1/cues/${by_user}/pause`)
  await pool.query("update cue.cues set status = 'paused', paused_by = 'plan', paused_at = $2, pause_reason = 'plan' where id = $1", [
    paused_id,
    clock.now()
  ])
  await pool.query(
    `insert into cue.alerts (id, account_id, cue_id, alert_type, severity, message, created_at, acknowledged_at)
     values (cue.uuid_v7(), $1, $2, 'missed_window', 'warning', 'open', $3, null), (cue.uuid_v7(), $1, $2, 'cue_paused', 'high', 'done', $3, $3)`,
    [account.id, id, clock.now()]
  )
  const before = await get('/v1/overview')
  exactly(t, before.waiting, [{ task: 'publish', waiting: 1, execution_id: waiting_id, has_worker: false }])
  exactly(t, before.waiting_for_person, [{ cue_id: id, cue_name: 'publish', execution_id }])
  exactly(t, before.paused, [{ cue_id: paused_id, cue_name: 'paused', paused_by: 'plan', reason: 'plan' }])
  exactly(t, before.alerts, [
    { alert_type: 'missed_window', severity: 'warning', message: 'open', cue_id: id, execution_id: null, resolved_at: null }
  ])
  t.same(before.upcoming, [{ cue_id: id, cue_name: 'publish', next_run: '2030-01-15T12:30:00.000Z' }])
  for (const [handlers, has_worker] of [
    [['other'], false],
    [['publish'], true]
  ] as const) {
    await post('/v1/worker/heartbeat', { worker_id: 'w1', handlers: [...handlers] })
    t.equal((await get('/v1/overview')).waiting[0].has_worker, has_worker, `${handlers}`)
  }
  await pool.query('update cue.cue_runs set alerted = true where cue_id = $1', [id])
  await pool.query("select cue.resolve_alerts($1, '2030-01-15T12:02:00Z')", [id])
  t.same(pluck((await get('/v1/overview')).alerts, 'resolved_at'), ['2030-01-15T12:02:00.000Z'])
})

t.test('a list of cues has summaries on request', async t => {
  const { get, addRuns, create } = await setup(t)
  const id = await create('with runs', { cron: '30 8 * * 1-5', timezone: 'Europe/Berlin' })
  await create('without')
  const ids = await addRuns(
    id,
    Array.from({ length: 22 }, (_, n) => ({ ago: String(2000 - n), ...(n === 21 && { status: 'failed' }) }))
  )
  t.equal((await get('/v1/cues')).cues[0].summary, undefined)
  const [without, withRuns] = (await get('/v1/cues?summary=true')).cues
  t.same(without.summary, { schedule: 'Every hour, UTC', latest: [] })
  t.equal(withRuns.summary.schedule, 'Weekdays at 08:30, Europe/Berlin')
  t.same(pluck(withRuns.summary.latest, 'id'), ids.reverse().slice(0, 20))
  t.same(withRuns.summary.latest[0], { id: ids[0], status: 'failed', outcome_state: null, scheduled_for: '2030-01-15T11:27:01.000Z' })
})

t.test('cues are found by a part of their name, key, task or tags', async t => {
  const { get, create, register, as } = await setup(t)
  await create('Nightly Report', { key: 'a/one' })
  await create('second', { key: 'reports.two' })
  await create('third', { payload: { task: 'report' } })
  await create('fourth', { tags: ['x', 'Reporting'] })
  await create('100%_sure')
  const found = async (search: string) => pluck((await get(`/v1/cues?search=${encodeURIComponent(search)}`)).cues, 'name')
  t.same(await found('REPORT'), ['fourth', 'third', 'second', 'Nightly Report'])
  t.same(await found('%'), ['100%_sure'], 'no wildcards')
  t.same(await found('_'), ['100%_sure'])
  t.same(await found("'; drop"), [])
  exactly(t, await get('/v1/cues?search=report&count_to=2&limit=1'), { total: 2, total_exact: false, has_more: true })
  t.same((await as(await register()).get('/v1/cues?search=report')).cues, [])
})

t.test('pages by cursor contain each item once, also of the same moment', async t => {
  const { get, post, addRuns, create, clock } = await setup(t)
  const id = await create('first')
  await Promise.all(Array.from({ length: 6 }, (_, n) => post('/v1/cues', { ...hourly, name: `same ${n}` })))
  clock.advance('1 second')
  await addRuns(
    id,
    Array.from({ length: 7 }, () => ({ ago: '60' }))
  )
  for (const [path, member] of [
    ['/v1/cues', 'cues'],
    ['/v1/executions', 'executions']
  ] as const) {
    const all = (await get(`${path}?limit=100`))[member].map((one: { id: string }) => one.id)
    t.equal(all.length, 7)
    const paged: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const body: Record<string, never> & { next_cursor: string | null; has_more: boolean; total: number } = await get(
        `${path}?limit=3${cursor && `&cursor=${cursor}`}`
      )
      paged.push(...(body[member] as unknown as { id: string }[]).map(one => one.id))
      t.same([body.total, body.has_more], [7, body.next_cursor !== null])
      cursor = body.next_cursor
    }
    t.same(paged, all, path)
    exactly(t, await get(`${path}?count_to=5`), { total: 5, total_exact: false })
    exactly(t, await get(`${path}?count_to=7`), { total: 7, total_exact: true })
  }
})

t.test('lateness counts from the time a slot was due within its window', async t => {
  const { addRuns, create, get } = await setup(t)
  const due_at = new Date(Date.parse(noon) - 600_000)
  await addRuns(await create('spread'), [{ ago: '1500', due_at, started_at: new Date(due_at.getTime() + 70) }])
  exactly(t, await get('/v1/overview'), { succeeded: 1, lateness_p50_ms: 70, lateness_p99_ms: 70 })
})

t.test('a search by cursor goes through so many executions per page, and goes on', async t => {
  const { get, addRuns, create } = await setup(t)
  const id = await create('a cue')
  const many = Array.from({ length: 250 }, (_, n) => ({ ago: String(1000 - n), status: n % 120 === 5 ? 'missed' : 'success' }))
  const ids = await addRuns(id, many)
  const missed = [ids[245], ids[125], ids[5]]
  const search = (more: string) => get(`/v1/executions?search_to=100&limit=2&${more}`)
  const first = await search('status=missed')
  exactly(t, first, { executions: [{ id: missed[0] }], total: 1, total_exact: false, has_more: true, next_cursor: ids[150] })
  const second = await search(`status=missed&cursor=${first.next_cursor}`)
  exactly(t, second, { executions: [{ id: missed[1] }], total: 1, total_exact: false, has_more: true, next_cursor: ids[50] })
  exactly(t, await search(`status=missed&cursor=${second.next_cursor}`), {
    executions: [{ id: missed[2] }],
    total: 1,
    total_exact: false,
    has_more: false,
    next_cursor: null
  })
  exactly(t, await search('status=failed'), { executions: [], total: 0, total_exact: false, has_more: true, next_cursor: ids[150] })
  exactly(t, await search(`status=missed&cue_id=${id}&cursor=${first.next_cursor}`), { executions: [{ id: missed[1] }] })
  const hour = new Date(Date.parse(noon) - 850_000).toISOString()
  exactly(t, await search(`status=missed&from=${hour}&cursor=${first.next_cursor}`), { executions: [], has_more: false, next_cursor: null })
  exactly(t, await search('status=success&count_to=50'), { total: 50, total_exact: false, next_cursor: ids[248] })
  exactly(t, await search(''), { total: 250, total_exact: true, next_cursor: ids[248] }, 'without filters, nothing is searched')
  exactly(t, await get('/v1/executions?status=missed'), { total: 3, total_exact: true, has_more: false })
})

t.test('a search of cues, or alerts, goes through so many per page, and goes on', async t => {
  const { get, pool, account, as, register } = await setup(t)
  await pool.query(
    `with c as (
       insert into cue.cues (id, account_id, name, transport, schedule_type, cron, payload, created_at, tags)
       select 'cue_' || lpad(n::text, 12, '0'), $1, 'c', 'worker', 'recurring', '0 * * * *', '{}', $2::timestamptz - n * interval '1 second',
              case when n % 120 = 5 then array['rare'] else '{}' end from generate_series(1, 250) n returning id, account_id)
     insert into cue.cue_runs (cue_id, account_id, transport) select id, account_id, 'worker' from c`,
    [account.id, noon]
  )
  await pool.query(
    `insert into cue.alerts (id, account_id, cue_id, alert_type, severity, message, created_at, acknowledged_at)
     select cue.uuid_v7(c.created_at), c.account_id, c.id, 'missed_window', 'high', 'late', c.created_at, case when c.tags = '{}' then c.created_at end
       from cue.cues c`
  )
  type Found = { next_cursor: string | null; has_more: boolean; total: number; total_exact: boolean; cues?: Item[]; alerts?: Item[] }
  type Item = { id: string; cue_id?: string }
  for (const path of ['/v1/cues?tag=rare', '/v1/alerts?acknowledged=false', '/v1/alerts?acknowledged=false&alert_type=missed_window']) {
    const found: string[][] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Found = await get(`${path}&search_to=100&count_to=10${cursor && `&cursor=${cursor}`}`)
      const items = page.cues ?? page.alerts!
      t.same([page.has_more, page.total, page.total_exact], [page.next_cursor !== null, items.length, false])
      found.push(items.map(({ id, cue_id = id }) => cue_id))
      cursor = page.next_cursor
    }
    t.same(found, [['cue_000000000005'], ['cue_000000000125'], ['cue_000000000245']], path)
  }
  exactly(t, await get('/v1/alerts?search_to=100&cue_id=cue_000000000007&acknowledged=true'), {
    total: 1,
    total_exact: true,
    next_cursor: null
  })
  exactly(t, await get('/v1/cues?tag=rare'), { total: 3, total_exact: true, has_more: false })
  exactly(t, await get('/v1/cues?search_to=100'), { total: 250, total_exact: true })
  exactly(t, await as(await register()).get('/v1/cues?tag=rare&search_to=100'), { total: 0, total_exact: true, next_cursor: null })
})

t.test('outcomes wait for a person however old they are', async t => {
  const { get, addRuns, create } = await setup(t)
  const id = await create('a cue')
  const waiting = { outcome_state: 'verification_pending', outcome_success: true, outcome_recorded_at: noon }
  const [old] = await addRuns(id, [{ ago: '400000', ...waiting }, { ago: '10' }])
  exactly(t, (await get('/v1/overview')).waiting_for_person, [{ execution_id: old }])
  exactly(t, await get('/v1/executions?outcome_state=verification_pending'), { executions: [{ id: old }], total: 1 })
})
