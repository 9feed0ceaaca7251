/** Cues by their users' own keys. */
import t from 'tap'
import { hourly, path, start, taken, url } from '../support/cue-keys-stage.ts'
import { exactly } from '../support/exactly.ts'
import { build, error, invalid } from '../support/setup.ts'
import { cueDefaults, once, stage } from '../support/stage.ts'

t.test('a key is unique among the cues of an account until its cue is deleted', async t => {
  const { call, post, patch, del, get, as, register } = await build(t, start)
  const first = await post('/v1/cues', { ...hourly, key: 'billing/report:1' })
  t.equal(first.key, 'billing/report:1')
  exactly(t, await call('POST', '/v1/cues', { ...hourly, key: first.key }), taken(first.id))
  exactly(t, await as(await register()).call('POST', '/v1/cues', { ...hourly, key: first.key }), { status: 201 }, "another account's key")

  const second = await post('/v1/cues', hourly)
  t.equal(second.key, null)
  exactly(t, await call('PATCH', `/v1/cues/${second.id}`, { key: first.key }), taken(first.id))
  exactly(t, await patch(`/v1/cues/${second.id}`, { key: 'b' }), { key: 'b' })
  exactly(t, await patch(`/v1/cues/${second.id}`, { key: 'b' }), { key: 'b' }, 'its own key is not taken')
  exactly(t, await get('/v1/cues?key=b'), { cues: [{ id: second.id }], total: 1 })
  exactly(t, await get('/v1/cues?key=c'), { cues: [], total: 0 })
  exactly(t, await patch(`/v1/cues/${second.id}`, { key: null }), { key: null })
  exactly(t, await call('GET', path('b')), error('cue_not_found', 404))

  await del(`/v1/cues/${first.id}`)
  exactly(t, await patch(`/v1/cues/${second.id}`, { key: first.key }), { key: first.key })
})

t.test('cues are read, replaced and deleted by their keys, percent-encoded', async t => {
  const { call, get, post } = await build(t, start)
  for (const key of ['a', 'x/y', 'x/y/', 'x/../y', 'A.b_c:d-e', 'k'.repeat(255)]) {
    const { status, body } = await call('PUT', path(key), hourly)
    exactly(t, { status, body }, { status: 201, body: { key, changed: true, name: 'Hourly' } })
    exactly(t, await get(path(key)), { id: body.id, key, executions: [], missed: [] })
    await post(`/v1/cues/${body.id}/fire`)
    exactly(t, await get(path(key)), { executions: [{ triggered_by: 'manual_fire' }], execution_total: 1 })
    exactly(t, await call('DELETE', path(key)), { status: 204 })
    for (const method of ['GET', 'DELETE']) exactly(t, await call(method, path(key)), error('cue_not_found', 404))
  }
  exactly(t, await call('PUT', '/v1/cues/by-key/%6B', hourly), { status: 201, body: { key: 'k' } })
  exactly(t, await call('GET', '/v1/cues/by-key/a/b'), error('not_found', 404))
})

