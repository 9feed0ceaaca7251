import t, { type Test } from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { startEngine } from '../support/engine.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { build, error, eventually, receiver } from '../support/setup.ts'
import { buildWithMail, everything, form, formHeaders } from '../support/sign-in.ts'

// Every test starts a service, which takes long on busy machines; the default limit of a file run by node is 30 seconds.

const noon = '2030-01-15T12:00:00.000Z'
const confirmed = { 'x-confirm-destructive': 'true' }
const tokenIn = (link: string) => new URL(link).searchParams.get('token')!

const setup = async (t: Test, env?: Record<string, string>) => {
  const service = await buildWithMail(t, noon, env)
  const request = (headers: Record<string, string> = confirmed) => service.call('DELETE', '/v1/auth/me', undefined, headers)
  const cancel = (token: string) => service.nobody.call('POST', '/v1/auth/me/cancel-deletion', { token })
  /** Requests the deletion and returns the link in the mail. */
  const requestLink = async () => {
    await request()
    return (await service.mails()).at(-1)!.links[0]!
  }
  return { ...service, request, cancel, requestLink }
}

t.test('deletes an account a day after confirmation; it works until then', async t => {
  const { request, call, clock, maintain, mails, account, nobody, withSession, openSession } = await setup(t)
  const session = withSession(await openSession(account.email))
  exactly(t, await request({}), error('confirmation_required', 400))
  const { status, body } = await request()
  t.equal(status, 202)
  t.same(Object.keys(body).sort(), ['can_cancel_until', 'grace_period_hours', 'message'])
  exactly(t, body, { grace_period_hours: 24, can_cancel_until: '2030-01-16T12:00:00.000Z' })
  exactly(t, await request(), error('deletion_already_pending', 409))
  exactly(t, await mails(), [{ recipients: [account.email], subject: 'Your account will be deleted', text: /16 January 2030, 12:00 UTC/ }])

  clock.set('2030-01-16T11:59:59Z')
  await maintain()
  exactly(t, await call('POST', '/v1/cues', { name: 'a cue', cron: '0 9 * * *', worker: true }), { status: 201 })
  exactly(t, await session.call('GET', '/v1/auth/me'), { status: 200 })
  clock.set('2030-01-16T12:00:00Z')
  await maintain()
  exactly(t, await call('GET', '/v1/auth/me'), error('invalid_api_key', 401))
  exactly(t, await session.call('GET', '/v1/auth/me'), error('not_authenticated', 401))
  exactly(t, await nobody.call('POST', '/v1/auth/register', { email: account.email }), { status: 201 }, 'the address can register again')
})

t.test('removes a deleted account from every table and job, and nothing of other accounts', async t => {
  const service = await setup(t, { RATE_LIMIT: 'on' })
  const { account, register, as, call, post, get, patch, pool, clock, mails, signIn, openSession, withSession, request, fn, nobody } =
    service
  const other = as(await register())
  const live = async ({ post }: Pick<typeof service, 'post'>) => {
    const hook = {
      name: 'hook',
      cron: '0 9 * * *',
      callback_url: 'http://127.0.0.1:3999/',
      on_failure: { webhook: 'http://127.0.0.1:3999/failed' }
    }
    const cues = [
      await post('/v1/cues', { name: 'work', cron: '* * * * *', worker: true, payload: { task: 'x' } }),
      await post('/v1/cues', hook)
    ]
    const executions = []
    for (const { id } of cues) for (let i = 0; i < 3; i++) executions.push(await post(`/v1/cues/${id}/fire`, { idempotency_key: `k${i}` }))
    await post('/v1/worker/heartbeat', { worker_id: 'w1', handlers: ['x'] })
    await post(`/v1/executions/${executions[0].id}/claim`, { worker_id: 'w1' })
    await post(`/v1/executions/${executions[0].id}/outcome`, { success: false, error: 'it broke' })
    await post(`/v1/executions/${executions[1].id}/claim`, { worker_id: 'w1' })
    await post(`/v1/executions/${executions[4].id}/cancel`)
    await post('/v1/operations', { type: 'pause', ids: cues.map(({ id }) => id), rate_per_minute: 1 })
    return { cues: cues.map(({ id }) => id as string), executions: executions.map(({ id }) => id as string) }
  }
  await patch('/v1/auth/me', { alert_webhook_url: 'http://127.0.0.1:3999/alerts' })
  const mine = await live(service)
  const theirs = await live(other)
  await post('/v1/auth/keys', { label: 'another' })
  await get('/v1/auth/alert-webhook-secret')
  const [{ cues: gone }, deleted] = [mine, await post('/v1/cues', { name: 'deleted before', cron: '0 9 * * *', worker: true })]
  await call('DELETE', `/v1/cues/${deleted.id}`)
  const refreshed = await withSession(await openSession(account.email)).post('/v1/auth/session/refresh')
  await withSession(refreshed.session_token).get('/v1/auth/me')
  await signIn(account.email)
  const { rows: keys } = await pool.query('select id from cue.api_keys where account_id = $1', [account.id])
  await request()
  await mails()
  await nobody.post('/v1/auth/device-code', { device_code: 'the-last-one' })
  clock.advance('24 hours')

  const ids = [account.id, account.email, deleted.id, ...gone, ...mine.executions, ...keys.map(({ id }) => id)]
  const before = await everything(service)
  t.same(
    ids.filter(id => !Object.values(before).some(text => text.includes(id))),
    [],
    'all of it was stored'
  )
  let steps = 0
  while ((await fn.deleteDueAccounts({ batch: 2 })) > 0) steps++
  t.ok(steps > 3, 'deletes in batches')
  const after = await everything(service)
  const left = Object.entries(after).flatMap(([table, text]) => ids.filter(id => text.includes(id)).map(id => `${id} in ${table}`))
  t.same(left, [])
  for (const id of [...theirs.cues, ...theirs.executions]) t.ok(Object.values(after).some(text => text.includes(id)))
  exactly(t, await other.get('/v1/cues'), { total: 2 })
})

