import { createHmac } from 'node:crypto'
import type { Test } from 'tap'
import t from 'tap'
import { deriveKey, executionToken } from '../../src/deliveries/signature.ts'
import { testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { build, eventually, receiver } from '../support/setup.ts'

const soon = (ms = 300) => new Date(Date.now() + ms)

/** The service with an engine, and a way to create cues directly, due at the given time and with the given columns. */
const serve = async (t: Test, env: Record<string, string> = {}) => {
  const service = await build(t, undefined, { env: { PLANS: '{"free": {"cues": 1000, "executions_per_month": 100000}}', ...env } })
  const { fn, pool, account, url } = service
  const cue = (columns: object, next_run = soon()) =>
    fn.createCue({
      account_id: account.id,
      next_run,
      cue: {
        name: 'a cue',
        transport: 'webhook',
        schedule_type: 'recurring',
        cron: '0 0 1 1 *',
        timezone: 'UTC',
        callback_method: 'POST',
        callback_headers: {},
        payload: '{"a": 1, "task": "go"}',
        retry_max_attempts: 3,
        retry_backoff_minutes: [0.001],
        on_failure_email: true,
        on_failure_pause: false,
        catch_up: 'run_once_if_missed',
        ...columns
      }
    })
  const executions = async (cue_id: string) =>
    (await pool.query('select * from cue.executions where cue_id = $1 order by scheduled_for, id', [cue_id])).rows
  const ended = (cue_id: string, status = 'success') => eventually(async () => (await executions(cue_id)).find(e => e.status === status))
  return { ...service, cue, executions, ended, engineConfig: testConfig(url, { POLL_INTERVAL_MS: '60000', ...env }) }
}

t.test('delivers a due cue once, with both signatures, and records it', async t => {
  const { cue, ended, engineConfig, pool, account } = await serve(t)
  const hook = await receiver(t)
  const engine = await startEngine(t, engineConfig)
  const due = soon()
  const id = await cue({ callback_url: `${hook.url}path?q=1`, callback_headers: { 'X-Own': 'yes' } }, due)
  const execution = await ended(id)
  const [request] = await hook.received()
  const { rows } = await pool.query('select webhook_secret from cue.accounts where id = $1', [account.id])
  const secret = rows[0].webhook_secret
  const timestamp = request!.headers['x-service-timestamp']
  exactly(t, request, {
    method: 'POST',
    path: '/path?q=1',
    body: '{"a": 1, "task": "go"}',
    headers: {
      'content-type': 'application/json',
      'user-agent': /^pgcue\/\d/,
      'x-own': 'yes',
      'x-service-cue-id': id,
      'x-service-execution-id': execution.id,
      'x-service-scheduled-for': due.toISOString(),
      'x-service-attempt': '1',
      'x-service-signature': `v1=${createHmac('sha256', secret).update(`${timestamp}.${request!.body}`).digest('hex')}`,
      'webhook-id': execution.id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
        .update(`${execution.id}.${timestamp}.${request!.body}`)
        .digest('base64')}`,
      authorization: /^Bearer svc_sk_x_/
    }
  })
  exactly(t, execution, {
    attempts: 1,
    http_status: 200,
    response_body: '{}',
    triggered_by: 'schedule',
    flight_id: null,
    error_message: null
  })
  const log = await pool.query('select * from cue.attempt_view')
  exactly(t, log.rows, [{ execution_id: execution.id, attempt: 1, result: 'success', http_status: 200, error: null }])
  const runs = await pool.query('select * from cue.cue_runs')
  exactly(t, runs.rows, [{ run_count: 1, fired_count: 1, last_slot: due }])
  await eventually(async () => (await pool.query('select from cue.flights')).rowCount === 0)
  await engine.stop()
  t.equal(hook.requests.length, 1)
})

t.test('results have their own connections, and only they do', async t => {
  const { cue, ended, engineConfig, pool } = await serve(t)
  const hook = await receiver(t)
  await startEngine(t, engineConfig)
  const ids = [await cue({ callback_url: hook.url }), await cue({ callback_url: hook.url }, soon(900))]
  for (const id of ids) await ended(id)
  const { rows } = await pool.query(
    `select distinct application_name as name, substring(query from 'cue\\.(\\w+_attempts)\\(') as ran
       from pg_stat_activity where datname = current_database() and application_name like 'pgcue %'`
  )
  const namesOf = (ran: string) => rows.filter(row => row.ran === ran).map(row => row.name)
  t.strictSame(namesOf('finish_attempts'), ['pgcue results'])
  t.strictSame([...new Set(rows.filter(row => row.name === 'pgcue results').map(row => row.ran))], ['finish_attempts'])
})

t.test('a cue with several slots within the look-ahead fires once in each', async t => {
  const { cue, executions, engineConfig } = await serve(t)
  const hook = await receiver(t)
  await startEngine(t, engineConfig)
  const first = new Date(Math.ceil(Date.now() / 1000) * 1000 + 1000)
  const id = await cue({ callback_url: hook.url, cron: '* * * * * *' }, first)
  const requests = await hook.received(3)
  const slots = requests.map(request => Date.parse(String(request.headers['x-service-scheduled-for'])))
  t.same(
    slots.slice(0, 3),
    [0, 1000, 2000].map(ms => first.getTime() + ms)
  )
  const made = await executions(id)
  t.equal(new Set(made.map(e => e.scheduled_for.getTime())).size, made.length, 'each slot once')
})

t.test('retries a rejected delivery up to its limit, then fails', async t => {
  const { cue, ended, engineConfig, pool } = await serve(t)
  const headers = { 'set-cookie': 'session=1', 'x-echo': 'key secret-header', 'x-long': 'x'.repeat(2048), 'x-region': 'eu' }
  const hook = await receiver(t, request => (request.path === '/failed' ? {} : { status: 500, body: 'broken', headers }))
  await startEngine(t, engineConfig)
  const callback = { callback_url: hook.url, callback_headers: { 'X-Key': 'secret-header' } }
  const id = await cue({ ...callback, on_failure_webhook: `${hook.url}failed`, on_failure_pause: true })
  const execution = await ended(id, 'failed')
  exactly(t, execution, { attempts: 3, http_status: 500, response_body: 'broken', error_message: 'answered 500 Internal Server Error' })
  const requests = await hook.received(4)
  t.same(
    requests.slice(0, 3).map(request => request.headers['x-service-attempt']),
    ['1', '2', '3']
  )
  const { rows } = await pool.query('select response_headers, response_body from cue.attempts')
  for (const { response_headers, response_body } of rows) {
    t.same(
      [response_headers['x-echo'], response_headers['x-region'], response_headers['x-long'], response_headers['set-cookie']],
      ['key ********', 'eu', undefined, undefined]
    )
    t.equal(response_body, 'broken')
  }
  const log = await pool.query('select attempt, result from cue.attempt_view order by attempt')
  t.same(
    log.rows,
    [1, 2, 3].map(attempt => ({ attempt, result: 'failed' }))
  )
  const notice = requests.find(request => request.path === '/failed')!
  exactly(t, JSON.parse(notice.body), {
    event: 'cue.failed',
    cue_id: id,
    cue_name: 'a cue',
    execution_id: execution.id,
    attempts: 3,
    last_http_status: 500,
    last_error: 'answered 500 Internal Server Error',
    failed_at: /Z$/,
    dashboard_url: /^http/
  })
  exactly(t, notice.headers, { 'x-service-signature': /^v1=/, 'webhook-signature': /^v1,/ })
  exactly(t, (await pool.query('select status from cue.cues')).rows, [{ status: 'paused' }])
  exactly(t, (await pool.query("select data from pgboss.job where name = 'mails' and data ->> 'kind' = 'cue_failed'")).rows, [
    { data: { execution_id: execution.id } }
  ])
})

t.test('Retry-After delays the next attempt, and 410 ends the attempts', async t => {
  const { cue, ended, engineConfig } = await serve(t)
  const busy = await receiver(t, () => ({ status: 429, headers: { 'retry-after': '600' } }))
  const gone = await receiver(t, () => ({ status: 410 }))
  await startEngine(t, engineConfig)
  const waiting = await cue({ callback_url: busy.url })
  const final = await cue({ callback_url: gone.url })
  const { attempt_due_at } = await ended(waiting, 'retrying')
  t.ok(attempt_due_at.getTime() > Date.now() + 590_000)
  exactly(t, await ended(final, 'failed'), { attempts: 1, http_status: 410 })
})

t.test('what is kept of a response that repeats its request shows no secret', async t => {
  const { cue, ended, engineConfig, pool, account } = await serve(t)
  await pool.query("update cue.accounts set webhook_authorization = 'api_key'")
  const echo = await receiver(t, ({ headers }) => {
    const result = `"success" ${headers['x-secret']}, ${Buffer.from(headers.authorization!).toString('base64url')}`
    return { body: { success: true, result, error: headers['x-service-execution-token'] ?? headers.authorization, headers } }
  })
  await startEngine(t, engineConfig)
  const delivery = { timeout_seconds: 30, outcome_deadline_seconds: 1, claim_timeout_seconds: 900, await_outcome: true }
  const secret = '": false, "a/é+b'
  const columns = { ...delivery, callback_url: echo.url, callback_headers: { 'X-Secret': secret, 'X-Short': 'visible' } }
  const ids = [
    await cue(columns),
    await cue({ ...columns, callback_headers: { ...columns.callback_headers, Authorization: 'Bearer own-token' } })
  ]
  const hidden = [account.api_key, 'svc_sk_x_', 'own-token', secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]
  for (const id of ids) {
    const { response_body, result, error, outcome_success } = await ended(id)
    exactly(t, { result, error, outcome_success }, { result: '"success" ********, ********', error: '********', outcome_success: true })
    exactly(t, JSON.parse(response_body).headers, { 'x-secret': '********', authorization: '********', 'x-short': 'visible' })
    for (const text of hidden) t.notOk([response_body, result, error].join().includes(text), text)
  }
})

t.test('a fire with send_at is sent at that time, not before', async t => {
  const { cue, ended, engineConfig, fn, account } = await serve(t)
  const hook = await receiver(t)
  await startEngine(t, engineConfig)
  const id = await cue({ callback_url: hook.url }, new Date(Date.now() + 3_600_000))
  const send_at = soon(1000)
  await fn.fireCue({ account_id: account.id, cue_id: id, send_at })
  const execution = await ended(id)
  t.ok(execution.started_at >= send_at)
  t.equal((await hook.received()).length, 1)
})

t.test('several engines share simultaneous cues and deliver each once', async t => {
  const { cue, engineConfig, pool } = await serve(t)
  const hook = await receiver(t)
  const due = soon(4000)
  for (let i = 0; i < 300; i++) await cue({ callback_url: hook.url }, due)
  for (let i = 0; i < 3; i++) await startEngine(t, engineConfig)
  await eventually(async () => (await pool.query("select from cue.executions where status = 'success'")).rowCount === 300, 20_000)
  t.equal(hook.requests.length, 300)
  t.equal(new Set(hook.requests.map(request => request.headers['x-service-cue-id'])).size, 300)
})

t.test('another replica retries the attempts of one that died', async t => {
  const { cue, ended, engineConfig, fn, pool } = await serve(t)
  const hook = await receiver(t)
  const due = new Date(Date.now() - 1000)
  const id = await cue({ callback_url: hook.url }, due)
  // A replica takes it and dies.
  await fn.beatEngine({
    engine_id: '00000000-0000-7000-8000-00000000dead',
    version: '1',
    lateness_ms: null,
    open_deliveries: 0,
    missed_after: '60 seconds'
  })
  const [taken] = await fn.takeDueCues({
    cue_ids: [id],
    versions: [1],
    expected: [due],
    next: [null],
    missed_after: '60 seconds',
    lease: '1 millisecond'
  })
  t.equal(taken!.attempt, 1)
  await startEngine(t, engineConfig)
  exactly(t, await ended(id), { attempts: 2, lost_attempts: 1 })
  t.equal((await hook.received()).length, 1)
  const log = await pool.query('select attempt, result from cue.attempt_view order by attempt')
  t.same(log.rows, [
    { attempt: 1, result: 'lost' },
    { attempt: 2, result: 'success' }
  ])
})

t.test('keeps results while the database is unavailable, and sends nothing twice', async t => {
  const { cue, ended, engineConfig, pool } = await serve(t)
  let answer: (() => void) | undefined
  const hook = await receiver(t, () => new Promise(resolve => (answer = () => resolve({}))))
  await startEngine(t, engineConfig)
  const id = await cue({ callback_url: hook.url })
  await hook.received()
  await pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'pgcue %'"
  )
  answer!()
  exactly(t, await ended(id), { attempts: 1, lost_attempts: 0 })
  t.equal(hook.requests.length, 1)
})

t.test('stopping lets open requests finish and releases unsent attempts', async t => {
  const { cue, ended, executions, engineConfig } = await serve(t, { DELIVERY_CONCURRENCY: '1' })
  const hook = await receiver(t, async () => {
    await new Promise(resolve => setTimeout(resolve, 150))
    return {}
  })
  const engine = await startEngine(t, engineConfig)
  const due = soon(500)
  const ids = []
  for (let i = 0; i < 5; i++) ids.push(await cue({ callback_url: hook.url }, due))
  await hook.received(1)
  await engine.stop()
  const states = (await Promise.all(ids.map(executions))).flat().map(e => e.status)
  t.notOk(states.includes('delivering'), states.join())
  await startEngine(t, engineConfig)
  for (const id of ids) await ended(id)
  t.equal(hook.requests.length, 5, 'each was sent once')
})

t.test("catches up slots missed while the service was down by the cue's policy", async t => {
  const { cue, ended, executions, engineConfig, pool } = await serve(t)
  const hook = await receiver(t)
  const now = Date.now()
  const fiveYears = 5 * 365 * 86_400_000
  const minute = (ago: number) => new Date(Math.floor((now - ago) / 60_000) * 60_000)
  await pool.query("insert into cue.engines values (gen_random_uuid(), '1', now() - interval '6 years', now() - interval '6 years')")
  const every = { callback_url: hook.url, cron: '* * * * *' }
  const skips = await cue({ ...every, catch_up: 'skip_missed' }, minute(fiveYears))
  const once = await cue({ ...every, catch_up: 'run_once_if_missed' }, minute(fiveYears))
  const all = await cue({ ...every, catch_up: 'replay_all_missed' }, minute(300_000))
  await startEngine(t, engineConfig)
  await ended(once)
  await eventually(async () => (await executions(all)).filter(e => e.status === 'success').length >= 5)
  t.same(
    (await executions(skips)).filter(e => e.scheduled_for.getTime() < now - 60_000),
    []
  )
  t.ok((await executions(once))[0].scheduled_for.getTime() > now - 120_000, 'the latest slot ran')
  const { rows } = await pool.query('select cue_id, count, reason from cue.missed_slots')
  exactly(
    t,
    rows.find(row => row.cue_id === skips),
    { count: 10_000, reason: 'service_away' }
  )
  const { rows: runs } = await pool.query('select next_run from cue.cue_runs')
  for (const { next_run } of runs) t.ok(next_run.getTime() > now - 1000, 'the schedule continues')
})

t.test("sends the account's key instead of the token if so configured", async t => {
  const { cue, engineConfig, pool, account } = await serve(t)
  await pool.query("update cue.accounts set webhook_authorization = 'api_key'")
  const hook = await receiver(t)
  await startEngine(t, engineConfig)
  await cue({ callback_url: hook.url })
  const [request] = await hook.received()
  t.equal(request!.headers.authorization, `Bearer ${account.api_key}`)
})

t.test("a cue's own Authorization, User-Agent and Content-Type replace the service's, and the token moves to its own header", async t => {
  const { cue, engineConfig, pool, account, config } = await serve(t)
  await pool.query("update cue.accounts set webhook_authorization = 'api_key'")
  const hook = await receiver(t)
  await startEngine(t, engineConfig)
  await cue({
    callback_url: hook.url,
    callback_headers: { authorization: 'Bearer theirs', 'USER-AGENT': 'theirs/1', 'content-type': 'application/cloudevents+json' }
  })
  const [request] = await hook.received()
  const headers = request!.headers as Record<string, string>
  const names = ['authorization', 'user-agent', 'content-type', 'x-service-execution-token'] as const
  t.strictSame(
    names.map(name => headers[name]),
    [
      'Bearer theirs',
      'theirs/1',
      'application/cloudevents+json',
      executionToken(deriveKey(config.sessionSecret, 'execution-token'), headers['x-service-execution-id']!)
    ]
  )
  t.notOk(JSON.stringify(headers).includes(account.api_key), 'the key is not sent')
})