t.test('refuses malformed keys, unknown members and keys that differ, and names them', async t => {
  const { call, get } = await build(t, start)
  for (const key of ['', 'k'.repeat(256), 'a b', 'ä', 'a\n', '%', 'a?', 'a,b', "'"]) {
    const refused = await call('POST', '/v1/cues', { ...hourly, key })
    exactly(t, refused, { status: 422, body: { detail: [{ loc: ['body', 'key'], type: 'string_pattern_mismatch' }] } }, JSON.stringify(key))
    if (key === '') continue
    exactly(t, await call('PUT', path(key), hourly), invalid('path', 'key'))
    exactly(t, await call('GET', path(key)), error('cue_not_found', 404))
  }
  for (const key of ['.', '..']) {
    const refused = await call('POST', '/v1/cues', { ...hourly, key })
    exactly(t, refused, { status: 422, body: { detail: [{ loc: ['body', 'key'], msg: /^Input should not be '\.' or '\.\.'/ }] } })
  }
  const put = async (body: object) => (await call('PUT', path('k'), body)).body.detail?.map(({ loc }: { loc: string[] }) => loc.join('.'))
  t.same(await put({ ...hourly, key: 'other' }), ['body.key'])
  t.same(await put({ ...hourly, kye: 1 }), ['body.kye'])
  t.same(await put({ ...hourly, retry: { attempts: 1 } }), ['body.retry.attempts'])
  t.same(await put({ name: 'n', schedule: { cron: '@daily', tz: 'UTC' }, callback_url: url }), ['body.schedule.tz'])
  t.same(await put({ cron: '@daily' }), ['body.name', 'body.callback.url'])
  t.same(await put({ name: 'n', cron: '@daily' }), ['body.callback.url'])
  exactly(t, await call('PUT', path('k'), { ...hourly, cron: '61 * * * *' }), error('invalid_schedule', 400))
  exactly(t, await call('PUT', path('k'), hourly, { 'if-none-match': '"7"' }), invalid('header', 'if-none-match'))
  exactly(t, await get('/v1/cues'), { total: 0 })
  exactly(t, await call('PUT', path('k'), { ...hourly, key: 'k' }), { status: 201 })
  exactly(t, await call('PUT', path('k'), { ...hourly, worker: true, callback_url: undefined }), {
    status: 422,
    body: { detail: [{ loc: ['body', 'transport'], msg: 'Value error, cannot change from webhook to worker; delete the cue first' }] }
  })
})

t.test('an equal definition writes nothing', async t => {
  const { call, clock, pool, patch } = await build(t, start)
  const rich = {
    ...hourly,
    description: 'd',
    payload: { b: 1, a: 'x'.repeat(3000) },
    callback: { headers: { 'X-Token': 'secret' } },
    delivery: { timeout_seconds: 5 },
    on_failure: { pause: true }
  }
  for (const body of [hourly, rich]) {
    const key = body === rich ? 'rich' : 'plain'
    const { body: created } = await call('PUT', path(key), body)
    const rows = () =>
      pool.query('select c.xmin, c.ctid, r.xmin, r.ctid from cue.cues c join cue.cue_runs r on r.cue_id = c.id where key = $1', [key])
    const before = (await rows()).rows
    clock.advance('1 minute')
    for (const again of [body, { ...body, key }, { ...body, ...(body === rich && { callback: { headers: { 'X-Token': '********' } } }) }])
      t.same((await call('PUT', path(key), again)).body, { ...created, changed: false })
    t.same((await patch(`/v1/cues/${created.id}`, { name: 'Hourly', description: created.description })).updated_at, created.updated_at)
    t.same((await rows()).rows, before)
  }
})

t.test('a replacement returns omitted fields to their defaults and keeps runtime state', async t => {
  const { call, get, patch, clock, pool } = await build(t, start)
  const full = {
    ...hourly,
    description: 'd',
    payload: { a: 1, task: 't' },
    callback: { method: 'PUT', headers: { 'X-Token': 'secret' } },
    retry: { max_attempts: 9 },
    on_failure: { email: false, pause: true },
    delivery: { timeout_seconds: 5 },
    alerts: { consecutive_failures: 9 },
    catch_up: 'skip_missed',
    overlap: 'skip',
    verification: { mode: 'manual' }
  }
  const { body: plain } = await call('PUT', path('plain'), hourly)
  const { body: created } = await call('PUT', path('k'), full)
  await pool.query('update cue.cue_runs set run_count = 7, fired_count = 5, failed_deliveries = 2, last_slot = $2 where cue_id = $1', [
    created.id,
    '2030-01-07T08:00:00Z'
  ])
  await patch(`/v1/cues/${created.id}`, { status: 'paused' })
  clock.advance('10 minutes')
  const { status, body } = await call('PUT', path('k'), { ...hourly, name: 'Other' })
  t.equal(status, 200)
  const { id, key, created_at } = created
  t.same(
    { ...body, version: 0 },
    {
      ...plain,
      id,
      key,
      name: 'Other',
      status: 'paused',
      paused_at: '2030-01-07T08:30:00.000Z',
      paused_by: 'user',
      next_run: null,
      next_slot: null,
      run_count: 7,
      fired_count: 5,
      changed: true,
      version: 0,
      created_at,
      updated_at: '2030-01-07T08:40:00.000Z'
    }
  )
  const columns = (id: string) =>
    pool.query(
      "select to_jsonb(c) - '{id,key,name,status,paused_at,paused_by,created_at,updated_at,payload_ref,payload_since_run}'::text[] as c from cue.cues c where id = $1",
      [id]
    )
  t.same((await columns(id)).rows, (await columns(plain.id)).rows, 'all columns')
  t.same((await pool.query('select failed_deliveries from cue.cue_runs where cue_id = $1', [id])).rows, [{ failed_deliveries: 2 }])

  await patch(`/v1/cues/${id}`, { status: 'active' })
  const { next_run } = await get(path('k'))
  exactly(t, (await call('PUT', path('k'), hourly)).body, { next_run, changed: true }, 'the same schedule: the next run stays')
  exactly(t, (await call('PUT', path('k'), { ...hourly, cron: '30 * * * *' })).body, { next_run: '2030-01-07T09:30:00.000Z' })
})