t.test('every table with an account_id is emptied with the account', async t => {
  const { pool } = await setup(t)
  const { rows } = await pool.query(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'account_id' and not a.attisdropped
      where c.relnamespace = 'cue'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and not exists (select from pg_constraint f where f.conrelid = c.oid and f.contype = 'f' and f.confdeltype = 'c'
                           and f.confrelid in ('cue.accounts'::regclass, 'cue.cues'::regclass))
      order by 1`
  )
  t.same(
    pluck(rows, 'name'),
    [
      'attempts',
      'costs',
      'dead_letters',
      'event_days',
      'events',
      'executions',
      'fixed_requests',
      'gate_parts',
      'gate_results',
      'gate_spending',
      'gate_starts',
      'new_events',
      'notices',
      'payload_counters',
      'signals',
      'usage_counters'
    ],
    'these are removed in batches with their cues, with the gates, or explicitly'
  )
})

t.test('from the first batch on, the account runs nothing and rejects its keys, however much history is left', async t => {
  const { request, post, call, clock, fn, pool } = await setup(t)
  const { id } = await post('/v1/cues', { name: 'a cue', cron: '* * * * *', worker: true })
  for (let i = 0; i < 5; i++) await post(`/v1/cues/${id}/fire`)
  await request()
  clock.advance('24 hours')
  t.equal(await fn.deleteDueAccounts({ batch: 2 }), 2)
  exactly(t, await call('GET', '/v1/auth/me'), error('invalid_api_key', 401))
  exactly(t, (await pool.query('select count(*) from cue.cue_runs')).rows, [{ count: 0 }])
  exactly(t, (await pool.query('select count(*) from cue.executions')).rows, [{ count: 3 }])
})

t.test('two engines can delete the same account at once', async t => {
  const { request, post, clock, fn, pool } = await setup(t)
  for (let c = 0; c < 3; c++) {
    const { id } = await post('/v1/cues', { name: 'a cue', cron: '* * * * *', worker: true })
    for (let i = 0; i < 5; i++) await post(`/v1/cues/${id}/fire`)
  }
  await request()
  clock.advance('24 hours')
  const work = async () => {
    while ((await fn.deleteDueAccounts({ batch: 1 })) > 0);
  }
  for (let i = 0; i < 20; i++) await Promise.all([work(), work(), work()])
  exactly(t, (await pool.query('select count(*) from cue.accounts')).rows, [{ count: 0 }])
})

t.test('deletes an account during its deliveries without affecting others', async t => {
  const service = await build(t, undefined, { env: { PLANS: '{"free":{"executions_per_month":100000}}' } })
  const { pool, register, as, config, fn, account } = service
  const { url, received, requests } = await receiver(t)
  const leaving = await Promise.all(Array.from({ length: 4 }, () => register()))
  for (const { api_key } of [account, ...leaving]) {
    const { post } = as({ ...account, api_key })
    for (let i = 0; i < 3; i++) {
      await post('/v1/cues', { name: 'ticks', cron: '* * * * * *', callback_url: `${url}${api_key}` })
      await post('/v1/cues', { name: 'works', cron: '* * * * * *', worker: true })
    }
  }
  await startEngine(t, config)
  await received(20, 20_000)
  for (const { id } of leaving) await fn.requestDeletion({ account_id: id, actor: 'test', ip: '' })
  await pool.query('update cue.deletions set due_at = now()')
  const left = async () => (await pool.query('select count(*) as left from cue.accounts')).rows[0].left - 1
  const work = async () => {
    while ((await left()) > 0) await fn.deleteDueAccounts({ batch: 5 })
  }
  await Promise.all([work(), work()])
  const until = requests.length
  await eventually(() => requests.slice(until).filter(({ path }) => path.endsWith(account.api_key)).length > 6, 20_000)
  t.same(await pool.query('select account_id from cue.executions where account_id <> $1', [account.id]).then(({ rows }) => rows), [])
  t.same(await pool.query('select account_id from cue.attempts where account_id <> $1', [account.id]).then(({ rows }) => rows), [])
  const { rows } = await pool.query('select deadlocks from pg_stat_database where datname = current_database()')
  exactly(t, rows, [{ deadlocks: 0 }])
})

t.test('the link in the mail opens a page whose button keeps the account', async t => {
  const { requestLink, nobody, request, call, clock, maintain, get } = await setup(t)
  const link = await requestLink()
  t.match(link, /^https:\/\/pgcue\.example\/auth\/cancel-deletion\?token=[\w-]{43}$/)
  const { pathname, search } = new URL(link)
  for (const method of ['GET', 'HEAD', 'GET']) exactly(t, await nobody.call(method, pathname + search), { status: 200 })
  exactly(t, await request(), error('deletion_already_pending', 409), 'opening the page changes nothing')
  t.match(await nobody.get(pathname + search), /16 January 2030, 12:00 UTC.*action="\/v1\/auth\/me\/cancel-deletion"/s)

  const post = () => nobody.call('POST', '/v1/auth/me/cancel-deletion', form({ token: tokenIn(link) }), formHeaders)
  exactly(t, await post(), { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' }, body: /Your account is kept/ })
  exactly(t, await post(), { status: 410, body: /already cancelled/ })
  exactly(t, await nobody.call('GET', pathname + search), { status: 410, body: /already cancelled/ })
  clock.advance('25 hours')
  await maintain()
  exactly(t, await call('GET', '/v1/auth/me'), { status: 200 })
  exactly(t, await get('/v1/auth/audit'), {
    events: [{ event: 'account.deletion_cancelled' }, { event: 'account.deletion_requested' }, { event: 'account.registered' }]
  })
})

t.test('a token cancels its own deletion, once, before the deadline', async t => {
  const { requestLink, cancel, clock, maintain, request, nobody } = await setup(t)
  const first = tokenIn(await requestLink())
  exactly(t, await cancel(first), { status: 200, body: { cancelled: true } })
  exactly(t, await cancel(first), error('already_cancelled', 410))
  const second = tokenIn(await requestLink())
  t.not(second, first)
  exactly(t, await cancel(first), error('already_cancelled', 410))
  exactly(t, await request(), error('deletion_already_pending', 409))
  clock.advance('24 hours')
  exactly(t, await cancel(second), error('deletion_already_completed', 410), 'even before the sweep')
  await maintain()
  exactly(t, await cancel(second), error('deletion_already_completed', 410))
  exactly(t, await cancel(first), error('deletion_already_completed', 410), 'a cancelled deletion leaves no trace either')
  exactly(t, await nobody.call('GET', `/auth/cancel-deletion?token=${second}`), {
    status: 410,
    body: /The account has been deleted/
  })
  for (const token of ['', 'x', `${second.slice(0, -2)}AA`, 'x'.repeat(43)]) exactly(t, await cancel(token), error('not_found', 404))
  exactly(t, await nobody.call('POST', '/v1/auth/me/cancel-deletion', {}), { status: 422 })
})

t.test('sends no mail about a deletion cancelled meanwhile', async t => {
  const { request, cancel, mails, pool, config } = await setup(t)
  await request()
  const { createLinks } = await import('../../src/accounts/links.ts')
  const { rows } = await pool.query('select id from cue.deletions')
  await cancel(tokenIn(createLinks(config).url('cancel-deletion', rows[0].id)))
  t.same(await mails(), [])
})

t.test('a job deletes the account when due, and contains no address', async t => {
  const { request, pool } = await setup(t)
  await request()
  const { rows } = await pool.query("select data, start_after from pgboss.job where name = 'deletions'")
  exactly(t, rows, [{ data: {}, start_after: new Date('2030-01-16T12:00:00Z') }])
  t.same(Object.keys(rows[0].data), [])
})

t.test('the owner of the address can delete an unused account at once', async t => {
  const service = await setup(t)
  const { nobody, mails, as } = service
  const { api_key, id } = await nobody.post('/v1/auth/register', { email: 'grace@example.com' })
  const [mail] = await mails()
  exactly(t, mail, {
    recipients: ['grace@example.com'],
    subject: 'An account was created with your address',
    links: [/not-me/, /confirm-email/]
  })
  t.ok(mail!.text.includes(api_key.slice(0, 12)))
  t.notOk(mail!.raw.includes(api_key))
  const { pathname, search } = new URL(mail!.links[0]!)
  t.match(await nobody.get(pathname + search), /grace@example.com.*never been used.*<button/s)
  exactly(t, await as({ id: '', email: '', api_key }).call('GET', '/v1/auth/me'), { status: 200 }, 'opening the page changes nothing')

  const post = () => nobody.call('POST', pathname, form({ token: tokenIn(mail!.links[0]!) }), formHeaders)
  exactly(t, await post(), { status: 200, body: /The account is deleted/ })
  exactly(t, await as({ id: '', email: '', api_key }).call('GET', '/v1/auth/me'), error('invalid_api_key', 401))
  for (const text of Object.values(await everything(service))) for (const trace of [id, 'grace@example.com']) t.notOk(text.includes(trace))
  exactly(t, await post(), { status: 404, body: /no longer valid/ })
  exactly(t, await nobody.call('GET', pathname + search), { status: 404 })
})

t.test('an account in use loses keys and sessions and pauses at once, and is deleted a day later unless cancelled', async t => {
  const { nobody, mails, as, openSession, withSession, clock, maintain, cancel, pool } = await setup(t)
  const { api_key } = await nobody.post('/v1/auth/register', { email: 'grace@example.com' })
  const { pathname, searchParams } = new URL((await mails())[0]!.links[0]!)
  const token = searchParams.get('token')!
  const intruder = as({ id: '', email: '', api_key })
  const cue = await intruder.post('/v1/cues', { name: 'mischief', cron: '* * * * *', worker: true })
  const { id: rested } = await intruder.post('/v1/cues', { name: 'rested', cron: '* * * * *', worker: true })
  await intruder.post(`/v1/cues/${rested}/pause`, { until: new Date(clock.now().getTime() + 60_000) })
  const session = withSession(await openSession('grace@example.com'))
  t.match(
    await nobody.get(`${pathname}?token=${token}`),
    /paused and its waiting executions cancelled immediately. The account is deleted after 24 hours/
  )

  const post = () => nobody.call('POST', pathname, form({ token }), formHeaders)
  exactly(t, await post(), { status: 200, body: /16 January 2030, 12:00 UTC/ })
  exactly(t, await post(), { status: 200, body: /16 January 2030, 12:00 UTC/ }, 'repeating it returns the same')
  const used = await nobody.call('GET', `${pathname}?token=${token}`)
  t.equal(used.status, 200)
  t.match(used.body, /This link was already used.*16 January 2030, 12:00 UTC/s)
  t.notMatch(used.body, /<button/)
  exactly(t, await intruder.call('GET', '/v1/auth/me'), error('invalid_api_key', 401))
  exactly(t, await session.call('GET', '/v1/auth/me'), error('not_authenticated', 401))
  const { rows } = await pool.query('select status, next_run from cue.cue_view where id = $1', [cue.id])
  t.same(rows, [{ status: 'paused', next_run: null }])
  const pauses = await pool.query('select status, paused_by, paused_until from cue.cue_view where id = $1', [rested])
  t.same(pauses.rows, [{ status: 'paused', paused_by: 'deletion', paused_until: null }], 'a pause that would end stays')

  const [mail] = await mails()
  exactly(t, await cancel(tokenIn(mail!.links[0]!)), { status: 200 })
  t.match(await nobody.get(`${pathname}?token=${token}`), /<button/, 'after cancelling, the link works again')
  clock.advance('25 hours')
  await maintain()
  const owner = withSession(await openSession('grace@example.com'))
  exactly(t, await owner.call('GET', '/v1/auth/key'), error('plaintext_unavailable', 410))
  const { api_key: fresh } = await owner.post('/v1/auth/key/regenerate')
  exactly(t, await as({ id: '', email: '', api_key: fresh }).call('GET', `/v1/cues/${cue.id}`), {
    status: 200,
    body: { status: 'paused', paused_by: 'deletion', paused_until: null }
  })
})

t.test('sends no waiting executions of a disowned account during its day of grace', async t => {
  const { nobody, mails, as, clock, fn, pool } = await setup(t)
  const { api_key } = await nobody.post('/v1/auth/register', { email: 'grace@example.com' })
  const { pathname, searchParams } = new URL((await mails())[0]!.links[0]!)
  const intruder = as({ id: '', email: '', api_key })
  const webhook = { name: 'mischief', cron: '0 0 1 1 *', callback_url: 'https://example.com/' }
  const execution = async (fields: object = {}, body?: object) => {
    const cue = await intruder.post('/v1/cues', { ...webhook, ...fields })
    return { cue: cue.id, id: (await intruder.post(`/v1/cues/${cue.id}/fire`, body)).id }
  }
  const underWay = await execution()
  const other = await nobody.post('/v1/auth/register', { email: 'heidi@example.com' })
  const theirs = as({ id: '', email: '', api_key: other.api_key })
  await beginWaiting(fn, { limit: 1 })
  const { id } = await theirs.post('/v1/cues', webhook)
  await theirs.post(`/v1/cues/${id}/fire`)
  const waiting = [
    await execution({}, { send_at: '2030-01-15T20:00:00Z' }),
    await execution({ callback_url: undefined, worker: true }),
    await execution({ cron: undefined, at: '2030-01-16T00:00:00Z' })
  ]
  const paused = await execution()
  await intruder.patch(`/v1/cues/${paused.cue}`, { status: 'paused' })
  waiting.push(paused)
  const fires = await intruder.post('/v1/operations', { type: 'fire', filter: { name: 'mischief' }, rate_per_minute: 1 })
  exactly(t, fires, { status: 'running', total: 5 })

  await nobody.call('POST', pathname, form({ token: searchParams.get('token')! }), formHeaders)
  const { rows } = await pool.query("select id, concat_ws(' ', status, error_message) as end from cue.executions where account_id <> $1", [
    other.id
  ])
  t.same(Object.fromEntries(rows.map(row => [row.id, row.end])), {
    [underWay.id]: 'failed cancelled',
    ...Object.fromEntries(waiting.map(({ id }) => [id, 'failed cancelled']))
  })
  exactly(t, (await pool.query('select status from cue.cues where id = $1', [waiting[2]!.cue])).rows, [{ status: 'failed' }])
  exactly(t, (await pool.query('select status from cue.operations')).rows, [{ status: 'aborted' }])
  clock.advance('9 hours')
  const begun = await beginWaiting(fn, { limit: 10 })
  t.same(pluck(begun, 'account_id'), [other.id])
  t.equal((await pool.query("select from pgboss.job where name = 'attempts'")).rowCount, 0)
})

t.test('the link in the registration mail expires after 30 days', async t => {
  const { nobody, mails, clock, call } = await setup(t)
  await nobody.post('/v1/auth/register', { email: 'grace@example.com' })
  const { pathname, search, searchParams } = new URL((await mails())[0]!.links[0]!)
  clock.advance('30 days')
  exactly(t, await nobody.call('GET', pathname + search), { status: 404, body: /no longer valid/ })
  exactly(t, await nobody.call('POST', pathname, form({ token: searchParams.get('token')! }), formHeaders), { status: 404 })
  exactly(t, await call('GET', '/v1/auth/me'), { status: 200 })
})