t.test('a finished one-time cue given a later instant becomes active again, within the plan', async t => {
  const { call, pool, clock, account, fn } = await build(t, start)
  const at = { name: 'Once', at: '2030-01-07T09:00:00Z', callback_url: url }
  const { body: created } = await call('PUT', path('k'), at)
  clock.advance('1 hour')
  const finish = async () => {
    await pool.query("update cue.cues set status = 'completed' where id = $1", [created.id])
    await pool.query('update cue.cue_runs set next_run = null, last_slot = $2 where cue_id = $1', [created.id, '2030-01-07T09:00:00Z'])
  }
  await finish()
  exactly(
    t,
    await call('PUT', path('k'), at),
    { status: 200, body: { changed: false, status: 'completed' } },
    'its own instant is past, and the same'
  )
  exactly(t, await call('PUT', path('k'), { ...at, name: 'Other' }), {
    status: 200,
    body: { changed: true, status: 'completed', next_run: null }
  })
  exactly(t, await call('PUT', path('k'), { ...at, at: '2030-01-07T08:00:00Z' }), error('invalid_schedule', 400))
  const later = { ...at, at: '2030-01-08T09:00:00Z' }
  exactly(t, await call('PUT', path('k'), later), {
    status: 200,
    body: { status: 'active', next_run: '2030-01-08T09:00:00.000Z', changed: true }
  })
  t.same((await pool.query('select next_run from cue.cue_runs')).rows, [{ next_run: new Date('2030-01-08T09:00:00Z') }])

  await finish()
  await pool.query('update cue.plans set cues = 2 where plan = (select plan from cue.accounts where id = $1)', [account.id])
  const next_run = new Date('2030-01-09T00:00:00Z')
  for (const _ of [1, 2]) await fn.createCue({ account_id: account.id, cue: cueDefaults, next_run })
  exactly(t, await call('PUT', path('k'), { ...later, at: '2030-01-09T09:00:00Z' }), error('cue_limit_exceeded', 403))
  exactly(t, await call('PUT', path('new'), hourly), error('cue_limit_exceeded', 403))
})

t.test('a cue that became active again counts towards the limit', async t => {
  const { fn, account_id, rows, cue } = await stage(t)
  await rows("update cue.plans set cues = 3 where plan = 'scale'")
  const id = await cue({ ...once, key: 'k' })
  await cue()
  await rows("update cue.cues set status = 'completed' where id = $1", [id])
  await rows('update cue.cue_runs set next_run = null where cue_id = $1', [id])
  await cue()
  const changes = { ...cueDefaults, ...once, at: '2030-02-01T00:00:00Z', replaces: true }
  t.equal(await fn.updateCue({ account_id, cue_id: id, version: 1, changes, next_run: new Date('2030-02-01T00:00:00Z') }), true)
  await t.rejects(cue(), { code: 'QU030' })
})

t.test('If-None-Match only creates', async t => {
  const { call } = await build(t, start)
  const only = { 'if-none-match': '*' }
  const { status, body } = await call('PUT', path('k'), hourly, only)
  t.equal(status, 201)
  exactly(t, await call('PUT', path('k'), hourly, only), {
    status: 412,
    body: { error: { code: 'cue_exists', cue_id: body.id, status: 412 } }
  })
})
